"""What a layout of saved predictions declares, and what its parser hands on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show
from cvstats.cube.predictions import SUM_TOLERANCE

from ._columns import natural_column, texts

ROW_NAMES = ""  # the unnamed first column that R and pandas write: row names, the sample ids of layouts without any
ROUNDED = 0.01  # how far probabilities may lie on the wrong side of a threshold by rounding
NUMBERED = "the file has no sample ids: samples are numbered by row"
UNNAMED = re.compile(r"(Unnamed: \d+)?")  # such as pandas reads and writes again
PLAIN = re.compile(r"[\w #]+")  # a pattern that is one name
MARKS = re.compile(r"[ ._-]")
TRUTHS = ("label", "target", "truth", "y_true", "actual", "obs", "outcome")


@dataclass(frozen=True)
class Hints:
    """What the caller said, for layouts whose files do not say it."""

    labels: Any = None
    positive: Hashable | None = None
    kind: str | None = None
    name: str = "configuration"
    mapped: frozenset[str] = frozenset()
    wide: Sequence[str] = ()  # the mapped predictions, where they are one column per configuration
    several: bool = False  # whether the table is one of several


@dataclass(eq=False)
class Parsed:
    """One table, or a part of it, in our own words.

    Attributes
    ----------
    frame : columns among sample, configuration, repeat, fold, label, group, weight, event, and those named below.
    values : class -> column of its probability or score; ``{None: column}`` for one value per prediction.
    extras : columns that may describe configurations or samples (tuning values, complexity).
    read_as : our names -> the columns that were read as them, where a column was.
    source, first_row, rows : where it comes from: the table, the number of its first row (from 1) and of its rows.
    text : whether it was read from text, so that types are to be found out.
    iterations : whether `fold` may name hold-outs that overlap, such as those of a bootstrap.
    aligned : whether the rows of the frame are those of the table, so that they can be named.
    """

    frame: pd.DataFrame
    values: dict[Any, str]
    extras: list[str] = field(default_factory=list)
    read_as: dict[str, str] = field(default_factory=dict)
    kind: str | None = None
    positive: Any = None
    threshold: float | None = None
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    averaged: bool = False
    source: str = ""
    first_row: int = 1
    rows: int = 0
    text: bool = False
    aligned: bool = False
    iterations: bool = False


Parser = Callable[[pd.DataFrame, Hints], Parsed]


@dataclass(frozen=True)
class Layout:
    """How one layout is recognised by its column names, and how it is read.

    Attributes
    ----------
    needs : regular expressions; each must match a column name.
    lacks : regular expressions; none may match a column name. They keep layouts apart that share columns.
    knows : regular expressions of the other columns it reads.
    names_classes : whether classes are named in the header only, so that its case counts.
    chunked : whether a part of the rows can be parsed without the rest (Parquet files are then read by row group).
    strange : the columns by which a table that has all it needs is seen to be something else.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    parse: Parser
    lacks: tuple[str, ...] = ()
    knows: tuple[str, ...] = ()
    chunked: bool = False
    names_classes: bool = False
    strange: Callable[[Sequence[str], Hints], Sequence[str]] = lambda columns, hints: ()

    def missing(self, columns: Iterable[str]) -> list[str]:
        """Return the needed columns that are not there, in words."""
        names = list(columns)
        return [in_words(need) for need in self.needs if not matching(need, names)]

    def spelling(self, columns: Sequence[str]) -> dict[str, str]:
        """Return columns -> how this layout writes them, for those that differ in case and punctuation only."""
        patterns = [part for pattern in (*self.needs, *self.knows, *self.lacks) for part in alternatives(pattern)]
        exact = re.compile("|".join(patterns))
        alike, out = re.compile(exact.pattern, re.IGNORECASE), {}
        for name in columns:
            if not name or exact.fullmatch(name):
                continue
            spellings = dict.fromkeys([name, *(MARKS.sub(mark, name) for mark in ("_", ".", " ", ""))])
            if not any(map(alike.fullmatch, spellings)):
                continue
            fits = ((p, s) for p in patterns for s in spellings if re.fullmatch(p, s, re.IGNORECASE))
            for pattern, spelled in fits:
                begin = literal(pattern)
                meant = begin + spelled[len(begin) :], spelled.lower()
                if right := [written for written in meant if re.fullmatch(pattern, written)]:
                    out[name] = right[0]
                    break
        return out

    def matches(self, columns: Sequence[str], hints: Hints) -> bool:
        """Return whether the column names are those of this layout."""
        if self.missing(columns) or any(matching(lack, columns) for lack in self.lacks):
            return False
        return not self.strange(columns, hints)


LAYOUTS: dict[str, Layout] = {}


def layout(name: str, title: str, **declared: Any) -> Callable[[Parser], Parser]:
    """Make the decorated function the reader of a layout."""

    def add(parse: Parser) -> Parser:
        LAYOUTS[name] = Layout(name, title, parse=parse, **declared)
        return parse

    return add


def matching(pattern: str, names: Collection[str]) -> bool:
    """Return whether any name matches."""
    if all(map(PLAIN.fullmatch, parts := alternatives(pattern))):
        return any(part in names for part in parts)
    return any(map(re.compile(pattern).fullmatch, names))


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that one stands for: ``a|b`` is a and b."""
    return pattern.split("|") if "(" not in pattern else [pattern]


def literal(pattern: str) -> str:
    """Return what every name that matches begins with."""
    found = re.match(r"(?:\\\W|[^\\.(\[?*+|])*", pattern)
    return re.sub(r"\\(.)", r"\1", found[0]) if found else ""


def in_words(pattern: str) -> str:
    """Return the names that match as a person would write them: ``response or prob....``."""
    begins = {part: literal(part) for part in alternatives(pattern)}
    return " or ".join(begin if re.fullmatch(part, begin) else f"{begin}..." for part, begin in begins.items())


def in_our_words(
    frame: pd.DataFrame,
    roles: Mapping[str, Any],
    values: dict[Any, str],
    notes: Sequence[str] = (),
    extras: Sequence[str] = (),
    **more: Any,
) -> Parsed:
    """Return columns under our names, and the values; without sample ids rows are numbered.

    A role is played by a column of the frame, if it is there, or by values.
    """
    named = {role: frame.get(given) if isinstance(given, str) else given for role, given in roles.items()}
    out = pd.DataFrame({role: given for role, given in named.items() if given is not None}, index=frame.index)
    if "sample" not in roles:
        out["sample"], note = row_ids(frame)
        notes = [note, *notes]
    out = out.assign(**{name: frame[name] for name in values.values()})
    extras = [name for name in extras if name not in out.columns]
    read_as = {role: given for role, given in roles.items() if isinstance(given, str) and given in frame.columns}
    read_as |= of_values(values)
    return Parsed(out.join(frame[extras]), values, extras, read_as, notes=[*notes], **more)


def stacked(shared: pd.DataFrame, frame: pd.DataFrame, models: Mapping[str, Mapping[Any, str]], **more: Any) -> Parsed:
    """Return the probabilities of models, which have a column for each class, below each other."""
    names = {label: f"p{place}" for place, label in enumerate(next(iter(models.values())))}
    parts = [
        shared.assign(configuration=model, **{names[label]: frame[column] for label, column in columns.items()})
        for model, columns in models.items()
    ]
    return Parsed(pd.concat(parts, ignore_index=True), dict(names), **more)


def of_values(values: Mapping[Any, str]) -> dict[str, str]:
    """Return the columns of predictions by what they are."""
    return {"prediction" if name is None else f"prediction[{name}]": column for name, column in values.items()}


def others(frame: pd.DataFrame, known: Iterable[str]) -> list[str]:
    """Return the columns that are not known, of those that have a name."""
    taken = {*known}
    return [name for name in frame.columns if name not in taken and not UNNAMED.fullmatch(name)]


def class_columns(columns: Iterable[str], pattern: str) -> dict[Any, str]:
    """Return the columns of class probabilities by class, which the group of the pattern names."""
    return {part[1]: name for name in columns if (part := re.fullmatch(pattern, name))}


def like_classes(columns: Iterable[str], classes: set[str]) -> dict[Any, str]:
    """Return the columns that are named like classes, in whatever case, by class."""
    written = Counter(name.lower() for name in classes)
    once = {name.lower(): name for name in classes if written[name.lower()] == 1}
    meant = {name: name if name in classes else once.get(name.lower()) for name in columns}
    return {label: name for name, label in meant.items() if label is not None}


def chosen(classes: dict[Any, str], single: str, hints: Hints) -> dict[Any, str]:
    """Return the columns of class probabilities, else that of predicted classes, which the caller may prefer."""
    return classes if classes and hints.kind != "label" else {None: single}


def of_both_classes(
    frame: pd.DataFrame, said: Iterable[Any], score: np.ndarray, classes: Sequence[str]
) -> tuple[pd.DataFrame, dict[Any, str]]:
    """Return the probability of the predicted class as that of each of two classes; raise if it is none."""
    predicted = np.array(texts(said))
    new = {f"p{place}": np.where(predicted == name, score, 1 - score) for place, name in enumerate(classes)}
    first, second = (new["p0"][predicted == name] for name in classes)
    if np.fmin.reduce(first, initial=np.inf) < np.fmax.reduce(second, initial=-np.inf) - ROUNDED:
        raise InputError(
            "no threshold leads from the probabilities of the predicted class to these classes: are they those of one "
            "class? Then say which with columns={'prediction': {<class>: <column>}}."
        )
    return frame.assign(**new), dict(zip(classes, new, strict=True))


def truth_column(frame: pd.DataFrame, hints: Hints, layout: str, taken: Iterable[str] = ()) -> str | None:
    """Return the column that holds the truth, or None when the caller gave it; else say how to give it."""
    if hints.labels is not None:
        return None
    if "label" in hints.mapped or (layout == "long" and "label" in frame.columns):
        return "label"
    found = [name for name in TRUTHS if name in frame.columns and name not in set(taken)]
    if len(found) != 1:
        what = f"has several that could be it: {show(found)}" if found else "has no column for it"
        raise InputError(
            f"the truth is not in the file: layout {layout!r} {what}. "
            "Name it with columns={'label': <column>}, or give it with labels= (one per row, or a Series by sample id)."
        )
    return found[0]


def row_ids(frame: pd.DataFrame) -> tuple[pd.Series, str]:
    """Return sample ids for a layout without any: the row names if unique, else row numbers from 0; and a note."""
    for name in ("sample", ROW_NAMES):
        if name in frame.columns and frame[name].is_unique:
            return frame[name], "samples are named by the file's row names"
    numbers = pd.Series(np.arange(len(frame)), index=frame.index)
    return numbers, NUMBERED


def check_classes(
    frame: pd.DataFrame, columns: Sequence[str], layout: str, remedy: str = "Drop or rename what is not a class."
) -> None:
    """Raise unless columns that are taken for classes hold probabilities that add up to one."""
    if len(columns) < 2 or not add_up(frame, columns):
        raise InputError(
            f"layout {layout!r}: columns {show(columns)} should be the classes, but do not add up to one. {remedy}"
        )


def add_up(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return whether columns hold probabilities that add up to one."""
    block = [pd.to_numeric(natural_column(frame[name]), errors="coerce") for name in columns]
    values = np.column_stack(block).astype(float)
    values = values[~np.isnan(values).any(axis=1)]
    return bool((values >= -SUM_TOLERANCE).all() and (np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE).all())

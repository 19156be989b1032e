"""Tables that hold the scores of folds instead of predictions, as one long table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError, show

from . import SCORES
from ._columns import natural, numbers_of, numeric, texts, tuple_names
from ._frames import from_frame
from ._gate import Budget
from ._layout import ROW_NAMES
from ._tables import read_table

REPEATED = re.compile(r"(Fold\d+)\.(Rep\d+)")  # caret
MOST = 10  # splits that are taken for the folds of one partition
SPLIT = re.compile(r"split(\d+)_test_(.+)")
WIDE = re.compile(r"(?:cv[ _.-]?)?(?:fold|split)[ _.-]?(\d+)(?:[ _.-](.+))?", re.IGNORECASE)
ATTRIBUTE = re.compile(r"user_attrs_(.*?)[ _.-]*(?:fold|split|cv)?[ _.-]*(\d+)(?:[ _.-](.+))?")
FOLD, REPEAT = r"fold(_?id)?|split|cv_?fold|resample|iteration|iter", r"repeat|rep|repetition"
NAME = r"configuration|config|model|learner(_id)?|algorithm|classifier|pipeline|estimator|method|trial|params"
VALUE = r"score|value|estimate|result"
MORE = r"sens(itivity)?|spec(ificity)?|prauc|precision|recall|f|bal(anced)?_accuracy|neg_.+|.*_loss"
KNOWN = f"{SCORES}|{MORE}"
AVERAGED = "the scores of folds were averaged before they were saved"


def _fits(pattern: str, column: str) -> bool:
    return re.fullmatch(pattern, column, re.IGNORECASE) is not None


def read_frame(source: Any, encoding: str, max_bytes: int) -> tuple[pd.DataFrame, str]:
    """Return a table of any kind as a frame of numbers and text, and its name."""
    if isinstance(source, (str, Path)):
        table = read_table(Path(source), encoding, Budget(max_bytes))
        name, frame = table.name, pd.concat(list(table.parts()), ignore_index=True)
    elif isinstance(source, (Mapping, pd.DataFrame)):
        name = "table"
        given = (
            pd.DataFrame({key: list(value) for key, value in source.items()}) if isinstance(source, Mapping) else source
        )
        given = given.assign(**{str(column): given[column].map(str) for column in given if column == "params"})
        (frame,) = from_frame(given.rename(columns=str), name).parts()
    else:
        raise InputError(f"`source` must be a file name, a data frame or a mapping; got {type(source).__name__}.")
    return frame.drop(columns=[column for column in map(str, frame) if column == ROW_NAMES]), name


def long_scores(frame: pd.DataFrame, name: str, columns: Mapping[str, str] | None) -> tuple[pd.DataFrame, bool]:
    """Return configuration, fold, perhaps repeat, metric and value of every score, and whether higher is better."""
    known = list(frame.columns)
    if columns is not None:
        return _mapped(frame, columns), False
    for reader, needs in READERS:
        if all(any(_fits(need, column) for column in known) for need in needs):
            return reader(frame, name), reader in (_sklearn, _cross_validate)
    raise InputError(
        f"no scores of folds are recognised in columns {show(known)}; name them with "
        "columns={'configuration': ..., 'fold': ..., 'score': ...}."
    )


def _long(configuration: Any, fold: Any, metric: Any, value: Any, repeat: Any = None) -> pd.DataFrame:
    parts = {"configuration": configuration, "fold": fold, "metric": metric, "value": value}
    return pd.DataFrame(parts if repeat is None else {**parts, "repeat": repeat})


def _named(frame: pd.DataFrame, columns: Sequence[str], name: str) -> pd.Series:
    """Return names of configurations: one column as it is, several as tuning values, none as the table's name."""
    if not columns:
        return pd.Series(Path(name).stem, index=frame.index)
    if len(columns) == 1 and _fits(rf"{NAME}|\.config", columns[0]):
        return pd.Series(texts(frame[columns[0]]), index=frame.index)
    return tuple_names(frame, columns).astype(str)


def _stacked(frame: pd.DataFrame, names: pd.Series, places: Mapping[str, tuple[Any, str]]) -> pd.DataFrame:
    """Return the scores of columns, each with its fold and metric, below each other."""
    parts = [_long(names, fold, metric, _numbers(frame, column)) for column, (fold, metric) in places.items()]
    return pd.concat(parts, ignore_index=True)


def _numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    if not numeric(frame[column]):
        raise InputError(f"column {column!r} must hold numbers.")
    return numbers_of(frame[column])


def _scores(frame: pd.DataFrame) -> list[str]:
    return [column for column in map(str, frame) if _fits(KNOWN, column) and numeric(frame[column])]


def _mapped(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    lost = [column for column in columns.values() if column not in frame.columns]
    if lost or not {"fold", "score"} <= {*columns} <= {"configuration", "fold", "repeat", "score", "metric"}:
        raise InputError(
            "`columns` must give 'fold' and 'score', and may give 'configuration', 'repeat' and 'metric', as names of "
            f"columns; {f'not found: {show(lost)}' if lost else f'found {show(columns)}'}."
        )
    names = _named(frame, [columns["configuration"]] if "configuration" in columns else [], "configuration")
    metric = texts(frame[columns["metric"]]) if "metric" in columns else columns["score"]
    repeat = frame[columns["repeat"]] if "repeat" in columns else None
    return _long(names, frame[columns["fold"]], metric, _numbers(frame, columns["score"]), repeat)


def _sklearn(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    tuning = [column for column in map(str, frame) if column.startswith("param_")]
    values = frame[tuning].rename(columns=lambda column: column.removeprefix("param_"))
    names = (
        tuple_names(values, [str(column) for column in values]).astype(str)
        if tuning
        else _named(frame, ["params"], name)
    )
    return _stacked(
        frame, names, {c: (int(found[1]), found[2]) for c in map(str, frame) if (found := SPLIT.fullmatch(c))}
    )


def _cross_validate(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    places = [column for column in map(str, frame) if column.startswith("test_")]
    parts = [_long(Path(name).stem, range(len(frame)), c.removeprefix("test_"), _numbers(frame, c)) for c in places]
    return pd.concat(parts, ignore_index=True)


def _tidymodels(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    if ".estimate" not in frame or "id" not in frame:
        raise InputError(f"tidymodels: {AVERAGED}; save collect_metrics(x, summarize = FALSE).")
    names = _named(frame, [column for column in ("wflow_id", ".config") if column in frame], name)
    twice = "id2" in frame
    fold, repeat = (frame["id2"], frame["id"]) if twice else (frame["id"], None)
    return _long(names, fold, texts(frame[".metric"]), _numbers(frame, ".estimate"), repeat)


def _caret(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    scores = _scores(frame)
    names = _named(frame, [column for column in map(str, frame) if column not in (*scores, "Resample")], name)
    out = _stacked(frame, names, {column: (None, column) for column in scores})
    split = pd.Series(texts(frame["Resample"]) * len(scores))
    found = split.str.extract(REPEATED)
    if found.notna().all(axis=None):
        return out.assign(fold=found[0], repeat=found[1])
    return out.assign(fold=split)


def _mlr3(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    for column in ("task_id", "resampling_id"):
        if column in frame and len(frame[column].unique()) > 1:
            raise InputError(
                f"mlr3: several values of {column!r} ({show(frame[column].unique())}); save one at a time."
            )
    scores = [column for column in map(str, frame) if re.fullmatch(r"(classif|regr)\..+", column)]
    out = _stacked(frame, _named(frame, ["learner_id"], name), {column: (None, column) for column in scores})
    return out.assign(fold=np.tile(frame["iteration"].to_numpy(), len(scores)))


def _optuna(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    places = {c: (int(m[2]), m[3] or m[1] or "value") for c in map(str, frame) if (m := ATTRIBUTE.fullmatch(c))}
    if not places:
        raise InputError(
            f"Optuna: {AVERAGED}; keep them with trial.set_user_attr(f'fold{{i}}', score) and save trials_dataframe()."
        )
    if "state" in frame:
        frame = frame[frame["state"].astype(str) == "COMPLETE"]
    names = pd.Series([f"trial {number}" for number in texts(frame["number"])], index=frame.index)
    return _stacked(frame, names, places)


def _any_long(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    fold, repeat, value, kind = (
        [column for column in map(str, frame) if _fits(need, column)]
        for need in (FOLD, REPEAT, VALUE, "metric|measure")
    )
    scores = value if kind and value else _scores(frame)
    if len(fold) != 1 or not scores or (kind and len(scores) != 1):
        raise InputError(
            f"the columns of folds ({show(fold)}) or scores ({show(scores)}) are not clear; name them with `columns`."
        )
    known = [column for column in map(str, frame) if _fits(NAME, column)]
    rest = [column for column in map(str, frame) if column not in (*fold, *repeat, *scores, *kind)]
    out = _stacked(frame, _named(frame, known[:1] or rest, name), {column: (None, column) for column in scores})
    many = {"fold": fold[:1], "repeat": repeat[:1], "metric": kind[:1]}
    return out.assign(
        **{role: np.tile(texts(frame[column[0]]), len(scores)) for role, column in many.items() if column}
    )


def _any_wide(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    places = {
        column: (int(found[1]), found[2] or "score") for column in map(str, frame) if (found := WIDE.fullmatch(column))
    }
    known = [column for column in map(str, frame) if _fits(NAME, column)]
    rest = [column for column in map(str, frame) if column not in places and not _fits("mean.*|std.*|rank.*", column)]
    return _stacked(frame, _named(frame, known[:1] or rest, name), places)


# what makes long scores of a table, and regular expressions that each match one of its columns
READERS: list[tuple[Callable[[pd.DataFrame, str], pd.DataFrame], tuple[str, ...]]] = [
    (_sklearn, (SPLIT.pattern,)),
    (_cross_validate, ("fit_time", "test_.+")),
    (_tidymodels, (r"\.metric", r"\.estimator")),
    (_optuna, ("number", r"values?(_\d+)?", "params_.+|state")),
    (_mlr3, ("learner_id", "iteration", r"(classif|regr)\..+")),
    (_caret, ("Resample", KNOWN)),
    (_any_long, (FOLD, f"{KNOWN}|{VALUE}")),
    (_any_wide, (WIDE.pattern,)),
]


def partitioned(long: pd.DataFrame, repeats: int | None) -> pd.DataFrame:
    """Return the scores of one metric with the folds within their repeats."""
    split = texts(long["fold"])
    if "repeat" in long:
        if repeats not in (None, count := long["repeat"].nunique()):
            raise InputError(f"`repeats`={repeats}, but the table says that there are {count}.")
        return long.assign(fold=_ids(split), repeat=_ids(texts(long["repeat"])))
    names = {name: place for place, name in enumerate(sorted(set(split), key=by_number))}
    n = len(names)
    if repeats is None and n > MOST:
        raise InputError(
            f"there are {n} splits: of repeated cross-validation? Give repeats=..., the folds of each following each "
            "other, or repeats=1."
        )
    if n % (repeats or 1):
        raise InputError(f"`repeats`={repeats} does not divide the {n} splits.")
    if repeats in (None, 1):
        return long.assign(fold=_ids(split))
    repeat, fold = np.divmod([names[name] for name in split], n // (repeats or 1))
    return long.assign(fold=fold, repeat=repeat)


def _ids(names: list[str]) -> np.ndarray:
    return natural(np.array(names), ids=True)


def by_number(name: Any) -> tuple[str, int, str]:
    """Return what splits are sorted by: Fold2 before Fold10."""
    found = re.fullmatch(r"(.*?)(\d+)", str(name))
    return (found[1], int(found[2]), "") if found else ("", 0, str(name))

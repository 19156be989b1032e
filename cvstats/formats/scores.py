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
        name, frame = table.name, table.whole()
    elif isinstance(source, (Mapping, pd.DataFrame)):
        name = "table"
        given = pd.DataFrame({k: list(v) for k, v in source.items()}) if isinstance(source, Mapping) else source
        given = given.assign(**{"params": given["params"].map(str)} if "params" in given else {})
        (frame,) = from_frame(given.rename(columns=str), name).parts()
    else:
        raise InputError(f"`source` must be a file name, a data frame or a mapping; got {type(source).__name__}.")
    return frame.drop(columns=ROW_NAMES, errors="ignore"), name


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


def _long(
    frame: pd.DataFrame, names: Any, scores: Mapping[str, tuple[Any, Any]], fold: Any = None, repeat: Any = None
) -> pd.DataFrame:
    """Return the scores of columns, each with its fold (None: that of its row) and metric, below each other."""
    parts = [
        pd.DataFrame({"configuration": names, "metric": metric, "value": _numbers(frame, column)}).assign(
            fold=fold if own is None else own, **({} if repeat is None else {"repeat": repeat})
        )
        for column, (own, metric) in scores.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _like(frame: pd.DataFrame, pattern: str) -> list[str]:
    return [column for column in frame.columns if _fits(pattern, column)]


def _named(frame: pd.DataFrame, columns: Sequence[str], name: str) -> pd.Series:
    """Return names of configurations: one column as it is, several as tuning values, none as the table's name."""
    if not columns:
        return pd.Series(Path(name).stem, index=frame.index)
    if len(columns) == 1 and _fits(rf"{NAME}|\.config", columns[0]):
        return pd.Series(texts(frame[columns[0]]), index=frame.index)
    return tuple_names(frame, columns).astype(str)


def _numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    if not numeric(frame[column]):
        raise InputError(f"column {column!r} must hold numbers.")
    return numbers_of(frame[column])


def _scores(frame: pd.DataFrame) -> list[str]:
    return [column for column in _like(frame, KNOWN) if numeric(frame[column])]


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
    return _long(frame, names, {columns["score"]: (None, metric)}, frame[columns["fold"]], repeat)


def _sklearn(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    tuning = frame[[column for column in frame.columns if column.startswith("param_")]]
    tuning = tuning.rename(columns=lambda column: column.removeprefix("param_"))
    names = tuple_names(tuning, [*tuning]).astype(str) if len(tuning.columns) else _named(frame, ["params"], name)
    return _long(frame, names, {c: (int(m[1]), m[2]) for c in frame.columns if (m := SPLIT.fullmatch(c))})


def _cross_validate(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    scores = {c: (None, c.removeprefix("test_")) for c in frame.columns if c.startswith("test_")}
    return _long(frame, Path(name).stem, scores, range(len(frame)))


def _tidymodels(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    if ".estimate" not in frame or "id" not in frame:
        raise InputError(f"tidymodels: {AVERAGED}; save collect_metrics(x, summarize = FALSE).")
    names = _named(frame, [column for column in ("wflow_id", ".config") if column in frame], name)
    fold, repeat = (frame["id2"], frame["id"]) if "id2" in frame else (frame["id"], None)
    return _long(frame, names, {".estimate": (None, texts(frame[".metric"]))}, fold, repeat)


def _caret(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    scores, split = _scores(frame), pd.Series(texts(frame["Resample"]))
    names = _named(frame, [column for column in frame.columns if column not in (*scores, "Resample")], name)
    found = split.str.extract(REPEATED)
    fold, repeat = (found[0], found[1]) if found.notna().all(axis=None) else (split, None)
    return _long(frame, names, {column: (None, column) for column in scores}, fold, repeat)


def _mlr3(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    for column in ("task_id", "resampling_id"):
        if column in frame and len(frame[column].unique()) > 1:
            raise InputError(
                f"mlr3: several values of {column!r} ({show(frame[column].unique())}); save one at a time."
            )
    scores = {column: (None, column) for column in frame.columns if re.fullmatch(r"(classif|regr)\..+", column)}
    return _long(frame, _named(frame, ["learner_id"], name), scores, frame["iteration"])


def _optuna(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    places = {c: (int(m[2]), m[3] or m[1] or "value") for c in frame.columns if (m := ATTRIBUTE.fullmatch(c))}
    if not places:
        raise InputError(
            f"Optuna: {AVERAGED}; keep them with trial.set_user_attr(f'fold{{i}}', score) and save trials_dataframe()."
        )
    if "state" in frame:
        frame = frame[frame["state"].astype(str) == "COMPLETE"]
    names = pd.Series([f"trial {number}" for number in texts(frame["number"])], index=frame.index)
    return _long(frame, names, places)


def _any_long(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    fold, repeat, value, kind = (_like(frame, need) for need in (FOLD, REPEAT, VALUE, "metric|measure"))
    scores = value if kind and value else _scores(frame)
    if len(fold) != 1 or not scores or (kind and len(scores) != 1):
        raise InputError(
            f"the columns of folds ({show(fold)}) or scores ({show(scores)}) are not clear; name them with `columns`."
        )
    rest = [column for column in frame.columns if column not in (*fold, *repeat, *scores, *kind)]
    metric = {column: (None, texts(frame[kind[0]]) if kind else column) for column in scores}
    again = texts(frame[repeat[0]]) if repeat else None
    return _long(frame, _named(frame, _like(frame, NAME)[:1] or rest, name), metric, texts(frame[fold[0]]), again)


def _any_wide(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    places = {c: (int(m[1]), m[2] or "score") for c in frame.columns if (m := WIDE.fullmatch(c))}
    rest = [column for column in frame.columns if column not in places and not _fits("mean.*|std.*|rank.*", column)]
    return _long(frame, _named(frame, _like(frame, NAME)[:1] or rest, name), places)


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

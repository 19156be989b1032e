"""Columns of tables: how values are written and compared, and what columns say about each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cvstats._check import InputError

WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|Inf|nan|NaN)")
NUMBERED = re.compile(r"(\D*)(\d{1,18})")
TRUE_FALSE = {"True": True, "False": False, "TRUE": True, "FALSE": False, "true": True, "false": False}


def texts(values: Iterable[Any]) -> list[str]:
    """Return values as text in the shortest form that reads back: 2.0 is "2", True is "True"."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return list(map(str, values.tolist()))
    out = []
    for value in values:
        if isinstance(value, str):
            out.append(str(value))
            continue
        value = value.item() if isinstance(value, np.generic) else value
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        out.append(str(int(value)) if whole else str(value))
    return out


def plain(name: str) -> str:
    """Return a name in lower case without punctuation."""
    return re.sub(r"[\W_]", "", name).lower()


def words(column: Any) -> set[str]:
    """Return the distinct values of a column as they are written."""
    return set(texts(pd.Series(column).dropna().unique()))


def natural(values: np.ndarray, *, ids: bool = False) -> np.ndarray:
    """Return distinct values read as text in their natural type, when nothing is lost by it.

    Whole numbers become integers only if written without leading zeros; ``ids`` never become fractions or booleans,
    and stay text where two of them are the same number (1 and 1.0).
    """
    array = np.asarray(values)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "f" and array.size and np.all(array == np.floor(array)) and np.all(np.abs(array) < 2**53):
        return array.astype(np.int64) if ids else array
    if array.dtype.kind not in "OUT" or not array.size or not all(isinstance(value, str) for value in array):
        return array
    if all(WHOLE.fullmatch(value) for value in array):
        return np.array([int(value) for value in array], np.int64)
    if all(NUMBER.fullmatch(value) for value in array) and not any(re.match(r"-?0\d", value) for value in array):
        numbers = np.array([float(value) for value in array])
        whole = bool(np.all((numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)))
        if not ids or (whole and len(np.unique(numbers)) == len(array)):
            return numbers.astype(np.int64) if ids else numbers
    if not ids and all(value in TRUE_FALSE for value in array):
        return np.array([TRUE_FALSE[value] for value in array])
    return array.astype(str)


def natural_column(column: pd.Series, *, ids: bool = False) -> pd.Series:
    """Return a column of text in its natural type, converting each distinct value once."""
    if not isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.kind in "biuf":
        return column
    codes, found = pd.factorize(column)
    if not len(found):
        return pd.Series(np.nan, index=column.index)
    return pd.Series(natural(np.asarray(found), ids=ids)).reindex(codes).set_axis(column.index)


def numeric(column: pd.Series) -> bool:
    """Return whether every value can be read as a number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return all(is_number(str(value)) for value in column.cat.categories)
    return column.dtype.kind in "iuf" or bool(column.dtype == object and column.isna().all())


def is_number(text: str) -> bool:
    """Return whether text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.strip().isascii()  # Python reads 1_0 and the digits of all scripts


def numbers_of(column: pd.Series) -> np.ndarray:
    """Return a column as floats, NaN where missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = np.array([float(value) for value in column.cat.categories] + [np.nan])
        return np.asarray(values[column.cat.codes.to_numpy()])
    return column.to_numpy(dtype=float, na_value=np.nan)


def repeats_of_iterations(sample: pd.Series, iteration: pd.Series) -> np.ndarray:
    """Return the repeat (from 0) of each row when only resampling iterations are named.

    Iterations are taken in the order of their numbers, else of appearance; a new repeat begins with the first iteration
    that holds out a sample the current repeat has already seen. Folds of one partition thus share a repeat; bootstrap
    and hold-out iterations, which overlap, become repeats of their own.
    """
    samples, n = pd.factorize(sample)[0], int(sample.nunique())
    codes, names = _numbered(iteration)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    seen = np.zeros(n, bool)
    number = np.zeros(len(names), np.int64)
    current = 0
    for i in range(len(names)):
        members = samples[order[bounds[i] : bounds[i + 1]]]
        if seen[members].any():
            current += 1
            seen[:] = False
        seen[members] = True
        number[i] = current
    return np.asarray(number[codes])


def splits_in_repeats(
    sample: pd.Series, configuration: pd.Series, split: pd.Series
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the repeat of each row and its fold within that; no folds where splits do not partition the samples."""
    rows = pd.DataFrame({"configuration": configuration, "split": split.cat.codes, "repeat": 0})
    for own in rows.groupby("configuration", sort=False).indices.values():
        rows.loc[own, "repeat"] = repeats_of_iterations(sample.iloc[own], split.iloc[own])
    repeat = rows["repeat"].to_numpy()
    counts = rows.groupby(["configuration", "repeat"])["split"].agg(["nunique", "size"])
    most = counts["size"].groupby("configuration").transform("max")
    whole = (counts["size"] == most).all() and (counts["nunique"] > 1).all()
    return repeat, folds_within_repeats(repeat, split) if whole else None


def folds_within_repeats(repeat: np.ndarray, iteration: np.ndarray | pd.Series) -> np.ndarray:
    """Return fold numbers from 0 within each repeat, in the order of the iterations, which are numbered throughout."""
    codes = _numbered(iteration)[0]
    first = pd.Series(codes).groupby(repeat).transform("min").to_numpy()
    return np.asarray(codes - first)


def _numbered(iteration: np.ndarray | pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and names of iterations: by their numbers (3, Resample03), whatever the order of the rows."""
    codes, names = pd.factorize(iteration)
    parts = [NUMBERED.fullmatch(name) for name in texts(names)]
    if len({part and part[1] for part in parts}) != 1 or parts[0] is None:
        return codes, np.asarray(names)
    order = np.argsort([int(part[2]) for part in parts if part], kind="stable")
    return np.argsort(order)[codes], np.asarray(names)[order]


def tuple_names(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Return one name per distinct tuple of tuning values, such as ``C=0.5, sigma=1``."""
    if not columns:
        raise InputError("no columns to name configurations by.")
    parts = [pd.factorize(frame[name], use_na_sentinel=False) for name in columns]
    key = np.zeros(len(frame), np.int64)
    for codes, found in parts:
        key = key * max(len(found), 1) + codes
    codes, _ = pd.factorize(key)
    first = np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())
    labels = [texts(_kept_apart(np.asarray(found))[part[first]]) for part, found in parts]
    names = [
        ", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=True))
        for row in zip(*labels, strict=True)
    ]
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(names)), index=frame.index)


def _kept_apart(values: np.ndarray) -> np.ndarray:
    """Return distinct values in their natural type, unless two of them would become one."""
    out = natural(values)
    return out if len(pd.unique(out)) == len(values) else values


def first_is_constant(key: pd.Series, column: pd.Series) -> bool:
    """Return whether `column` has one value for each value of `key`."""
    return constant(*(pd.factorize(values, use_na_sentinel=False)[0] for values in (key, column)))


def constant(index: np.ndarray, codes: np.ndarray) -> bool:
    """Return whether every place has one code."""
    return bool((first_codes(index, codes)[index] == codes).all())


def first_codes(index: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the first code of each place."""
    store = np.full(int(index.max(initial=-1)) + 1, -1)
    store[index[::-1]] = codes[::-1]
    return store


def refuse_unused(unused: Mapping[str, pd.Series], *key: pd.Series) -> None:
    """Raise when rows of one `key` would be counted as repeats while a column that is not used tells them apart."""
    codes = pd.Series(pd.DataFrame(dict(enumerate(key))).groupby(list(range(len(key))), observed=True).ngroup())
    apart = [name for name, column in unused.items() if not first_is_constant(codes, column)]
    if apart:
        raise InputError(
            f"rows of one sample differ in column {apart[0]!r}, which this layout does not know, so that they cannot "
            f"be counted as repeats. Say what it is with columns={ {'configuration': apart[0]} } (or 'repeat', "
            "'fold'), or drop it."
        )

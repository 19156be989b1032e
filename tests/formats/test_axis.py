"""Labels and cells of text are numbered as a dictionary that sees one after the other numbers them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cvstats.formats import _axis
from cvstats.formats._axis import Axis, TextColumn, fractions_of

WORDS = ["", "NA", "7", "07", "x" * 7, "x" * 8, "x" * 9, "x" * 16, "x" * 17, "y" + "x" * 8, "x" * 8 + "y",
         "a long name: 1", "a long name: 2", "b long name: 2", "\u00e9", "\u00e9" * 9]  # fmt: skip


def check_axis(columns, seen):
    """Number columns one after the other; `seen` are the rows of each, None where missing."""
    axis, places = Axis(), {}
    for column, rows in zip(columns, seen, strict=True):
        codes = axis.codes(column, text=True)
        assert codes.tolist() == [-1 if row is None else places.setdefault(row, len(places)) for row in rows]
    assert [*axis.places.items()] == [*places.items()]


@pytest.mark.parametrize("count", [1, 2, 3, 126, 127, 128, 300])
def test_categories_are_numbered_as_they_are_first_seen(count):
    """In order or not, some of them unused or twice, with rows missing at first, and across blocks of 256 rows."""
    g, names = np.random.default_rng(count), np.array([f"c{k}" for k in range(count)])
    ordered = np.sort(g.integers(0, count, 700))
    steady = np.unique(ordered, return_inverse=True)[1]  # every one of its categories is used
    whole = np.append(np.arange(count), g.integers(0, count, 700))
    late = np.append(np.zeros(600, int), np.arange(count))
    back = np.append(np.resize(np.arange(count)[::-1], 256), np.resize(np.arange(count), 600))
    skip = [*np.resize(np.arange(max(count - 2, 1)), 256), *[count - 1, 0] * 128, max(count - 2, 0), count - 1]
    every = [ordered, steady, np.array(skip), whole, late, whole[::-1], g.permutation(whole), np.maximum(whole - 1, 0),
             back, whole[: count - 1], np.arange(0, count, 2), np.full(3, -1), np.array([], int)]  # fmt: skip
    for codes in every:
        gap = np.where(g.random(len(codes)) < 0.1, -1, codes)
        for rows in (codes, np.append([-1], codes), gap, np.append(gap, [-1] * 300)):
            column = pd.Series(pd.Categorical.from_codes(rows, categories=names))
            seen = [names[code] if code >= 0 else None for code in rows]
            check_axis([column], [seen])
            check_axis([column[::-1], column, column.astype(object)], [seen[::-1], seen, seen])


def cut(blocks):
    """Return the column of blocks of cells, each between separators as in a file."""
    column = TextColumn(fraction=False)
    for cells in blocks:
        raw, ends = b"", []
        for cell in cells:
            raw += cell.encode()
            ends.append(len(raw))
            raw += b","
        starts = np.append(0, np.array(ends[:-1], np.int32) + 1)
        starts, ends = starts.astype(np.int32), np.array(ends, np.int32)
        column.cut(np.frombuffer(raw + _axis.PAD, np.uint8), starts, ends - starts)
    return column.whole()


def check_cut(blocks):
    cells = [cell for block in blocks for cell in block]
    kept = [*dict.fromkeys(cell for cell in cells if cell not in _axis.NA)]
    found = cut(blocks)
    assert found.categories.tolist() == kept
    assert found.codes.tolist() == [kept.index(cell) if cell in kept else -1 for cell in cells]


@pytest.mark.parametrize("few", [0, 8, 100])
@pytest.mark.parametrize("seed", range(20))
def test_cells_are_numbered_as_they_are_first_seen(seed, few, monkeypatch):
    """Runs, rows that come again, words that differ in any of their letters; the same in blocks of other lengths."""
    monkeypatch.setattr(_axis, "FEW", few)
    g, blocks = np.random.default_rng(seed), []
    for _ in range(12):
        rows, some = int(g.choice([1, 2, 7, 90])), g.permutation(WORDS)[: g.integers(1, len(WORDS) + 1)]
        k = np.arange(rows)
        places = [k, k // 9, k // 3, g.integers(0, 99, rows), np.where(k == rows - 1, 1, k % 5), k // 9 % 3, k % 7 == 3]
        place = places[g.integers(len(places))].astype(int)
        blocks.append(some[place % len(some)].tolist())
        check_cut(blocks[-1:])
    check_cut(blocks)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "b", "a"], WORDS, ["x" * 9 + str(k) for k in range(150)]])
def test_rounds_go_on_in_the_next_block(names, monkeypatch):
    """Wherever a block ends, and after a round that was broken off, or has one other name in it."""
    monkeypatch.setattr(_axis, "FEW", 0)
    g = np.random.default_rng(1)
    rows = np.resize(np.array(names, object), 2000)
    for change in (None, 700, 1999):
        rows = rows.copy()
        if change is not None:
            rows[change] = "other"
        cells = [*rows, *rows[37:], *rows[::-1]]
        edges = np.sort(g.integers(1, len(cells), 12))
        check_cut([block.tolist() for block in np.split(np.array(cells, object), np.unique(edges))])


@pytest.mark.parametrize("count", [127, 128, 129, 300])
def test_many_cells_and_single_letters_are_numbered_alike(count):
    """Numbers of one byte and of two, and letters that come after many other texts."""
    names, letters = [f"name {k}" for k in range(count)], [chr(k) for k in range(33, 127)]
    check_cut([names, letters, letters[::-1], names[::-1], ["a", *names]])
    check_cut([letters * 3 + ["~"] * 300 + ["\t"], names, letters])
    check_cut([["7"] * 300 + letters])
    check_cut([["b", "", "a", "b", "NA"], ["b", "", "a", "c"], ["", ""], [""]])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 100])
def test_fractions_are_read_from_where_they_are(n):
    numbers = np.random.default_rng(n).normal(size=n).tolist()
    raw, ends = b"", []
    for number in numbers:
        raw += f"id;{number!r}".encode()
        ends.append(len(raw))
        raw += b";rest\n"
    starts = np.array([raw.rfind(b";", 0, end) + 1 for end in ends])
    assert fractions_of(np.frombuffer(raw, np.uint8), starts, np.array(ends)).tolist() == numbers


@pytest.mark.parametrize(
    ("column", "text", "ids", "values", "kind"),
    [
        ([1.0, 2.0], False, False, [1.0, 2.0], "f"),
        ([1.0, 2.0], False, True, [1, 2], "i"),
        ([1, 2], False, False, [1, 2], "i"),
        ([0.5, 2.0], False, False, [0.5, 2.0], "f"),
        ([True, False], False, False, [True, False], "b"),
        ([True, False], False, True, ["True", "False"], "U"),
        (["1", "2"], False, False, ["1", "2"], "U"),
        (["1", "2"], True, False, [1, 2], "i"),
        (["a", "1"], True, False, ["a", "1"], "U"),
    ],
)
def test_values_of_an_axis_have_the_type_they_came_in(column, text, ids, values, kind):
    axis = Axis()
    codes = axis.codes(pd.Series(column), text)
    for found in (axis.values(ids=ids), axis.taken(codes, ids=ids)):
        assert found.tolist() == values
        assert found.dtype.kind == kind
    if not ids:
        assert axis.taken(codes).dtype.kind == kind
    some = axis.taken(np.array([1, -1, 0]), ids=ids)
    missing = axis.taken(np.array([1, -1, 0]), ids=ids, text=None)
    if kind in "if":
        for found in (some, missing):
            np.testing.assert_array_equal(found, [values[1], np.nan, values[0]])
        assert axis.taken(np.array([1, -1]), ids=ids, number=-1).tolist() == [values[1], -1]
    else:
        assert some.tolist() == [str(values[1]), "", str(values[0])]
        np.testing.assert_array_equal(missing, [values[1], np.nan if kind == "b" else None, values[0]])


def test_whole_numbers_that_floats_cannot_hold_stay_apart_beside_a_missing_one():
    axis, large = Axis(), [2**53, 2**53 + 1]
    codes = axis.codes(pd.Series([*map(str, large), None]), text=True)
    assert axis.taken(codes[:2]).tolist() == large
    assert axis.taken(codes).tolist() == [*map(str, large), ""]
    assert axis.taken(codes, number=-1).tolist() == [*large, -1]
    exact = Axis()
    codes = exact.codes(pd.Series([str(-(2**53)), str(2**53), None]), text=True)
    np.testing.assert_array_equal(exact.taken(codes), [-(2.0**53), 2.0**53, np.nan])

"""What makes a number doubtful is said in the one warning of the function that gives it, in the same words."""

import re
import warnings

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats import cli
from cvstats.report.analysis import Analysis
from cvstats.report.remarks import remarks_of
from shared import binary, survival

OPTIONS = {"times": 60, "rng": 1}
FOLDS = np.arange(60) // 2 % 5  # of pairs
PAIRS = np.repeat([f"p{i}" for i in range(30)], 2)


def warning_of(function, cube, metric="accuracy", **options):
    """Return the text of the one warning of a call, "" without one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(cube, metric, **OPTIONS, **options)
    assert len(caught) <= 1, [str(item.message) for item in caught]
    return str(caught[0].message) if caught else ""


def gappy(n, m, lost):
    """Return a cube in which the last `lost` of m configurations lack a sample each."""
    cube = binary(n, (m,), folds=np.arange(n) % 5, configurations=[f"c{j}" for j in range(m)])
    for j in range(m - lost, m):
        cube[j % n, j] = np.nan
    return cube


SPLIT = binary(60, groups=np.roll(PAIRS, 1), folds=FOLDS)
FEW = binary(60, groups=np.arange(60) % 6, folds=np.arange(60) % 3)
ALIKE = binary(60, folds=FOLDS).assign_coords(patient=("sample", PAIRS))
REVERSED = binary(60, folds=FOLDS)
REVERSED = cs.as_cube(1 - REVERSED.values, REVERSED.label.values, folds=FOLDS)
CASES = {
    "groups split": (
        SPLIT,
        "accuracy",
        "30 of 30 groups are split across folds ('p0', 'p1', 'p2', 'p3', 'p4' and 25 more), so models were judged on "
        "groups they were trained on: scores are too good",
    ),
    "few groups": (
        FEW,
        "accuracy",
        "only 6 independent groups: with fewer than 10 the interval cannot be trusted",
    ),
    "group not declared": (
        ALIKE,
        "accuracy",
        "coordinate 'patient' looks like a group (30 values for 60 samples, none split across folds) but is not "
        "declared, so samples count as independent: declare it as the group, or drop it",
    ),
    "pruned": (
        gappy(60, 300, 188),
        "accuracy",
        "188 of 300 configurations lacked predictions that others have and could not be selected "
        "('c112', 'c113', 'c114', 'c115', 'c116' and 183 more)",
    ),
    "below one half": (
        REVERSED,
        "auc",
        f"every AUC is below .5 (the best is {float(cs.score(REVERSED, 'auc').max()):.3f}): labels or scores are "
        "reversed, or nothing was learned",
    ),
}


@pytest.mark.parametrize("function", [cs.winner, cs.bbc])
@pytest.mark.parametrize("case", CASES)
def test_a_doubt_is_said_where_the_number_is_given(case, function):
    cube, metric, text = CASES[case]
    assert warning_of(function, cube, metric) == f"{function.__name__}: {text}."


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_command_line_says_each_doubt_once_and_the_report_in_the_same_words(case, tmp_path, capsys):
    cube, metric, text = CASES[case]
    cs.write_cube(cube, tmp_path / "cube.nc")
    command = ["estimate", str(tmp_path / "cube.nc"), "--metric", metric, "--draws", "60", "--json"]
    assert cli.main(command) == cli.OK
    assert capsys.readouterr().err.splitlines().count(f"warning: {text}") == 1
    found = Analysis(cube, metric, times=60)
    remarks = [remark.text for remark in remarks_of(found) if remark.care]
    assert remarks.count(f"{text[0].upper()}{text[1:]}.") == 1
    assert not any("winner:" in remark.lower() or "bbc:" in remark.lower() for remark in remarks)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case != "below one half"])  # which needs a metric
def test_describe_says_it_in_the_same_words(case, tmp_path, capsys):
    cube, _, text = CASES[case]
    cs.write_cube(cube, tmp_path / "cube.nc")
    assert cli.main(["describe", str(tmp_path / "cube.nc")]) == cli.OK
    assert f"! {text[0].upper()}{text[1:]}." in capsys.readouterr().out.splitlines()


def test_scattered_gaps_are_counted():
    """One percent of the cells, as a flaky job leaves them."""
    cube = binary(100, (14,))
    values = np.where(np.random.default_rng(3).random(cube.shape) < 0.01, np.nan, cube.values)
    lost = int(np.isnan(values).any(axis=0).sum())
    assert 5 < lost < 14
    text = warning_of(cs.winner, cube.copy(data=values))
    assert text.startswith(f"winner: {lost} of 14 configurations lacked predictions that others have")


def test_concordance_below_one_half_is_reversed_risk():
    cube = -survival(60)
    assert "every concordance is below .5 (the best is" in warning_of(
        cs.bbc, cube.assign_coords(kind="score"), "concordance"
    )
    assert warning_of(cs.bbc, survival(60), "concordance") == ""


def test_several_doubts_are_one_warning():
    cube = binary(60, groups=np.arange(60) % 6, folds=FOLDS)
    cube[3, 1] = np.nan
    text = warning_of(cs.winner, cube)
    order = [
        text.index(part) for part in ("6 of 6 groups are split", "; only 6 independent", "; 1 of 5 configurations")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("function", [cs.winner, cs.bbc])
def test_data_sets_in_a_batch_are_one_warning(function):
    first, second = gappy(60, 6, 2), gappy(60, 6, 1)
    both = xr.concat([first, second, first], dim="data_set", coords="different", compat="equals")
    assert warning_of(function, both).endswith(
        "2 of 6 configurations lacked predictions that others have and could not be selected in some cell ('c4', 'c5')."
    )
    one = binary(60, folds=FOLDS)
    batch = xr.concat([one, REVERSED], dim="data_set", coords="different", compat="equals")
    assert "every AUC is below .5 in 1 of 2 cells (the best is" in warning_of(function, batch, "auc")


def test_gaps_on_dask_are_said():
    pytest.importorskip("dask")
    cube = gappy(60, 6, 2)
    assert warning_of(cs.winner, cube.chunk(configuration=2)) == warning_of(cs.winner, cube) != ""


def test_configurations_dropped_on_purpose_are_no_doubt():
    cube = binary(60, folds=np.arange(60) // 12)
    cube[24:, 4] = np.nan
    assert warning_of(cs.bbcd, cube) == ""
    assert warning_of(cs.bbcd, SPLIT).startswith("bbcd: 30 of 30 groups are split across folds")


def test_a_column_of_a_table_that_looks_like_a_group(tmp_path, capsys):
    table = binary(60, (2,), folds=FOLDS).to_series().rename("prediction").reset_index()
    table["label"], table["fold"] = table["sample"] % 2, table["sample"] // 2 % 5
    table["patient"] = table["sample"] // 2
    table.to_csv(tmp_path / "t.csv", index=False)
    assert cli.main(["estimate", str(tmp_path / "t.csv"), "--draws", "60"]) == cli.OK
    assert "warning: coordinate 'patient' looks like a group (30 values for 60 samples" in capsys.readouterr().err
    declared = ["estimate", str(tmp_path / "t.csv"), "--draws", "60", "--columns", "group=patient"]
    assert cli.main(declared) == cli.OK
    assert "looks like a group" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "values",
    [
        np.arange(60) % 2,  # sex: split
        np.arange(60) / 7,  # a measurement: never repeated
        np.r_[0, 0, np.arange(58) + 1],  # one tie, by luck in one fold
        np.zeros(60),  # one site
        np.where(np.arange(60) < 50, "", "x"),  # mostly missing
        np.full(60, np.nan),
    ],
    ids=["split", "unique", "tie", "constant", "blank", "missing"],
)
def test_other_coordinates_do_not_look_like_groups(values):
    assert warning_of(cs.winner, binary(60, folds=FOLDS).assign_coords(x=("sample", values))) == ""
    assert warning_of(cs.winner, binary(60).assign_coords(x=("sample", values))) == ""


def test_groups_within_folds_and_samples_in_no_fold_are_no_doubt():
    folds = np.where(np.arange(60) < 58, FOLDS, -1)
    cube = binary(60, groups=np.where(np.arange(60) < 58, PAIRS, "p0"), folds=folds)
    cube[58:] = np.nan
    assert warning_of(cs.winner, cube) == ""


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
def test_bundled_cubes_raise_no_doubt(name):
    cube = cs.example_cube(name)
    for metric in {"breast_cancer": ["auc", "accuracy"], "diabetes": ["mse"], "iris": ["accuracy"]}[name]:
        for function in (cs.winner, cs.bbc):
            assert not re.search("groups|looks like|lacked|below", warning_of(function, cube, metric))

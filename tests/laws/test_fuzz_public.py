"""The rest of the public names on odd cubes, and a list that no public name can be missing from.

`test_fuzz.py` draws the cubes and runs the estimates; here are the metrics, nested and separate sampling, folds, files,
intervals, tables, figures, reports and simulators, under the same rule: a valid result or one of our own errors, never
a silent NaN, and the input stays as it was. More examples: ``FUZZ_EXAMPLES=500 pytest tests/laws/test_fuzz_public.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_fuzz as fuzz
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import cvstats as cs

fuzzed, watch, unchanged, sound, QUICK = fuzz.fuzzed, fuzz.watch, fuzz.unchanged, fuzz.sound, fuzz.QUICK
METRICS = [name for name in cs.__all__ if isinstance(getattr(cs, name), cs.Metric)]
Drawn = tuple[xr.DataArray, str]


@st.composite
def cubes(draw: st.DrawFn) -> Drawn | None:
    """Draw a cube as `test_fuzz` does, or with whole numbers, booleans, or another kind's metric."""
    drawn = draw(fuzz.cubes())
    if drawn is None:
        return None
    cube, metric = drawn
    if cube.chunks is None and str(cube["kind"].item()) == "label" and not bool(cube.isnull().any()):
        cube = cube.astype(draw(st.sampled_from([float, np.int8, np.uint16, bool])))
    if draw(st.integers(0, 7)) == 0:
        metric = draw(st.sampled_from(METRICS))
    return cube, metric


def inner_of(cube: xr.DataArray, seed: int) -> xr.DataArray:
    """Return inner predictions for a cube: its values shaken, NaN in the outer fold, sometimes with holes."""
    g = np.random.default_rng(seed)
    fold = cube["fold"] if "fold" in cube.coords else xr.zeros_like(cube["sample"], int)
    names = np.unique(fold.values)
    outer = xr.DataArray(names, dims="outer_fold", coords={"outer_fold": names})
    values = cube.compute().astype(float).where(fold != outer)
    if seed % 3 == 0:
        values = values.where(xr.DataArray(g.random(values.sizes["sample"]) < 0.9, dims="sample"))
    values = values.copy(data=np.roll(values.values, seed % 2, axis=values.get_axis_num("configuration")))
    return values.drop_vars("fold", errors="ignore").rename(cube.name)


def separate_of(cube: xr.DataArray, seed: int) -> xr.DataArray:
    """Return a separate-sampling cube over the samples and labels of a cube."""
    g = np.random.default_rng(seed)
    flat = cube.compute().isel({d: 0 for d in cube.dims if d not in ("sample", "configuration")}, drop=True)
    parts = 2 + seed % 2
    stack = xr.concat([flat.astype(float)] * parts, dim="partner").assign_coords(partner=np.arange(parts))
    fold = cs.separate_folds(flat["label"], 2, parts, rng=seed)
    stack = stack.drop_vars("fold", errors="ignore").assign_coords(
        fold=("sample", fold.values.reshape(-1)[: flat.sizes["sample"]])
    )
    return stack.where(xr.DataArray(g.random(stack.shape) < (1.0 if seed % 2 else 0.9), dims=stack.dims))


def own(y: np.ndarray, p: np.ndarray) -> float:
    return float(np.mean(y == (p > 0.5)))


def rate_of(cube: xr.DataArray) -> xr.Dataset:
    """Return a table of estimates of two methods over trials, as simulation studies make them."""
    with np.errstate(invalid="ignore"):
        x = cube.compute().astype(float).mean([d for d in cube.dims if d not in ("sample", "configuration")])
    x = x.drop_vars([c for c in x.coords if c not in x.dims]).rename(sample="trial", configuration="method")
    return cs.bias_table(x, 0.5, dim="trial")


def _axes(draw: Callable[[], Any]) -> Any:
    import matplotlib.pyplot as plt

    try:
        out = draw()
        if out is not None:
            (out.ravel()[0] if isinstance(out, np.ndarray) else out).figure.canvas.draw()
        return None
    finally:
        plt.close("all")


def round_trip(cube: xr.DataArray, suffix: str) -> None:
    """Write and read: stores lose nothing, tables nothing that they hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"cube{suffix}"
        cs.write_cube(cube, path)
        assert [name.name for name in Path(folder).iterdir()] == [path.name]
        back = cs.read_predictions(path)
        if suffix in (".nc", ".cube"):
            assert back.drop_attrs().identical(cube.compute().drop_attrs())
            cs.write_cube(cube, path.with_suffix(".cube"), append=True)  # again: nothing is new
            cs.compact_cube(path.with_suffix(".cube"))
            again = cs.read_cube(path.with_suffix(".cube"), chunks={})
            assert again.compute().drop_attrs().identical(cube.compute().drop_attrs())
        cs.load_report(back)


def from_frame(cube: xr.DataArray) -> xr.DataArray:
    from cvstats.formats.long import long_frame

    return cs.read_predictions(long_frame(cube.compute()))


def fold_of(cube: xr.DataArray) -> xr.DataArray:
    return cube["fold"] if "fold" in cube.coords else cs.kfold(cube["label"], 2, rng=1)


def scores_of(cube: xr.DataArray) -> xr.DataArray:
    """Return the values of a cube as if they were scores of folds."""
    return cube.compute().astype(float).drop_vars([c for c in cube.coords if c not in cube.dims]).rename(sample="fold")


def scores_of_table(cube: xr.DataArray) -> None:
    scores = scores_of(cube)
    scores = scores.isel(dict.fromkeys(set(scores.dims) - {"configuration", "fold", "repeat"}, 0))
    table = scores.to_dataframe(name="points").reset_index()
    columns = {str(dim): str(dim) for dim in scores.dims} | {"score": "points"}
    back = cs.read_scores(table, columns=columns, direction="maximize", repeats=None if "repeat" in scores.dims else 1)
    np.testing.assert_array_equal(np.sort(back.values, axis=None), np.sort(scores.values, axis=None))


def page(cube: xr.DataArray, metric: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = cs.report_html(cube, metric, path=Path(folder) / "r.html", times=40)
        text = path.read_text(encoding="utf-8")
        assert text.endswith("</html>")
        assert ">nan<" not in text.lower()


def sites_of(cube: xr.DataArray, metric: str, seed: int) -> xr.Dataset:
    """Return scores as if configurations were sites, some of them with a standard error."""
    score = cs.score(cube, metric)
    error = np.abs(score) * np.random.default_rng(seed).choice([0.0, 1e-9, 0.1, 3.0], score.shape)
    return xr.Dataset({"estimate": score, "std_error": error})


CUBES: dict[str, Callable[[xr.DataArray, str, int], Any]] = {
    **{name: (lambda c, m, s, name=name: getattr(cs, name)(c)) for name in METRICS},
    "prior_error": lambda c, m, s: cs.score(c, cs.prior_error([0.5, 0.01, {0: 0.3, 1: 0.7}][s % 3])),
    "as_metric": lambda c, m, s: cs.bbc(c, cs.as_metric(own, direction="maximize", range=(0, 1)), **QUICK),
    "ncv": lambda c, m, s: cs.ncv(c, m, inner=inner_of(c, s), average=["fold", "pooled"][s % 2]),
    "winner_inner": lambda c, m, s: cs.winner(c, m, inner=inner_of(c, s), **QUICK),
    "implementations": lambda c, m, s: cs.implementations(
        c, m, inner=inner_of(c, s), training=inner_of(c, s + 1), leaky=c
    ),
    "evaluation_protocols": lambda c, m, s: cs.evaluation_protocols(
        c, m, selection=c, external=c, first=1, dim="trial"
    ),
    "evaluation_protocols_inner": lambda c, m, s: cs.evaluation_protocols(c, m, inner=inner_of(c, s), dim="trial"),
    "separate_cv": lambda c, m, s: cs.separate_cv(separate_of(c, s), prior=[None, 0.3, [0.2, 0.8]][s % 3], **QUICK),
    "classical_cv": lambda c, m, s: cs.classical_cv(separate_of(c, s), **QUICK),
    "prior_curve": lambda c, m, s: cs.prior_curve(separate_of(c, s), **QUICK),
    "kfold": lambda c, m, s: cs.kfold(
        c["label"], [2, 3, "loo", 1][s % 4], repeats=1 + s % 2, stratified=s % 3 > 0, rng=s
    ),
    "kfold_groups": lambda c, m, s: cs.kfold(c["label"], 2, groups=c.coords.get("group"), rng=s),
    "separate_folds": lambda c, m, s: cs.separate_folds(c["label"], 2, 1 + s % 3, rng=s),
    "pairs": lambda c, m, s: cs.pairs(cs.separate_folds(c["label"], 2, 2, rng=s)),
    "train_test": lambda c, m, s: cs.train_test(fold_of(c)),
    "nested_folds": lambda c, m, s: cs.nested_folds(fold_of(c), [None, 2, 3][s % 3], stratified=s % 2 > 0, rng=s),
    "select_within": lambda c, m, s: cs.cvt(c, m, select=cs.select_within([0.0, 0.1, 1e300][s % 3])),
    "contrast_families": lambda c, m, s: cs.contrast(
        c, m, a=c["configuration"].values[:1].tolist(), b=c["configuration"].values[-1:].tolist(), **QUICK
    ),
    "bca": lambda c, m, s: cs.winner(c, m, interval=cs.bca(), **QUICK),
    "delong": lambda c, m, s: cs.winner(c, m, interval=cs.delong(), **QUICK),
    "wilson": lambda c, m, s: cs.winner(c, m, interval=cs.wilson(), **QUICK),
    "percentile": lambda c, m, s: cs.winner(c, m, interval=cs.percentile(), **QUICK),
    "double_bootstrap": lambda c, m, s: cs.winner(c, m, interval=cs.double_bootstrap(), times=20, rng=1),
    "calibrated": lambda c, m, s: cs.winner(c, m, interval=cs.calibrated(), level=[0.5, 0.99, 0.8][s % 3], **QUICK),
    "bbc_folds": lambda c, m, s: cs.bbc_folds(scores_of(c), direction=["maximize", "minimize"][s % 2], **QUICK),
    "read_predictions": lambda c, m, s: from_frame(c),
    "read_scores": lambda c, m, s: scores_of_table(c),
    "write_cube": lambda c, m, s: round_trip(c, [".nc", ".cube", ".csv", ".parquet", ".feather"][s % 5]),
    "tidy_scores": lambda c, m, s: cs.tidy(cs.score(c, m)),
    "format_table": lambda c, m, s: cs.format_table(cs.cvt(c, m), ["text", "markdown", "latex", "html"][s % 4]),
    "bind_named": lambda c, m, s: cs.tidy(cs.bind(one=cs.cvt(c, m), two=cs.cvm_cv(c, m))),
    "augment": lambda c, m, s: cs.augment(c, cs.bbc(c, m, keep_draws=True, **QUICK)),
    "report_text": lambda c, m, s: cs.report_text(c, m, times=40, format=["text", "latex", "markdown"][s % 3]),
    "summary": lambda c, m, s: str(cs.summary(c, m, times=40)) if s % 2 else str(cs.summary(cs.cvt(c, m))),
    "report_html": lambda c, m, s: page(c, m) if s % 4 == 0 else None,
    "meta_analysis": lambda c, m, s: cs.meta_analysis(
        sites_of(c, m, s), "configuration", scale=["auto", "none"][s % 2]
    ),
    "plot_forest": lambda c, m, s: _axes(lambda: cs.plot_forest(sites_of(c, m, s))),
    "plot_bias": lambda c, m, s: _axes(lambda: cs.plot_bias(rate_of(c).expand_dims(size=[1]))),
    "plot_intervals": lambda c, m, s: _axes(lambda: cs.plot_intervals(cs.bind(cs.cvt(c, m), cs.bbc(c, m, **QUICK)))),
    "plot_win_rates": lambda c, m, s: _axes(lambda: cs.plot_win_rates(cs.bbc(c, m, **QUICK))),
    "plot_optimism": lambda c, m, s: _axes(lambda: cs.plot_optimism(cs.optimism_curve(c, m, **QUICK))),
    "plot_dropping": lambda c, m, s: _axes(lambda: cs.plot_dropping(cs.bbcd(c, m, min_predictions=2, **QUICK))),
    "plot_configurations": lambda c, m, s: _axes(lambda: cs.plot_configurations(cs.best_set(c, m, **QUICK))),
    "plot_scores_by": lambda c, m, s: _axes(lambda: cs.plot_scores_by(cs.score(c, m), "configuration")),
    "plot_roc": lambda c, m, s: _axes(lambda: cs.plot_roc(cs.roc_curve(c, **QUICK))),
    "plot_precision_recall": lambda c, m, s: _axes(
        lambda: cs.plot_precision_recall(cs.precision_recall_curve(c, **QUICK))
    ),
    "plot_calibration": lambda c, m, s: _axes(
        lambda: cs.plot_calibration(cs.calibration_curve(c, binned=s % 2 > 0, **QUICK))
    ),
    "plot_decision": lambda c, m, s: _axes(lambda: cs.plot_decision(cs.decision_curve(c, **QUICK))),
    "plot_prior": lambda c, m, s: _axes(lambda: cs.plot_prior(cs.prior_curve(separate_of(c, s), **QUICK))),
}
ESTIMATES = {
    "ncv",
    "winner_inner",
    "select_within",
    "bca",
    "delong",
    "wilson",
    "percentile",
    "double_bootstrap",
    "calibrated",
}


@pytest.mark.parametrize("name", CUBES)
@given(drawn=cubes(), seed=st.integers(0, 59))
@fuzzed
def test_functions_of_cubes(name: str, drawn: Drawn | None, seed: int) -> None:
    if drawn is None:
        return
    cube, metric = drawn
    before = cube.copy(deep=True)
    out, notes = watch(lambda: CUBES[name](cube, metric, seed))
    unchanged(before, cube)
    if out is not None and name in {*ESTIMATES, *METRICS}:
        sound(out, notes, getattr(cs, name if name in METRICS else metric))
    elif isinstance(out, xr.Dataset) and "estimate" in out and bool(out["estimate"].isnull().all()):
        assert notes, "NaN without a warning"


# --- functions of numbers, and simulators -------------------------------------------------------------------------
SIZES = st.sampled_from([-1, 0, 1, 2, 7, 40])
SHARES = st.sampled_from([-0.1, 0.0, 1e-300, 0.3, 1.0, 1.1, float("nan"), float("inf")])


def _coverage(n: int, share: float) -> xr.Dataset:
    def simulator(g: np.random.Generator) -> Any:
        cube = cs.simulate_cube(n, 2, folds=2, rng=g)
        return cube, float(cube["truth"].max())

    def method(cube: xr.DataArray, rng: np.random.Generator) -> xr.Dataset:
        return cs.bbc(cube, "accuracy", times=20, rng=rng, level=share)

    return cs.coverage(simulator, method, repetitions=3, rng=1)


def _draw_table(x: xr.DataArray) -> None:
    _axes(lambda: cs.plot_critical_difference(cs.critical_difference(x, "trial", by="method", direction="minimize")))


NUMBERS: dict[str, Callable[[int, int, float], Any]] = {
    "simulate_cube": lambda n, c, p: cs.simulate_cube(n, c, folds=2, dependence=p, repeats=1 + c % 2, rng=1),
    "simulate_cube_beta": lambda n, c, p: cs.simulate_cube(n, c, folds=2, beta=(p, 2), inner=True, rng=1),
    "separate_gaussian": lambda n, c, p: cs.separate_gaussian(n, ratio=p, folds=max(c, 1), rng=1),
    "separate_gaussian_prior": lambda n, c, p: cs.separate_gaussian(40, prior=p, folds=2, k0=c, rng=1),
    "ripley_mixture": lambda n, c, p: cs.ripley_mixture(n, ridge=[1.0], eta=[1.0], variance=p, folds=c, rng=1),
    "expected_maximum": lambda n, c, p: cs.expected_maximum(p, n, c),
    "coverage": lambda n, c, p: _coverage(n, p),
    "kfold": lambda n, c, p: cs.kfold(np.arange(max(n, 0)) % 2, c, rng=1),
    "example_cube": lambda n, c, p: cs.example_cube(["iris", "none", ""][n % 3]) if n % 3 else None,
    "prior_error": lambda n, c, p: cs.prior_error(p),
    "select_within": lambda n, c, p: cs.select_within(p),
}


@pytest.mark.parametrize("name", NUMBERS)
@given(n=SIZES, c=SIZES, p=SHARES)
@settings(fuzzed, max_examples=4 * fuzz.EXAMPLES)
def test_functions_of_numbers(name: str, n: int, c: int, p: float) -> None:
    out, notes = watch(lambda: NUMBERS[name](n, c, p))
    parts = out if isinstance(out, tuple) else (out,)
    for part in parts:
        if isinstance(part, xr.DataArray) and part.dtype.kind == "f":
            assert not bool(part.isnull().all()) or notes


@pytest.mark.parametrize("name", ["select_best", "select_one_se", "select_within"])
@given(x=fuzz.tables(), higher=st.booleans(), cost=st.booleans())
@settings(fuzzed, max_examples=4 * fuzz.EXAMPLES)
def test_selection(name: str, x: xr.DataArray, higher: bool, cost: bool) -> None:
    scores = np.asarray(x.values, float)
    before = scores.copy()
    select: Any = cs.select_within(0.5) if name == "select_within" else getattr(cs, name)
    more: dict[str, Any] = {"complexity": np.arange(scores.shape[-1])[::-1].astype(float)} if cost else {}
    if name == "select_one_se":
        more["std_error"] = np.abs(np.nan_to_num(scores, nan=0.0, posinf=1.0, neginf=1.0))
    index, _ = watch(lambda: select(scores, direction="maximize" if higher else "minimize", **more))
    assert np.array_equal(before, scores, equal_nan=True)
    if index is not None:
        assert np.asarray(index).shape == scores.shape[:-1]
        assert np.all((np.asarray(index) >= -1) & (np.asarray(index) < scores.shape[-1]))


@given(x=fuzz.tables())
@settings(fuzzed, max_examples=fuzz.EXAMPLES)
def test_drawn_ranks(x: xr.DataArray) -> None:
    watch(lambda: _draw_table(x))


@pytest.mark.parametrize("p", [0.3, float("nan"), 2.0])
def test_drawn_coverage(p: float) -> None:
    watch(lambda: _axes(lambda: cs.plot_coverage(_coverage(20, p).expand_dims(size=[1, 2]), x="size")))


# --- nothing is left out ------------------------------------------------------------------------------------------
ELSEWHERE = {
    "__version__": "text",
    "CvstatsWarning": "a class of warnings, which every run watches",
    "InputError": "a class of errors, which every run watches",
    "Metric": "the class of the metrics, all of which are run",
    "load_report": "run by write_cube and in test_fuzz_readers",
    "read_cube": "run by write_cube and in test_fuzz_readers",
    "compact_cube": "run by write_cube and in test_store_machine",
    "select_best": "test_selection",
    "select_one_se": "test_selection",
    "plot_critical_difference": "test_drawn_ranks",
    "plot_coverage": "test_drawn_coverage",
    "as_cube": "test_as_cube_settles_or_refuses and test_as_cube_on_anything",
}


def ran() -> Iterator[str]:
    yield from CUBES
    yield from NUMBERS
    for runs in (fuzz.ESTIMATES, fuzz.OTHERS, fuzz.TESTS):
        yield from runs


def test_every_public_name_is_fuzzed() -> None:
    done = set(ran())
    missing = [name for name in cs.__all__ if name not in done and name not in ELSEWHERE]
    assert missing == []
    assert [name for name in ELSEWHERE if name not in cs.__all__] == []

"""The meta-analysis of sites, against metafor, by hand and from predictions of sites left out."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import cvstats as cs

R = json.loads((Path(__file__).parents[1] / "reference" / "sites.json").read_text())


def dataset(estimate, error, metric="auc"):
    values = {"estimate": ("site", estimate), "std_error": ("site", error)}
    return xr.Dataset(values, coords={"site": np.arange(len(estimate)), "metric": metric})


@pytest.mark.parametrize("scale", ["none", "auto"])
@pytest.mark.parametrize("name", R["cases"])
def test_equals_metafor(name, scale):
    case, found = R["cases"][name], R["found"][name][scale]
    out = cs.meta_analysis(dataset(case["y"], case["s"]), "site", scale=scale)
    for key, value in found.items():
        assert out[key].item() == pytest.approx(value, abs=1e-10), key
    assert out["scale"].item() == {"none": "none", "auto": "log odds"}[scale]
    k = len(case["y"])
    assert (out.df, out.n) == (k - 1, k)
    assert out.i2.item() == pytest.approx(max(0, 1 - (k - 1) / found["statistic"]))


def test_losses_are_combined_as_logarithms():
    y, s = np.array([1.2, 0.8, 2.0]), np.array([0.2, 0.1, 0.5])
    out = cs.meta_analysis(dataset(y, s, "mse"), "site")
    same = cs.meta_analysis(dataset(np.log(y), s / y, "none"), "site")
    assert out["scale"].item() == "logarithm"
    for name in ("estimate", "conf_low", "conf_high", "predict_low", "predict_high"):
        assert out[name].item() == pytest.approx(np.exp(same[name].item()))
    assert out.std_error.item() == pytest.approx(same.std_error.item() * out.estimate.item())
    r2 = cs.meta_analysis(dataset([0.5, 0.2, 0.7], [0.1, 0.1, 0.1], "r2"), "site")  # the best end is the upper one
    assert r2.conf_low < r2.estimate < r2.conf_high < 1


def test_sites_without_an_estimate_are_left_out():
    with pytest.warns(cs.CvstatsWarning, match=r"no estimate with a standard error for site 1, 3; left out"):
        out = cs.meta_analysis(dataset([0.8, np.nan, 0.7, 0.9], [0.1, 0.1, 0.1, 0.0]), "site")
    assert out.n == 2
    assert np.isnan(out.predict_low)
    assert np.isfinite(out.conf_low)
    with pytest.warns(cs.CvstatsWarning, match="site 1; left out; fewer than two of site") as caught:
        one = cs.meta_analysis(dataset([0.8, np.nan], [0.1, 0.1]), "site")
    assert len(caught) == 1
    assert np.isnan(one.estimate)


def test_an_estimate_at_the_end_of_its_range():
    with pytest.warns(cs.CvstatsWarning, match="at the end of its range"):
        out = cs.meta_analysis(dataset([1.0, 0.9, 0.8], [0.1, 0.1, 0.1]), "site")
    xr.testing.assert_allclose(out, cs.meta_analysis(dataset([1.0, 0.9, 0.8], [0.1, 0.1, 0.1]), "site", scale="none"))


def test_predictions_of_sites_left_out():
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(6), 25)
    label = (rng.random(150) < 0.5).astype(int)
    scores = label[:, None] + rng.normal(size=(150, 4)) * 1.2
    cube = cs.as_cube(scores, label, kind="score", folds=site, groups=site).assign_coords(site=("sample", site))
    sites = cs.winner(cube, ["auc", "average_precision"], subgroup="site", times=100, rng=1)
    out = cs.meta_analysis(sites, "site")
    assert out.estimate.dims == ("metric",)
    alone = cs.meta_analysis(sites.sel(metric="auc"), "site")
    assert alone.estimate.item() == pytest.approx(out.estimate.sel(metric="auc").item())
    assert (out.predict_low <= out.conf_low).all()
    assert (out.n == 6).all()
    ax = cs.plot_forest(sites.sel(metric="auc"), summary=alone)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["0", "1", "2", "3", "4", "5", "mean over all", "a new one"]
    assert len(cs.plot_forest(sites.sel(metric="auc")).get_yticklabels()) == 6


def test_refusals():
    good = dataset([0.8, 0.7], [0.1, 0.1])
    with pytest.raises(cs.InputError, match="`results` must be a Dataset with `estimate` and `std_error`"):
        cs.meta_analysis(good.drop_vars("std_error"), "site")
    with pytest.raises(cs.InputError, match="`dim`='centre' is not a dimension"):
        cs.meta_analysis(good, "centre")
    with pytest.raises(cs.InputError, match="`scale`"):
        cs.meta_analysis(good, "site", scale="log")
    with pytest.raises(cs.InputError, match="`results` must have one dim"):
        cs.plot_forest(good.isel(site=0))

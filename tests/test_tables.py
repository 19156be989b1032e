"""tidy, bind, confint, augment and format_table."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats as cs
from cvstats import InputError
from cvstats.compare import bias_table, corrected_t_test, critical_difference, nemenyi_test, t_test, wilcoxon_test
from cvstats.cube.make import as_cube
from cvstats.tables import augment, bind, confint, format_table, tidy


@pytest.fixture
def bias():
    values = np.array([[0.02, 0.05, 0.04, 0.034], [0.0, 0.01, -0.02, 0.004]])
    return xr.DataArray(values, dims=("size", "trial"), coords={"size": [40, 20], "metric": "auc"})


@pytest.fixture
def ranks():
    return xr.DataArray(np.tile([1.0, 2, 3], (8, 1)), dims=("dataset", "method"), coords={"method": ["z", "a", "m"]})


# tidy ------------------------------------------------------------------------------------------------------------


def test_tidy_puts_dims_first_and_qualifiers_last_and_sorts_nothing(bias):
    frame = tidy(t_test(bias, "trial"))
    assert frame["size"].tolist() == [40, 20]
    assert list(frame)[:2] == ["size", "estimate"]
    assert list(frame)[-4:] == ["method", "metric", "conf_level", "interval"]
    assert frame["metric"].tolist() == ["auc", "auc"]


def test_tidy_of_a_scalar_result_is_one_row(bias):
    frame = tidy(t_test(bias.isel(size=0, drop=True), "trial"))
    assert len(frame) == 1
    assert frame.loc[0, "method"] == "one-sample t-test"


def test_tidy_does_not_multiply_by_dims_of_side_variables(ranks):
    protocol = xr.Dataset(
        {
            "estimate": 0.8,
            "selected": "b",
            "win_rate": ("configuration", [0.2, 0.8]),
            "draw_estimate": ("draw", [0.7, 0.8, 0.9]),
        },
        coords={
            "configuration": ["b", "a"],
            "method": "bbc",
            "metric": "auc",
            "conf_level": 0.95,
            "interval": "percentile",
        },
    )
    frame = tidy(protocol)
    assert len(frame) == 1
    assert {"estimate", "selected", "method"} <= set(frame)
    assert "win_rate" not in frame
    side = tidy(protocol["win_rate"])
    assert side["configuration"].tolist() == ["b", "a"]
    assert side["win_rate"].tolist() == [0.2, 0.8]
    assert tidy(critical_difference(ranks, "dataset", by="method", direction="minimize"))["method"].tolist() == [
        "z",
        "a",
        "m",
    ]
    assert len(tidy(nemenyi_test(ranks, "dataset", by="method", direction="minimize"))) == 9


def test_tidy_of_cliques(ranks):
    frame = tidy(critical_difference(ranks, "dataset", by="method", direction="minimize")["clique"])
    assert len(frame) == 6


def test_tidy_of_a_metric_and_of_a_nameless_array():
    scores = xr.DataArray([0.5, 0.7], dims="configuration", coords={"configuration": ["q", "b"]}, name="accuracy")
    assert tidy(scores).to_dict("list") == {"configuration": ["q", "b"], "accuracy": [0.5, 0.7]}
    assert list(tidy(xr.DataArray([1.0, 2], dims="x"))) == ["x", "value"]


def test_tidy_of_a_cube_names_classes_and_keeps_the_order():
    predictions = np.array([["x", "y"], ["y", "y"], ["x", "x"]])
    cube = as_cube(predictions, ["x", "y", "y"], folds=[0, 1, 1], configurations=["svm", "ann"], positive="x")
    frame = tidy(cube)
    assert frame["configuration"].tolist() == ["svm", "ann"] * 3
    assert frame["prediction"].tolist() == predictions.ravel().tolist()
    assert frame["label"].tolist() == ["x", "x", "y", "y", "y", "y"]
    assert frame["fold"].tolist() == [0, 0, 1, 1, 1, 1]
    assert list(frame) == ["sample", "configuration", "prediction", "label", "fold"]
    assert frame.attrs["kind"] == "label"
    assert frame.attrs["positive"] == "x"


def test_tidy_keeps_what_was_not_predicted():
    cube = as_cube([[0.9, np.nan], [0.2, 0.7]], [1, 0])
    assert tidy(cube)["prediction"].isna().tolist() == [False, True, False, False]
    coded = as_cube(pd.DataFrame({"a": ["x", None], "b": ["y", "x"]}), ["x", "y"], positive="x", kind="label")
    assert tidy(coded)["prediction"].isna().tolist() == [False, False, True, False]


# bind ------------------------------------------------------------------------------------------------------------


def test_bind_stacks_along_method_and_lets_nobody_inherit(bias):
    x = bias.isel(size=0, drop=True)
    t, w = t_test(x, "trial", level=0.9), wilcoxon_test(x, "trial")
    both = bind(t, w)
    assert both.method.values.tolist() == ["one-sample t-test", "Wilcoxon signed-rank test"]
    assert both.conf_level.values[0] == 0.9
    assert np.isnan(both.conf_level.values[1])
    assert both.interval.values.tolist() == ["t", "none"]
    assert np.isnan(both.estimate.values[1])
    assert both.statistic.values.tolist() == [float(t.statistic), float(w.statistic)]
    frame = tidy(both)
    assert frame["method"].tolist() == both.method.values.tolist()
    assert frame["interval"].tolist() == ["t", "none"]
    assert "t_test(" in both.attrs["call"]
    again = bind(both, third=t)
    assert again.sizes["method"] == 3


def test_bind_fills_text_with_empty_text_and_keeps_maps(bias):
    t = t_test(bias, "trial")
    both = bind(a=t, b=t.assign(selected=("size", ["u", "v"])))
    assert both.selected.values.tolist() == [["", ""], ["u", "v"]]
    assert both.estimate.dims == ("method", "size")


def test_bind_tells_winner_from_bbc():
    import cvstats as cs

    cube = cs.simulate_cube(60, 8, rng=1)
    both = bind(cs.cvt(cube, "accuracy"), cs.bbc(cube, "accuracy", rng=1), cs.winner(cube, "accuracy", rng=1))
    assert both.method.values.tolist() == ["cvt", "bbc", "winner (bbc)"]
    assert both.interval.values.tolist() == ["none", "percentile", "calibrated"]
    assert both.win_rate.dims == ("method", "configuration")
    assert np.isnan(both.win_rate.values[0]).all()
    assert both.attrs["cube_hash"] == cs.cvt(cube, "accuracy").attrs["cube_hash"]
    lines = format_table(both, values=["estimate", "conf_low", "conf_high", "n_draws"]).splitlines()
    assert "95% CI" in lines[0]
    assert lines[2].split()[-2:] == ["NA", "NA"]
    assert lines[4].split()[-1] == "1000"


@pytest.mark.slow
def test_tidy_of_a_large_cube_is_quick():
    import time

    import cvstats as cs

    cube = cs.simulate_cube(500, 200, repeats=5, rng=1)
    start = time.process_time()
    frame = tidy(cube)
    assert len(frame) == 500_000
    assert time.process_time() - start < 1
    assert set(frame["prediction"]) == {0, 1}


@pytest.mark.slow
def test_bind_survives_netcdf(bias, tmp_path):
    both = bind(a=t_test(bias, "trial"), b=wilcoxon_test(bias, "trial"))
    both.to_netcdf(tmp_path / "r.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "r.nc", engine="h5netcdf") as back:
        assert back.method.values.tolist() == ["a", "b"]
        np.testing.assert_allclose(back.estimate, both.estimate)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: bind(), "`bind` needs at least one result"),
        (
            lambda t: bind(t, t),
            r"`bind` got method 'one-sample t-test' more than once; name them: bind\(first=..., second=...\)",
        ),
        (lambda t: bind(t.estimate), "`bind` stacks results .Datasets.; got DataArray"),
        (lambda t: bind(t, b=t.isel(size=[0])), "`bind`: results disagree along 'size': 20 not in all of them"),
        (lambda t: bind(t.drop_vars("method")), "`bind` needs results with a `method` coordinate"),
        (lambda t: bind(c=bind(a=t, b=t)), "'c' already has a `method` dim of its own"),
        (
            lambda t: bind(t.drop_vars("size"), b=t.drop_vars("size").isel(size=[0])),
            "2 and 1 values not in all of them",
        ),
    ],
)
def test_bind_bad_input(bias, call, message):
    with pytest.raises(InputError, match=message):
        call(t_test(bias, "trial"))


# confint ---------------------------------------------------------------------------------------------------------


def test_confint_rereads_t_intervals(bias):
    at_90, at_50 = t_test(bias, "trial", level=0.9), t_test(bias, "trial", level=0.5)
    again = confint(at_90, level=0.5)
    np.testing.assert_allclose(again.conf_low, at_50.conf_low, rtol=1e-12)
    np.testing.assert_allclose(again.bound_high, at_50.bound_high, rtol=1e-12)
    assert float(again.conf_level) == 0.5
    assert float(at_90.conf_level) == 0.9
    both = confint(bind(a=at_90, b=corrected_t_test(bias, "trial", test_fraction=0.2)), level=0.5)
    np.testing.assert_allclose(both.conf_high.sel({"method": "a"}), at_50.conf_high, rtol=1e-12)
    assert both.conf_level.values.tolist() == [0.5, 0.5]


def test_confint_rereads_kept_draws():
    draws = np.random.default_rng(0).normal(size=501)
    kept = xr.Dataset(
        {"estimate": 0.0, "draw_estimate": ("draw", draws)}, coords={"conf_level": 0.95, "interval": "percentile"}
    )
    found = confint(kept, level=0.8)
    np.testing.assert_allclose([found.conf_low, found.conf_high], np.quantile(draws, [0.1, 0.9]))
    assert str(found.interval.item()) == "percentile"


def test_confint_bad_input(bias):
    with pytest.raises(InputError, match=r"`result` does not keep what its interval \(none\) is made of"):
        confint(wilcoxon_test(bias, "trial"))
    with pytest.raises(InputError, match=r"`result` must be a result .Dataset.; got DataArray"):
        confint(bias)
    with pytest.raises(InputError, match="`level` must be a number strictly between 0 and 1"):
        confint(t_test(bias, "trial"), level=1)


# augment ---------------------------------------------------------------------------------------------------------


def test_augment_shows_truth_beside_the_selected_prediction():
    result = xr.Dataset({"selected": "b"})
    cube = as_cube([[0.9, 0.6], [0.2, 0.7], [0.8, np.nan]], [1, 0, 1], folds=[1, 1, 2], configurations=["a", "b"])
    frame = augment(cube, result)
    assert frame["prediction"].tolist()[:2] == [0.6, 0.7]
    assert frame["predicted_class"].tolist() == [1, 1, None]
    assert frame["correct"].tolist()[:2] == [1.0, 0.0]
    assert np.isnan(frame["correct"][2])
    assert frame["fold"].tolist() == [1, 1, 2]
    assert set(frame["selected"]) == {"b"}
    numbers = augment(as_cube([[1.0, 2.0], [3.0, 5.5]], [1.5, 5.0], configurations=["a", "b"], kind="value"), result)
    assert numbers["residual"].tolist() == [-0.5, -0.5]
    labels = augment(
        as_cube(np.array([["x", "y"], ["y", "y"]]), ["x", "y"], configurations=["a", "b"], positive="x"), result
    )
    assert labels["correct"].tolist() == [0.0, 1.0]


def test_augment_of_class_probabilities_takes_the_likeliest():
    values = np.array([[[0.2, 0.5, 0.3]], [[0.6, 0.3, 0.1]], [[np.nan] * 3]])
    cube = as_cube(values, ["m", "k", "l"], classes=["k", "l", "m"], configurations=["a"])
    frame = augment(cube, xr.Dataset({"selected": "a"}))
    assert frame["predicted_class"].tolist()[:2] == ["l", "k"]
    assert frame["predicted_class"].isna().tolist() == [False, False, True]
    assert frame["correct"].tolist()[:2] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (xr.Dataset({"estimate": 1.0}), "must be a protocol's result with the variable `selected`"),
        (
            xr.Dataset({"selected": ("method", ["a", "b"])}),
            r"`result` has dims 'method'; pick one result first, e.g. with .sel\(\{'method'",
        ),
        (xr.Dataset({"selected": "q"}), "`result` selected 'q', which is not a configuration of `cube`; found 'a'"),
    ],
)
def test_augment_bad_input(result, message):
    cube = as_cube([[0.9], [0.2]], [1, 0], configurations=["a"])
    with pytest.raises(InputError, match=message):
        augment(cube, result)


# format_table ----------------------------------------------------------------------------------------------------


def test_digits_follow_the_standard_error(bias):
    line = format_table(t_test(bias, "trial"), values=["estimate", "std_error"]).splitlines()[2].split()
    assert line == ["40", "0.0360*", "0.0063"]
    coarse = (
        format_table(t_test(bias * 1000, "trial"), values=["estimate", "std_error"], stars=False)
        .splitlines()[2]
        .split()
    )
    assert coarse == ["40", "36.0", "6.3"]
    fixed = format_table(t_test(bias, "trial"), values="estimate", digits=1, stars=False).splitlines()[3].split()
    assert fixed == ["20", "0.0"]  # never -0.0


def test_interval_units_and_caption(bias):
    text = format_table(t_test(bias, "trial", level=0.9), unit="%", caption="AUC")
    lines = text.splitlines()
    assert lines[0] == "AUC"
    assert "Estimate (%)" in lines[1]
    assert "90% CI (%)" in lines[1]
    assert "bound" not in text.lower()
    scaled = format_table(t_test(bias, "trial"), values="estimate", unit="points", scale=1000, stars=False)
    assert scaled.splitlines()[2].split() == ["40", "36.0"]


def test_formats_escape_and_align():
    frame = pd.DataFrame({"name": ["a|b_c", "[x] & <y>"], "estimate": [-0.5, 1.25], "p_value": [0.0004, 0.03]})
    markdown = format_table(frame, "markdown")
    assert "| a\\|b_c | -0.5" in markdown
    assert "&lt;0.001\\*\\*" in markdown
    latex = format_table(frame, "latex", caption="50% of #1")
    assert r"\caption{50\% of \#1}" in latex
    assert r"a|b\_c & $-$0.500" in latex
    assert r"{}[x] \& $<$y$>$ & 1.250 & 0.030\textsuperscript{*} \\" in latex
    assert latex.count(r"\toprule") == latex.count(r"\midrule") == latex.count(r"\bottomrule") == 1
    html = format_table(frame, "html")
    assert "[x] &amp; &lt;y&gt;" in html
    assert "&lt;0.001<sup>**</sup>" in html
    text = format_table(frame)
    widths = {len(line) for line in text.splitlines()[:1]}
    assert len(widths) == 1
    assert text.splitlines()[0].startswith("Name")


def test_cross_tables_of_pairs_and_choice_of_dims(ranks):
    text = format_table(
        nemenyi_test(ranks, "dataset", by="method", direction="minimize"), values="p_value", columns="method_other"
    )
    assert text.splitlines()[0].split() == ["method", "z", "a", "m"]
    assert "<0.001" in text
    x = xr.DataArray(np.random.default_rng(0).normal(size=(2, 3, 2, 9)), dims=("method", "size", "dataset", "trial"))
    table = bias_table(x, x * 0, dim="trial")
    nested = format_table(table, values="estimate").splitlines()
    assert nested[0].split() == ["size", "dataset", "0", "1"]
    assert len(nested) >= 2 + 6
    assert format_table(table, rows=["size", "method"], columns="dataset", values="rmse").splitlines()[0].split()[
        :2
    ] == ["size", "method"]
    with pytest.raises(InputError, match="`rows` and `columns` leave out 'dataset'"):
        format_table(table, rows="size", columns="method")


def test_missing_numbers_are_na():
    frame = pd.DataFrame({"estimate": [np.nan, np.inf], "p_value": [np.nan, 0.5]})
    assert format_table(frame).split() == ["Estimate", "P", *["-" * len("Estimate     P")], "NA", "NA", "Inf", "0.50"]


def test_metric_arrays_can_be_formatted():
    scores = xr.DataArray([0.5, 0.71234], dims="configuration", coords={"configuration": ["q", "b"]}, name="accuracy")
    assert format_table(scores).splitlines()[2].split() == ["q", "0.5000"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "pdf"}, "`format` must be one of 'text', 'markdown', 'latex', 'html'"),
        ({"values": "estimat"}, "`values`: no variable 'estimat'; .*did you mean 'estimate'"),
        ({"rows": "sizes"}, "`rows`='sizes' is not a dimension; .*did you mean 'size'"),
        ({"columns": "method"}, "`columns`='method' is not a dimension"),
        ({"digits": -1}, "`digits` must be a whole number of at least 0"),
    ],
)
def test_format_table_bad_input(bias, options, message):
    with pytest.raises(InputError, match=message):
        format_table(t_test(bias, "trial"), **options)


def test_format_table_bad_kinds():
    with pytest.raises(InputError, match="`x` must be a Dataset, DataArray or DataFrame; got list"):
        format_table([1])
    with pytest.raises(InputError, match="`values`: no column 'b'; found 'a'"):
        format_table(pd.DataFrame({"a": [1]}), values="b")
    with pytest.raises(InputError, match=r"`x` must be a result .Dataset., a metric or a cube .DataArray.; got list"):
        tidy([1])
    with pytest.raises(InputError, match="`x` has no variables"):
        tidy(xr.Dataset())


def test_limits_without_a_usable_draw_are_told():
    cube = cs.as_cube(np.array([[0.2, 0.4], [0.8, 0.3], [0.1, 0.9]]), [0, 0, 0], kind="score", positive=1)
    with pytest.warns(cs.CvstatsWarning):
        out = cs.bbc(cube, "auc", times=40, rng=1, keep_draws=True)
    with pytest.warns(cs.CvstatsWarning, match="confint: no draw could be used, so limits are NaN") as record:
        limits = cs.confint(out, level=0.9)
    assert len(record) == 1
    assert bool(np.isnan(limits.conf_low))
    with pytest.warns(
        cs.CvstatsWarning, match="optimism_curve: too few samples for auc on all data or out of the draws: NaN"
    ):
        curve = cs.optimism_curve(cube, "auc", times=40, rng=1)
    assert bool(curve.estimate.isnull().all())


# several metrics of one decision ---------------------------------------------------------------------------------


def list_results():
    import cvstats as cs

    cube = cs.example_cube().isel(configuration=slice(0, 133, 20), repeat=0)
    metrics, options = ["auc", "brier", "sensitivity"], {"times": 60, "rng": 1}
    return cs.winner(cube, metrics, by="auc", **options), cs.bbc(cube, metrics, by="auc", **options), cube


def test_lists_are_bound_along_method_and_nobody_inherits_an_interval():
    ours, papers, _ = list_results()
    both = bind(winner=ours, bbc=papers)
    assert both.estimate.dims == ("method", "metric")
    assert both.interval.values.tolist() == [["calibrated"] * 3, ["percentile"] * 3]
    assert both.by.values.tolist() == ["auc", "auc"]
    np.testing.assert_array_equal(both.estimate.sel({"method": "bbc"}), papers.estimate)
    frame = tidy(both)
    assert frame["metric"].tolist() == ["auc", "brier", "sensitivity"] * 2
    assert frame["interval"].tolist() == ["calibrated"] * 3 + ["percentile"] * 3


def test_a_list_and_a_single_metric_do_not_bind():
    import cvstats as cs

    ours, _, cube = list_results()
    alone = cs.bbc(cube, "auc", times=60, rng=1)
    with pytest.raises(InputError, match="`bind` got results of a list of metrics and of a single one"):
        bind(ours, alone)
    assert bind(ours.sel(metric="auc"), alone).sizes["method"] == 2


def test_different_winners_get_a_warning_and_a_column():
    import cvstats as cs

    cube = cs.as_cube([[0.9, 0.6], [0.2, 0.4], [0.8, 0.7], [0.85, 0.3], [0.1, 0.2], [0.7, 0.8]], [1, 0, 1, 0, 0, 1])
    one, other = (
        cs.cvt(cube.isel(configuration=[0]), ["auc", "brier"]),
        cs.cvt(cube.isel(configuration=[1]), ["auc", "brier"]),
    )
    with pytest.warns(cs.CvstatsWarning, match="about different winners"):
        both = bind(one=one, other=other)
    assert tidy(both)["selected"].tolist() == [0, 0, 1, 1]


def test_a_list_is_printed_with_decimals_of_its_own():
    ours, _, _ = list_results()
    lines = format_table(ours).splitlines()
    assert lines[0].split()[:3] == ["metric", "Estimate", "95%"]
    assert [line.split()[0] for line in lines[2:]] == ["auc", "brier", "sensitivity"]
    assert " By" not in lines[0]


def test_confint_leaves_no_limits_of_another_level():
    cube = cs.simulate_cube(60, 3, rng=1).assign_coords(site=("sample", np.arange(60) // 20))
    sites = cs.winner(cube, "accuracy", subgroup="site", times=50, rng=1)
    with pytest.warns(cs.CvstatsWarning, match="limits of differences between subgroups") as caught:
        found = cs.confint(sites, level=0.8)
    assert len(caught) == 1
    assert found["difference_low"].isnull().all()
    assert (found["conf_low"] > sites["conf_low"]).all()
    with pytest.raises(cs.InputError, match="does not keep what its interval"):  # its limits are those of log odds
        cs.confint(cs.meta_analysis(sites, "site"), level=0.8)

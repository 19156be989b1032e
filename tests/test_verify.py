"""The record of a report, and `cvstats verify`: identical, equal or different, and where."""

import hashlib
import json
import math
import re

import numpy as np
import pandas as pd
import pytest

import cvstats as cs
from cvstats.cli import BAD_INPUT, FAILED, OK, main
from cvstats.report.record import BLOCK, differences, read_record

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
FAST = ["--draws", "60"]


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with predictions and their report, made by the command line."""
    folder = tmp_path_factory.mktemp("made")
    cube = cs.example_cube().isel(configuration=slice(0, 133, 20), repeat=[0, 1])
    cs.write_cube(cube, folder / "predictions.csv")
    assert run("report", folder / "predictions.csv", "--positive", "malignant", "-o", folder / "r.html", *FAST) == OK
    return folder


def changed(folder, target, row=100):
    """Write the predictions with one other cell."""
    table = pd.read_csv(folder / "predictions.csv")
    table.loc[row, "prediction"] = round(1 - table.loc[row, "prediction"], 4)
    table.to_csv(target, index=False)
    return target


# --- the record ---------------------------------------------------------------------------------------------------


def test_the_record_beside_the_page_is_the_one_inside(made):
    page, beside = (made / "r.html").read_text(encoding="utf-8"), (made / "r.record.json").read_text(encoding="utf-8")
    (inside,) = BLOCK.findall(page)
    assert inside == beside
    assert not re.search("[<>&]", beside), "nothing in it can end the script"
    assert read_record(made / "r.html") == (json.loads(beside), page)
    assert read_record(made / "r.record.json") == (json.loads(beside), None)


def test_the_record_says_what_went_in_and_what_came_out(made):
    record = json.loads((made / "r.record.json").read_text())
    raw = (made / "predictions.csv").read_bytes()
    (file,) = record["inputs"]
    assert file["name"].endswith("predictions.csv")
    assert (file["bytes"], file["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())
    cube = cs.read_predictions(made / "predictions.csv", positive="malignant")
    out = cs.winner(cube, "auc", times=60, rng=1)
    assert record["cube"]["hash"] == out.attrs["cube_hash"]
    assert record["cube"]["sizes"] == dict(cube.sizes)
    assert {"cvstats", "python", "numpy", "scipy", "xarray", "pandas", "matplotlib"} == set(record["versions"])
    asked = record["options"]
    assert (asked["metric"], asked["seed"], asked["draws"], asked["level"]) == ("auc", 1, 60, 0.95)
    numbers = record["numbers"]
    for name in ("estimate", "std_error", "conf_low", "conf_high", "naive", "optimism"):
        assert numbers["results"]["winner"][name] == float(out[name]), "every digit"
    assert list(numbers["results"]) == ["winner", "bbc", "cvm_cv", "tt", "cvt"]
    scores = cs.score(cube, "auc")
    assert {name: row["score"] for name, row in numbers["configurations"].items()} == {
        str(name): float(value) for name, value in zip(scores.configuration.values, scores.values, strict=True)
    }
    assert {name: row["win_rate"] for name, row in numbers["configurations"].items()} == {
        str(name): float(value) for name, value in zip(out.configuration.values, out.win_rate.values, strict=True)
    }
    assert len(numbers["curve"]["estimate"]) == numbers["design"]["configurations"] == 7


def test_a_store_is_listed_part_by_part(tmp_path):
    pytest.importorskip("h5netcdf")
    cube = cs.example_cube("diabetes").isel(configuration=slice(2))
    for name in cube.configuration.values:
        cs.write_cube(cube.sel(configuration=[name]), tmp_path / "run.cube", append=True)
    assert run("report", tmp_path / "run.cube", "-o", tmp_path / "r.html", *FAST) == OK
    record = json.loads((tmp_path / "r.record.json").read_text())
    names = [file["name"].rpartition("/")[2] for file in record["inputs"]]
    assert {"manifest.json", "part-000001.nc", "part-000002.nc"} <= set(names)
    assert run("verify", tmp_path / "r.html", tmp_path / "run.cube") == OK


# --- the verdict --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.html", "r.record.json"])
def test_the_same_predictions_are_identical(name, made, capsys):
    assert run("verify", made / name, made / "predictions.csv") == OK
    out, err = capsys.readouterr()
    assert re.fullmatch(rf"identical: all \d+ numbers of {name} come out again, to the last digit\.\n", out)
    assert err == ""


def test_the_bundled_example_is_identical_and_needs_no_file(tmp_path, capsys):
    assert run("report", "-o", tmp_path / "r.html", *FAST) == OK
    capsys.readouterr()
    assert run("verify", tmp_path / "r.html") == OK
    assert capsys.readouterr().out.startswith("identical")


def test_one_changed_cell_is_different_and_says_where(made, tmp_path, capsys):
    other = changed(made, tmp_path / "other.csv")
    assert run("verify", made / "r.html", other) == FAILED
    lines = capsys.readouterr().out.splitlines()
    found = re.fullmatch(
        r"different: (results .*) is (\S+) in the record and (\S+) now; \d+ numbers differ\.", lines[0]
    )
    assert found, lines
    record, _ = read_record(made / "r.html")
    value = record["numbers"]
    for part in found.group(1).split(" / "):
        value = value[part]
    assert float(found.group(2)) == value != float(found.group(3))
    assert record["cube"]["hash"] in lines[1]
    assert lines[1].startswith("The predictions are not those of the report: their hash is ")
    assert lines[2] == f"Not byte for byte a file of the report: {str(other)!r}." or "..." in lines[2]


def test_a_cell_that_changes_no_number_is_different_too(tmp_path, capsys):
    table = pd.DataFrame({"sample": range(30), "configuration": "a", "prediction": np.linspace(0, 0.9, 30)})
    table = table.assign(label=(np.arange(30) * 7 % 5 > 2).astype(int))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert run("report", tmp_path / "t.csv", "-o", tmp_path / "r.html", *FAST) == OK
    table.loc[29, "prediction"] = 0.95  # the same rank
    table.to_csv(tmp_path / "t.csv", index=False)
    capsys.readouterr()
    assert run("verify", tmp_path / "r.html", tmp_path / "t.csv") == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "different: these are other predictions, though all numbers come out again."
    assert "their hash is" in lines[1]


def test_other_files_with_the_same_predictions_are_identical(made, tmp_path, capsys):
    pytest.importorskip("h5netcdf")
    cube = cs.read_predictions(made / "predictions.csv", positive="malignant")
    for name in ("same.nc", "same.cube", "same.csv.gz"):
        cs.write_cube(cube, tmp_path / name)
        assert run("verify", made / "r.html", tmp_path / name) == OK
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("identical")
        assert lines[1].startswith("Not byte for byte a file of the report")


def test_another_order_of_samples_is_named(made, tmp_path, capsys):
    """Draws go by the place of a sample, so that the numbers are others."""
    shuffled = pd.read_csv(made / "predictions.csv").sample(frac=1, random_state=1)
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    assert run("verify", made / "r.html", tmp_path / "shuffled.csv") == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("different: results / winner / estimate is")
    assert re.fullmatch("The predictions are the same, but samples.* come in another order.", lines[1])


def altered_record(made, tmp_path, change):
    record = json.loads((made / "r.record.json").read_text())
    change(record)
    path = tmp_path / "altered.record.json"
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    ("factor", "word", "code"),
    [
        (1e-12, "equal to 11 digits:", OK),
        (1e-7, "equal to 6", OK),
        (1e-5, "different:", FAILED),
        (1.0, "different:", FAILED),
    ],
)
def test_numbers_may_differ_in_late_digits_only(factor, word, code, made, tmp_path, capsys):
    def change(record):
        record["numbers"]["results"]["winner"]["conf_low"] *= 1 + 1.5 * factor

    assert run("verify", altered_record(made, tmp_path, change), made / "predictions.csv") == code
    said = capsys.readouterr().out
    assert said.startswith(word)
    assert ("results / winner / conf_low is" in said) == (code == FAILED)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("results", "winner", "selected"), "another"),
        (("results", "winner", "n_draws"), 59),
        (("results", "bbc", "estimate"), None),
        (("results", "bbc", "more"), 1.0),
        (("design", "samples"), 121),
        (("design", "stratified"), None),
    ],
)
def test_everything_that_is_no_real_number_must_be_the_same(path, value, made, tmp_path, capsys):
    def change(record):
        part = record["numbers"]
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = value

    assert run("verify", altered_record(made, tmp_path, change), made / "predictions.csv") == FAILED
    assert capsys.readouterr().out.startswith(f"different: {' / '.join(path)} is {value!r} in the record and ")


def test_a_page_that_was_altered_by_hand_is_different(made, tmp_path, capsys):
    page, path = (made / "r.html").read_text(encoding="utf-8"), tmp_path / "r.html"
    shown = re.search(r'<dd class="value">([\d.]+)</dd>', page)
    path.write_text(page[: shown.start(1)] + "0.999" + page[shown.end(1) :], encoding="utf-8")
    assert run("verify", path, made / "predictions.csv") == FAILED
    said = capsys.readouterr().out
    assert said.startswith("different: the numbers of the record come out again, but not the page. Line ")
    assert "0.999" in said
    path.write_text(page.replace("</main>", "<p>more</p></main>"), encoding="utf-8")
    assert run("verify", path, made / "predictions.csv") == FAILED


def test_other_versions_are_named_and_their_words_not_compared(made, tmp_path, capsys):
    page, path = (made / "r.html").read_text(encoding="utf-8"), tmp_path / "r.html"
    path.write_text(page.replace(f'"cvstats": "{cs.__version__}"', '"cvstats": "0.0"').replace("Selected", "Chosen"))
    assert run("verify", path, made / "predictions.csv") == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("identical")
    assert lines[1] == f"Versions: cvstats 0.0 there, {cs.__version__} here."


def test_digits():
    def gap(a, b, naive=0.9):
        found = differences(
            {"results": {"winner": {"naive": naive}}, "x": a}, {"results": {"winner": {"naive": naive}}, "x": b}
        )
        return found[("x",)][2] if found else None

    assert gap(0.5, 0.5) is None
    assert gap(0.5, math.nextafter(0.5, 1)) == 15
    assert gap(0.5, 0.5 * (1 + 2e-9)) == 8
    assert gap(1.0, -1.0) == 0
    assert gap(0.0, 1e-17) == 10, "beside a plain score of 0.9 it is nothing"
    assert gap(0.0, 1e-5, naive=1e-5) == 0
    assert gap(1, 1.0) == gap(True, 1) == gap("1", 1) == gap(10**9, 10**9 + 1) == gap(None, 0.0) == 0
    assert gap(math.inf, 1.0) == 0


# --- reports from Python, and what they need ----------------------------------------------------------------------


def labels_cube():
    g = np.random.default_rng(1)
    labels = np.array(["x", "y", "z"])[g.integers(0, 3, 60)]
    return cs.as_cube(np.where(g.random((60, 4)) < 0.6, labels[:, None], "x"), labels, folds=np.arange(60) % 5)


def survival_cube():
    g = np.random.default_rng(2)
    time = g.exponential(size=60)
    return cs.as_cube(-time[:, None] + g.normal(size=(60, 4)), time, event=g.integers(0, 2, 60), kind="score")


def weighted_cube():
    g = np.random.default_rng(3)
    y = g.normal(size=60)
    return cs.as_cube(y[:, None] + g.normal(size=(60, 4)), y, weights=1 + g.random(60), groups=np.arange(60) // 3)


def truth_cube():
    g = np.random.default_rng(4)
    return cs.as_cube(g.random((60, 3)) < 0.5, g.random(60) < 0.5)


def score_cube():
    g = np.random.default_rng(5)
    return cs.as_cube(g.normal(size=(60, 3)), np.where(np.arange(60) % 2, "no", "yes"), positive="no", threshold=0.3)


@pytest.mark.parametrize("make", [labels_cube, survival_cube, weighted_cube, truth_cube, score_cube])
def test_a_report_from_python_is_verified_from_a_file(make, tmp_path, capsys):
    cube = make()
    options = {"times": 60, "rng": np.random.default_rng(1), "title": "<b>\x1b[31m", "preprocessing": "inside"}
    cs.report_html(cube, path=tmp_path / "r.html", **options)
    cs.write_cube(cube, tmp_path / "p.csv")
    assert run("verify", tmp_path / "r.html", tmp_path / "p.csv") == OK
    out = capsys.readouterr().out
    assert out.startswith("identical")
    assert out.count("\n") == 1


def test_several_metrics_of_one_decision(made, tmp_path, capsys):
    command = ["report", made / "predictions.csv", "--positive", "malignant", "-o", tmp_path / "r.html", *FAST]
    assert run(*command, "--metric", "brier,sensitivity", "--by", "auc", "--cut", "youden") == OK
    record = json.loads((tmp_path / "r.record.json").read_text())
    assert [row["metric"] for row in record["numbers"]["decision"]] == ["brier", "sensitivity"]
    capsys.readouterr()
    assert run("verify", tmp_path / "r.html", made / "predictions.csv") == OK
    assert capsys.readouterr().out.startswith("identical")
    record["numbers"]["decision"][1]["estimate"] += 0.01
    (tmp_path / "r.record.json").write_text(json.dumps(record))
    assert run("verify", tmp_path / "r.record.json", made / "predictions.csv") == FAILED
    assert capsys.readouterr().out.startswith("different: decision / 1 / estimate is ")


DECISIONS = {
    "logistic, then a cut": {"metric": ["brier"], "adjust": [cs.recalibrate(), cs.cut("f1")], "by": "auc"},
    "isotonic": {"metric": "brier", "adjust": cs.recalibrate("isotonic")},
    "costs": {"metric": "accuracy", "adjust": cs.cut(cost={"a=1, b": 1, "c": 2.5})},
    "sensitivity": {"metric": ["specificity"], "adjust": cs.cut(sensitivity=np.float64(2 / 3)), "subgroup": "site"},
    "prior": {
        "metric": [cs.at_prior("brier", {"c": 1 / 7}), "auc"],
        "adjust": cs.shift_prior({"c": 1 / 7}, {"c": 1 / 3}),
    },
    "net benefit": {"metric": [cs.net_benefit(1 / 3), "brier"], "by": cs.net_benefit(0.1), "subgroup": "site"},
    "own": {"metric": "brier", "adjust": cs.as_adjustment(lambda y, p, w: np.sqrt, name="own")},
    "own that is called like ours": {
        "metric": "brier",
        "adjust": cs.as_adjustment(lambda y, p, w: np.sqrt, name="cut"),
    },
}


@pytest.mark.parametrize("what", DECISIONS)
def test_decisions_are_made_again(what, tmp_path, capsys):
    pytest.importorskip("h5netcdf")
    g, n = np.random.default_rng(6), 60
    y = np.arange(n) % 2
    cube = cs.as_cube(0.3 * y[:, None] + 0.7 * g.random((n, 3)), np.array(["a=1, b", "c"])[y], positive="c")
    cube = cube.assign_coords(site=("sample", np.array(["x", "y"])[np.arange(n) // 30]))
    options = dict(DECISIONS[what])
    cs.report_html(cube, options.pop("metric"), path=tmp_path / "r.html", times=40, **options)
    cs.write_cube(cube, tmp_path / "p.nc")
    code = run("verify", tmp_path / "r.html", tmp_path / "p.nc")
    out, err = capsys.readouterr()
    if what.startswith("own"):
        assert code == BAD_INPUT
        assert "is not known by its name alone, so that only the script that made the report can" in err
    else:
        assert (code, out[:9]) == (OK, "identical"), (out, err)


@pytest.mark.parametrize(
    "text", ["cut(" * 300, "cut(__import__('os'))", "cut(youden)+1", "cut", "cut(f1, f1)", "recalibrate(x=1)", "exit()"]
)
def test_names_in_a_record_are_read_and_never_run(text, made, tmp_path, capsys):
    record = json.loads((made / "r.record.json").read_text())
    for options in ({"adjust": [text]}, {"metrics": [text]}, {"by": text}):
        (tmp_path / "r.record.json").write_text(json.dumps({**record, "options": {**record["options"], **options}}))
        assert run("verify", tmp_path / "r.record.json", made / "predictions.csv") == BAD_INPUT
        assert "is not known by its name alone" in capsys.readouterr().err


def test_inner_predictions_are_asked_for(tmp_path, capsys):
    pytest.importorskip("h5netcdf")
    cube, inner = cs.simulate_cube(60, 4, inner=True, rng=1)
    cs.write_cube(cube, tmp_path / "p.nc")
    cs.write_cube(inner, tmp_path / "inner.nc")
    cs.report_html(cube, "accuracy", path=tmp_path / "r.html", inner=inner, times=60)
    assert run("verify", tmp_path / "r.html", tmp_path / "p.nc") == BAD_INPUT
    assert "r.html was made with inner predictions too; give them with --inner." in capsys.readouterr().err
    assert run("verify", tmp_path / "r.html", tmp_path / "p.nc", "--inner", tmp_path / "inner.nc") == OK
    assert capsys.readouterr().out.startswith("identical")
    cs.write_cube(inner.copy(data=1 - inner.values), tmp_path / "inner.nc")
    assert run("verify", tmp_path / "r.html", tmp_path / "p.nc", "--inner", tmp_path / "inner.nc") == FAILED
    assert "The inner predictions are not those of the report" in capsys.readouterr().out


def test_a_cube_on_dask_has_a_record_without_its_hash(tmp_path, capsys):
    pytest.importorskip("dask")
    cube = labels_cube()
    cs.report_html(cube.chunk(configuration=2), path=tmp_path / "r.html", times=60)
    assert json.loads((tmp_path / "r.record.json").read_text())["cube"]["hash"] == "not computed"
    cs.write_cube(cube, tmp_path / "p.csv")
    assert run("verify", tmp_path / "r.record.json", tmp_path / "p.csv") == OK


def test_the_options_of_reading_are_remembered(tmp_path, capsys):
    table = pd.DataFrame({"id": [f"ä{i:03d}" for i in range(40)], "truth": np.arange(40) % 2})
    table = table.assign(p=np.random.default_rng(1).random(40))
    table.to_csv(tmp_path / "t.csv", index=False, encoding="latin-1")
    how = ["--columns", "sample=id,label=truth,prediction=p", "--encoding", "latin-1", "--threshold", "0.4"]
    assert run("report", tmp_path / "t.csv", *how, "-o", tmp_path / "r.html", *FAST) == OK
    assert run("verify", tmp_path / "r.html", tmp_path / "t.csv") == OK
    assert "identical" in capsys.readouterr().out


# --- what cannot be read ------------------------------------------------------------------------------------------


def test_what_cannot_be_read_exits_with_two(made, tmp_path, capsys):
    (tmp_path / "old.html").write_text("<!doctype html><title>no record</title>")
    (tmp_path / "bad.record.json").write_text('{"cvstats_record": ')
    (tmp_path / "deep.record.json").write_text("[" * 100_000)
    (tmp_path / "new.record.json").write_text('{"cvstats_record": 2}')
    (tmp_path / "raw.html").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "twice.html").write_text((made / "r.html").read_text(encoding="utf-8") * 2, encoding="utf-8")
    for name in (
        "old.html",
        "bad.record.json",
        "deep.record.json",
        "new.record.json",
        "raw.html",
        "twice.html",
        "no.html",
    ):
        assert run("verify", tmp_path / name, made / "predictions.csv") == BAD_INPUT, name
        out, err = capsys.readouterr()
        assert out == ""
        assert name in err or name == "no.html"
        assert err.count("\n") == 1
    assert run("verify", made / "r.html", tmp_path / "gone.csv") == BAD_INPUT
    assert run("verify", made / "r.html", made / "r.html") == BAD_INPUT
    capsys.readouterr()
    assert run("verify", made / "r.html") == BAD_INPUT
    assert "give the predictions that r.html was made from: " in capsys.readouterr().err


def test_a_damaged_record_is_one_clear_line(made, tmp_path, capsys):
    """Every part of a record gone or of another type: bad input or a difference, never a crash."""
    original = json.loads((made / "r.record.json").read_text())
    places = [(part,) for part in original]
    places += [(part, name) for part in ("cube", "options", "reading") for name in original[part]]
    for place in places:
        for value in (None, {"x": []}, []):
            record = json.loads((made / "r.record.json").read_text())
            part = record[place[0]] if len(place) > 1 else record
            part[place[-1]] = value
            path = tmp_path / "x.record.json"
            path.write_text(json.dumps(record))
            code = run("verify", path, made / "predictions.csv", "--positive", "malignant")
            out, err = capsys.readouterr()
            assert "unexpected" not in err, (place, value, err)
            assert code in (OK, FAILED, BAD_INPUT)
            assert (code == BAD_INPUT) == (out == "")


def test_a_page_whose_record_names_a_damaged_source_is_different(made, tmp_path, capsys):
    record = json.loads((made / "r.record.json").read_text())
    record["source"] = {"notes": 5, "ignored_columns": 7, "source": []}
    page = BLOCK.sub(lambda found: found[0].replace(found[1], json.dumps(record)), (made / "r.html").read_text())
    (tmp_path / "r.html").write_text(page, encoding="utf-8")
    assert run("verify", tmp_path / "r.html", made / "predictions.csv") == FAILED
    assert capsys.readouterr().out.endswith("but not the page. Its record is damaged.\n")


def test_a_metric_of_ones_own_cannot_be_made_again(tmp_path, capsys):
    own = cs.as_metric(
        lambda y, p, w: np.average(np.abs(y - p), weights=w), direction="minimize", name="own", range=(0, np.inf)
    )
    cube = weighted_cube().drop_vars(["weight", "group"])
    cs.report_html(cube, own, path=tmp_path / "r.html", times=40)
    cs.write_cube(cube, tmp_path / "p.csv")
    assert run("verify", tmp_path / "r.html", tmp_path / "p.csv") == BAD_INPUT
    assert "the metric 'own' is not known by its name alone" in capsys.readouterr().err


def test_no_file_that_a_record_names_is_opened(made, tmp_path, capsys):
    def change(record):
        record["reading"]["labels"] = record["inputs"][0]["name"] = str(made / "predictions.csv")

    assert run("verify", altered_record(made, tmp_path, change)) == BAD_INPUT


# --- the file of the record ---------------------------------------------------------------------------------------


def test_the_record_replaces_only_what_is_a_record(made, tmp_path, capsys):
    page, record = tmp_path / "r.html", tmp_path / "r.record.json"
    command = ["report", made / "predictions.csv", "--positive", "malignant", "-o", page, *FAST]
    record.write_text("mine")
    with pytest.raises(cs.InputError, match=r"r\.record\.json' exists and is not a report made by cvstats"):
        cs.report_html(labels_cube(), path=page, times=20)
    assert run(*command) == BAD_INPUT
    assert (record.read_text(), page.exists()) == ("mine", False)
    assert run(*command, "--force") == OK
    assert run(*command) == OK
    record.unlink()
    record.symlink_to(tmp_path / "elsewhere")
    assert run(*command, "--force") == BAD_INPUT
    assert not (tmp_path / "elsewhere").exists()


def test_the_record_never_replaces_an_input(made, tmp_path, capsys):
    data = tmp_path / "r.record.json"
    data.write_bytes((made / "predictions.csv").read_bytes())
    command = ["report", data, "--positive", "malignant", "-o", tmp_path / "r.html", "--force", *FAST]
    assert run(*command) == BAD_INPUT
    assert "r.record.json' would replace" in capsys.readouterr().err
    assert data.read_bytes() == (made / "predictions.csv").read_bytes()

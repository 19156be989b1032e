"""The command line: honest number first, exit codes that mean something, one clear line when something is wrong."""

import gzip
import io
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import cvstats as cs
from cvstats.cli import BAD_INPUT, FAILED, INTERRUPTED, OK, main, parser
from cvstats.cli import commands as _commands
from cvstats.cli import progress as _progress

FAST = ["--draws", "60"]


def long_table(n=40, configurations=("a", "b", "c"), repeats=1):
    rng = np.random.default_rng(1)
    labels = np.arange(n) % 2
    rows = [
        {"sample": i, "configuration": name, "repeat": r, "fold": i % 5, "prediction": p, "label": labels[i]}
        for r in range(repeats)
        for name in configurations
        for i, p in enumerate(np.clip(0.3 * labels + 0.7 * rng.random(n), 0, 1).round(3))
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "predictions.csv"
    long_table(repeats=2).to_csv(path, index=False)
    return path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def shell(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "cvstats", *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


# --- report -------------------------------------------------------------------------------------------------------


def test_report_prints_the_headline_and_writes_the_page(table, tmp_path, capsys):
    target = tmp_path / "r.html"
    assert run("report", table, "-o", target, "--seed", 7, "--preprocessing", "inside", *FAST) == OK
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("AUC of the winner: 0.")
    assert "95% interval" in lines[0], "the honest number first"
    assert lines[2].startswith("Plain CV would claim 0.")
    assert "BBC-CV as published" in lines[2]
    assert "Seed 7, 60 draws." in lines[3]
    assert lines[-1] == f"Report: {target}"
    assert err == ""
    page = target.read_text(encoding="utf-8")
    command = f"cvstats report {table} --metric auc --preprocessing inside --draws 60 --level 0.95 --seed 7 -o {target}"
    assert command in page
    assert "predictions.csv" in page
    assert run(*shlex.split(command)[1:]) == OK, "the command in the report"
    assert target.read_text(encoding="utf-8") == page, "makes the same report"


def test_report_without_a_file_uses_the_example(tmp_path, capsys):
    target = tmp_path / "r.html"
    assert run("report", "-o", target, *FAST) == OK
    out = capsys.readouterr().out
    assert "120 samples, 133 configurations, 5 repeats of stratified 10-fold" in out
    assert "Seed 1" in out
    assert target.stat().st_size > 50_000


# --- estimate -----------------------------------------------------------------------------------------------------


def test_estimate_as_text(table, capsys):
    assert run("estimate", table, *FAST) == OK
    out = capsys.readouterr().out
    assert out.splitlines()[5].split()[:2] == ["Method", "AUC"]
    assert "Recommended (BBC, ties at random)" in out
    assert out.isascii(), "plain signs for any terminal"


def test_estimate_as_json_has_the_results_own_names(table, capsys):
    assert run("estimate", table, "--metric", "accuracy", "--json", "--seed", 3, *FAST) == OK
    found = json.loads(capsys.readouterr().out)
    cube = cs.read_predictions(table)
    expected = cs.winner(cube, "accuracy", times=60, rng=3)
    first = found["results"][0]
    assert first["protocol"] == "winner"
    assert first["method"] == "bbc_cross_repeat"
    for name in ("estimate", "conf_low", "conf_high", "bound_low", "naive", "optimism", "bbc_plain", "n_draws"):
        assert first[name] == pytest.approx(float(expected[name]))
    assert first["win_rate"] == pytest.approx(dict(zip("abc", expected.win_rate.values, strict=True)))
    assert (found["seed"], found["metric"], found["n_samples"]) == (3, "accuracy", 40)
    names = [result["protocol"] for result in found["results"]]
    assert names == ["winner", "bbc", "cvm_cv", "tt", "cvt"]
    assert next(r for r in found["results"] if r["protocol"] == "tt")["conf_level"] is None
    assert found["not_available"] == {"ncv": "no inner predictions were saved"}


def test_estimate_as_csv(table, capsys):
    assert run("estimate", table, "--csv", *FAST) == OK
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert {"protocol", "method", "estimate", "conf_low", "naive", "optimism", "selected", "metric"} <= set(found)
    assert found.protocol.tolist()[0] == "winner"


@pytest.mark.parametrize(
    ("name", "metric", "words"),
    [("diabetes", "mse", "Mean squared error of the winner"), ("iris", "accuracy", "Accuracy of the winner")],
)
def test_default_metric_by_the_kind_of_labels(name, metric, words, capsys):
    assert run("estimate", "--example", name, *FAST) == OK
    assert capsys.readouterr().out.startswith(words)


def test_inner_predictions(tmp_path, capsys):
    cube, inner = cs.simulate_cube(60, 4, inner=True, rng=1)
    cs.write_cube(cube, tmp_path / "cube.nc")
    cs.write_cube(inner, tmp_path / "inner.nc")
    assert run("estimate", tmp_path / "cube.nc", "--inner", tmp_path / "inner.nc", *FAST) == OK
    assert "Nested CV" in capsys.readouterr().out


def test_positive_class_of_any_type(tmp_path, capsys):
    frame = long_table()
    path = tmp_path / "t.csv"
    frame.assign(label=np.where(frame.label == 1, 2, 1)).to_csv(path, index=False)
    assert run("estimate", path, "--positive", "2", "--json", *FAST) == OK
    two = json.loads(capsys.readouterr().out)
    frame.assign(label=np.where(frame.label == 1, "sick", "well")).to_csv(path, index=False)
    assert run("estimate", path, "--positive", "sick", "--json", *FAST) == OK
    assert json.loads(capsys.readouterr().out)["results"][0]["naive"] == two["results"][0]["naive"]
    assert run("estimate", path, "--positive", "well", "--json", *FAST) == OK
    assert json.loads(capsys.readouterr().out)["results"][0]["naive"] != two["results"][0]["naive"]
    assert run("estimate", path, *FAST) == BAD_INPUT
    assert "--positive must say which of the labels 'sick', 'well'" in capsys.readouterr().err


def test_advice_on_columns_is_given_as_the_command_line_takes_it(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text("y,fold,a b,svm\n" + "".join(f"{i % 2},{i % 3},{(i % 5) / 5},{(i % 7) / 7}\n" for i in range(30)))
    assert run("describe", path) == BAD_INPUT
    said = capsys.readouterr().err.strip()
    assert said.endswith("say --columns 'label=y,prediction=a b,prediction=svm'.")
    assert run("describe", path, "--columns", "label=y,prediction=a b,prediction=svm") == OK
    assert "2 columns were taken as configurations: 'a b', 'svm'" in capsys.readouterr().out
    assert run("describe", path, "--columns", "label=y", "--columns", "label=fold", "--columns", "prediction=svm") == 2
    assert "must name one column; only sample, configuration, repeat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "nan"], "--threshold must be a finite number; got nan"),
        (["--threshold", "5"], "--threshold of probabilities must lie in [0, 1]; got 5.0"),
        (["--metric", "youden", "--cut", "youdn"], "--cut='youdn' does not exist (did you mean 'youden'?)"),
        (["--metric", "auc,brier", "--by", "log_los"], "--by='log_los' does not exist (did you mean 'log_loss'?)"),
    ],
)
def test_errors_name_the_option_that_is_wrong(table, capsys, arguments, message):
    assert run("estimate", table, *arguments) == BAD_INPUT
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["abc", [0.5, 1.5, 2.5]])
def test_a_positive_class_of_what_has_none_is_refused(tmp_path, capsys, labels):
    frame = pd.DataFrame({"sample": range(6), "configuration": "m", "label": [labels[i % 3] for i in range(6)]})
    frame.assign(prediction=frame["label"]).to_csv(tmp_path / "p.csv", index=False)
    assert run("describe", tmp_path / "p.csv", "--positive", "a") == BAD_INPUT
    assert "--positive is for two classes; the labels are" in capsys.readouterr().err


def test_columns_labels_kind_and_threshold(tmp_path, capsys):
    frame = long_table().rename(columns={"sample": "id", "prediction": "p", "label": "y", "configuration": "model"})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    mapped = ["--columns", "sample=id,label=y", "--columns", "prediction=p", "--columns", "configuration=model"]
    assert run("estimate", path, *mapped, "--metric", "accuracy", "--threshold", "0.6", "--json", *FAST) == OK
    strict = json.loads(capsys.readouterr().out)
    assert run("estimate", path, *mapped, "--metric", "accuracy", "--json", *FAST) == OK
    assert json.loads(capsys.readouterr().out)["results"][-1]["estimate"] != strict["results"][-1]["estimate"]
    truth = frame[["id", "y"]].drop_duplicates()
    truth.to_csv(tmp_path / "truth.csv", index=False)
    plain = frame.drop(columns="y").rename(columns={"id": "sample", "p": "prediction", "model": "configuration"})
    plain.to_csv(path, index=False)
    assert run("estimate", path, "--labels", tmp_path / "truth.csv", "--kind", "score", *FAST) == OK
    assert run("estimate", path, "--columns", "nonsense", *FAST) == BAD_INPUT
    assert "--columns takes OURS=THEIRS" in capsys.readouterr().err


# --- compare ------------------------------------------------------------------------------------------------------


def test_compare_lists_the_best_set(table, capsys):
    assert run("compare", table, *FAST) == OK
    assert "of 3 configurations cannot be excluded as the best AUC at the 95% level (seed 1)" in capsys.readouterr().out
    assert run("compare", table, "--csv", *FAST) == OK
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert found.configuration.tolist() == found.sort_values("difference", ascending=False).configuration.tolist()
    assert run("compare", table, "--json", *FAST) == OK
    assert set(json.loads(capsys.readouterr().out)["in_set"]) == {"a", "b", "c"}


def test_compare_two_configurations_and_families(table, capsys):
    assert run("compare", table, "--a", "a", "--b", "b", "--json", *FAST) == OK
    found = json.loads(capsys.readouterr().out)
    expected = cs.contrast(cs.read_predictions(table), "auc", a="a", b="b", times=60, rng=1)
    assert found["estimate"] == pytest.approx(float(expected.estimate))
    assert run("compare", table, "--a", "a", "--b", "b", "--b", "c", *FAST) == OK
    assert capsys.readouterr().out.startswith("Difference in AUC, a - b: ")
    assert run("compare", "--a", "family=forest", "--b", "family=tree", "--csv", *FAST) == OK
    assert "p_value" in capsys.readouterr().out


def test_compare_takes_patterns(table, capsys):
    assert run("compare", table, "--a", "a", "--b", "[bc]", "--json", *FAST) == OK
    found = json.loads(capsys.readouterr().out)
    expected = cs.contrast(cs.read_predictions(table), "auc", a="a", b=["b", "c"], times=60, rng=1)
    assert found["estimate"] == pytest.approx(float(expected.estimate))


def test_help_says_when_not_to_rely_on_a_method(capsys):
    assert run("help", "tt") == OK
    out = capsys.readouterr().out
    assert "Chooses on each fold alone, judges on the fold" in out
    assert "doi:10.1214/08-AOAS224" in out
    assert "Parameters" not in out
    assert run("help", "winer") == BAD_INPUT
    assert "did you mean 'winner'" in capsys.readouterr().err


def test_compare_refuses(table, capsys):
    for arguments, words in (
        (["--a", "a"], "give both --a and --b"),
        (["--a", "a", "--b", "cc"], "--b: no configuration 'cc' (did you mean 'c'?); found 'a', 'b', 'c'"),
        (["--a", "a", "--b", "a"], "--a and --b name the same"),
    ):
        assert run("compare", table, *arguments, *FAST) == BAD_INPUT
        assert words in capsys.readouterr().err
    assert run("compare", "--a", "family=shrub", "--b", "family=tree", *FAST) == BAD_INPUT
    assert "--a: no configuration has family 'shrub'" in capsys.readouterr().err


# --- describe and convert -----------------------------------------------------------------------------------------


def test_describe(table, capsys):
    assert run("describe", table) == OK
    out = capsys.readouterr().out
    assert "predictions.csv" in out
    assert "40 (20 of class 0, 20 of class 1)" in out
    assert run("describe", table, "--json") == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["configurations"], found["folds"], found["repeats"]) == (40, 3, 5, 2)


@pytest.mark.parametrize("suffix", [".nc", ".cube", ".parquet", ".csv.gz"])
def test_convert_round_trips(table, tmp_path, suffix, capsys):
    middle, back = tmp_path / f"cube{suffix}", tmp_path / "back.csv"
    assert run("convert", table, middle) == OK
    assert run("convert", middle, back) == OK
    assert "40 samples, 3 configurations, 2 repeats" in capsys.readouterr().out
    first, last = cs.read_predictions(table), cs.read_predictions(back)
    assert first.equals(last)
    if suffix == ".nc":
        assert back.read_bytes() == table.read_bytes(), "long CSV -> cube -> long CSV is identical"


def test_convert_never_guesses_the_target(table, capsys):
    before = table.read_bytes()
    assert run("convert", table) == BAD_INPUT
    assert "convert needs FILE and OUT" in capsys.readouterr().err
    assert run("convert", table, table) == BAD_INPUT
    assert "would replace" in capsys.readouterr().err
    assert run("convert", table, table.with_suffix(".docx")) == BAD_INPUT
    assert table.read_bytes() == before


# --- bad input ----------------------------------------------------------------------------------------------------


def bad_files():
    good = long_table().to_csv(index=False)
    double = pd.concat([long_table(), long_table().head(1)])
    conflict = long_table()
    conflict.loc[41, "label"] = 1 - conflict.loc[41, "label"]
    mixed = long_table().astype({"prediction": object})
    mixed.loc[3, "prediction"] = "oops"
    return {
        "empty.csv": b"",
        "header.csv": b"sample,configuration,prediction,label\n",
        "truncated.csv.gz": gzip.compress(good.encode())[:200],
        "binary.csv": bytes(range(256)) * 20,
        "encoding.csv": good.replace(",a,", ",é,").encode("latin-1"),
        "mixed.csv": mixed.to_csv(index=False).encode(),
        "double.csv": double.to_csv(index=False).encode(),
        "conflict.csv": conflict.to_csv(index=False).encode(),
        "scores.csv": b"number,value,params_C\n0,0.5,1\n",
        "corrupt.parquet": b"PAR1 and then nothing",
        "corrupt.nc": b"\x89HDF\r\n\x1a\n but no more",
        "corrupt.npz": b"PK\x03\x04 broken",
        "unknown.csv": b"x,y\n1,2\n",
        "folder": None,
    }


@pytest.mark.parametrize("name", bad_files())
def test_bad_files_are_one_line_and_nothing_is_written(name, tmp_path, capsys):
    content = bad_files()[name]
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    target = tmp_path / "r.html"
    assert run("report", path, "-o", target, *FAST) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("cvstats: error: ")
    assert len(err) > 40
    assert not target.exists()
    assert [item.name for item in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["estimate", "nowhere.csv"], "no such file: 'nowhere.csv'"),
        (["estimate", "--metric", "acuracy"], "did you mean 'accuracy'"),
        (["estimate", "--metric", "mse"], "mse"),
        (["estimate", "--level", "2"], "--level must be a number strictly between 0 and 1"),
        (["estimate", "--draws", "3"], "--draws=3 is too small"),
        (["estimate", "--example", "nothing"], "--example must be one of"),
        (["estimate", "--inner", "nowhere.nc"], "no such file: 'nowhere.nc'"),
        (["estimate", "--example", "breast_cancer_inner"], "inner predictions"),
        (["estimate", "x.csv", "--example", "iris"], "give files or --example, not both"),
        (["estimate", "--example", "diabetes", "--threshold", "1"], "--threshold is for scores"),
        (["report", "-o", "nowhere/r.html"], "--output: no such folder: 'nowhere'"),
        (["report", "-o", "."], "is a folder; give a file name"),
    ],
)
def test_bad_arguments_are_one_line(arguments, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: command"),
        (["repot"], "invalid choice: 'repot'"),
        (["report", "--seed", "x"], "must be a whole number that is not negative; got 'x'"),
        (["report", "--colour"], "unrecognized arguments: --colour"),
    ],
)
def test_usage_errors_are_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == BAD_INPUT
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def fail_with(error):
    def fail(options):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), INTERRUPTED, "interrupted; no file is left half-written"),
        (MemoryError(), FAILED, "not enough memory"),
        (OSError(28, "No space left on device"), FAILED, "No space left on device"),
        (PermissionError(13, "Permission denied", "r.html"), BAD_INPUT, "Permission denied: 'r.html'"),
        (ImportError("reports need jinja2"), FAILED, "reports need jinja2"),
        (RuntimeError("two\nlines"), FAILED, "unexpected RuntimeError: two lines"),
    ],
)
def test_other_failures_are_one_line(error, code, words, monkeypatch, capsys):
    monkeypatch.setattr(_commands, "describe", fail_with(error))
    assert run("describe") == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    if not isinstance(error, KeyboardInterrupt):
        run("describe", "--debug")
        assert "Traceback" in capsys.readouterr().err


def test_warnings_are_lines_on_stderr(monkeypatch, capsys):
    def warn(options):
        from cvstats._check import warn

        warn("a thing to know")
        warn("a thing to know")

    monkeypatch.setattr(_commands, "describe", warn)
    assert run("describe") == OK
    assert capsys.readouterr().err == "warning: a thing to know\n"


# --- as a program -------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from cvstats.cli import parser; text = parser().format_help(); "
        "assert 'exit codes' in text and 'examples:' in text; "
        "heavy = {'numpy', 'pandas', 'xarray', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", ["report", "estimate", "compare", "describe", "convert"])
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"example:\n  cvstats {command}" in capsys.readouterr().out


def test_help_lists_the_metrics_that_there_are(capsys, monkeypatch):
    from cvstats.metrics.base import REGISTRY

    monkeypatch.setitem(REGISTRY, "stranger", cs.as_metric(lambda y, p, w: 0.5, name="stranger", direction="maximize"))
    with pytest.raises(SystemExit):
        main(["estimate", "--help"])
    words = capsys.readouterr().out.split()
    assert {name for name in REGISTRY if name not in words and f"{name};" not in words} == set()


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"cvstats {cs.__version__}\n"
    assert parser().prog == "cvstats"


def test_no_progress_in_a_pipe(table):
    done = shell("estimate", table, *FAST)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "on_terminal", lambda: True)
    _progress.stage("Reading")
    _progress.clear()
    assert capsys.readouterr().err == "\r\x1b[KReading ...\r\x1b[K"
    assert _progress.bars()


def test_an_ascii_terminal_is_enough(tmp_path):
    frame = long_table(configurations=("naïve 模型", "b"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = shell("estimate", tmp_path / "t.csv", *FAST, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == ""


STEERING = "\x1b[31m\x9b2J\u202ered"


@pytest.mark.parametrize(
    "command",
    [["report"], ["estimate"], ["compare"], ["compare", "--a", STEERING, "--b", "b"], ["describe"], ["convert"]],
)
def test_names_cannot_command_the_terminal(command, tmp_path, capsys):
    """Names of configurations, labels, groups, columns and files, on output and in errors."""
    table = long_table(configurations=(STEERING, "b"))
    table = table.assign(label=np.where(table["label"] == 1, f"ill{STEERING}", "well"), group=f"g{STEERING}")
    table = table.assign(**{f"more{STEERING}": 1})
    path = tmp_path / f"t{STEERING}.csv"
    table.to_csv(path, index=False)
    name, *rest = command
    target = tmp_path / f"out{STEERING}"
    where = {"report": ["-o", f"{target}.html"], "convert": [f"{target}.csv"]}.get(name, [])
    fast = FAST if name in ("report", "estimate", "compare") else []
    for positive in ([], ["--positive", f"ill{STEERING}"], ["--positive", f"no{STEERING}"]):
        run(name, path, *where, *rest, *positive, *fast)
        out, err = capsys.readouterr()
        for sign in ("\x1b", "\x9b", "\u202e"):
            assert sign not in out + err


def test_names_in_csv_are_made_visible_on_a_terminal_only(tmp_path, capsys, monkeypatch):
    long_table(configurations=(STEERING, "b")).to_csv(tmp_path / "t.csv", index=False)
    assert run("compare", tmp_path / "t.csv", "--csv", *FAST) == OK
    assert STEERING in capsys.readouterr().out, "a script gets the names"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("compare", tmp_path / "t.csv", "--csv", *FAST) == OK
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.startswith("configuration,")


def wait_for_work(running):
    """Return when a command has been computing for a second of its own time without loading a library."""
    process, known, since = pathlib.Path(f"/proc/{running.pid}"), [], 0
    while running.poll() is None:
        loaded = [line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines() if ".so" in line]
        used = int((process / "stat").read_text().rpartition(")")[2].split()[11])  # in ticks
        if loaded != known or not any("_multiarray_umath" in name for name in loaded):
            known, since = loaded, used
        elif used - since > os.sysconf("SC_CLK_TCK"):
            return
        time.sleep(0.05)


@pytest.mark.skipif(not pathlib.Path("/proc/self/maps").exists(), reason="watches a process through /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_one_line_and_no_file(tmp_path, number, code):
    command = [sys.executable, "-m", "cvstats", "report", "-o", str(tmp_path / "r.html"), "--draws", "200000"]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )
    wait_for_work(running)
    running.send_signal(number)
    out, err = running.communicate(timeout=300)
    # CPython ends itself with the signal when it struck inside exec() (as in an import); a shell shows 130 either way
    assert running.returncode in (code, -signal.SIGINT)
    assert out == ""
    assert err.count("\n") == 1
    assert "no file is left half-written" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_closed_pipe_is_no_error():
    command = [sys.executable, "-m", "cvstats", "describe", "--example", "iris", "--json"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert running.wait(timeout=60) == 0
    assert err == ""


def test_no_cell_of_a_csv_is_a_formula(tmp_path, capsys):
    cube = cs.as_cube([[0.9, 0.8], [0.2, 0.1], [0.7, 0.9], [0.4, 0.6]], [1, 0, 1, 0], configurations=["=1+1", "b"])
    cs.write_cube(cube, tmp_path / "x.nc")
    assert main(["compare", str(tmp_path / "x.nc"), "--metric", "accuracy", "--draws", "40", "--csv"]) == 0
    out = capsys.readouterr().out
    assert "'=1+1," in out
    assert "\n=1+1," not in out


# --- several metrics of one decision --------------------------------------------------------------------------------


def test_estimate_leads_with_one_decision(table, capsys):
    assert run("estimate", table, "--metric", "auc,brier,sensitivity", "--by", "auc", "--cut", "youden", *FAST) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Chosen by AUC: ")
    assert ", threshold 0." in lines[0]
    assert lines[2].split()[:2] == ["Metric", "Estimate"]
    assert [line.split()[0] for line in lines[4:7]] == ["AUC", "Brier", "sensitivity"]
    assert lines[8].startswith("AUC of the winner: ")


def test_decision_as_data(table, capsys):
    asked = ("estimate", table, "--metric", "auc,brier", *FAST)
    assert run(*asked, "--json") == OK
    results = json.loads(capsys.readouterr().out)["results"]
    ours = [row for row in results if row["protocol"] == "decision"]
    assert [row["metric"] for row in ours] == ["auc", "brier"]
    assert run(*asked, "--csv") == OK
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_allclose(frame["estimate"], [row["estimate"] for row in ours])


def test_subgroups_and_floors(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    long_table(n=60).assign(group=lambda rows: rows["sample"] // 2).to_csv(path, index=False)
    assert run("estimate", path, "--metric", "auc", "--cut", "sensitivity=0.8", *FAST) == OK
    assert "threshold" in capsys.readouterr().out
    for wrong in ("foo=1", "sensitivity=x"):
        assert run("estimate", path, "--metric", "auc", "--cut", wrong, *FAST) == BAD_INPUT
        assert "--cut takes a metric, or sensitivity=0.9" in capsys.readouterr().err
    assert run("estimate", path, "--metric", "auc", "--subgroup", "sex", *FAST) == BAD_INPUT
    assert "sex" in capsys.readouterr().err


def test_report_leads_with_one_decision_and_can_be_made_again(table, tmp_path, capsys):
    target = tmp_path / "report.html"
    asked = ["--metric", "auc,sensitivity", "--by", "auc", "--cut", "youden"]
    assert run("report", table, *asked, *FAST, "-o", target) == OK
    page = target.read_text(encoding="utf-8")
    assert page.index('id="decision"') < page.index('id="read"')
    assert "--metric auc,sensitivity --by auc --cut youden" in page
    assert "was learned again in every draw" in page


def test_json_is_what_its_page_says(tmp_path, capsys):
    page = pathlib.Path(__file__).parents[1] / "docs" / "json.md"
    if not page.exists():
        pytest.skip("the documentation is not part of an installed package")
    _, estimate, compare, describe = page.read_text(encoding="utf-8").split("\n## ")
    cube = cs.example_cube().isel(repeat=0, configuration=slice(0, 133, 30))
    cube = cube.assign_coords(site=("sample", np.array(["x", "y"] * 60)))
    cs.write_cube(cube, tmp_path / "p.csv")
    known = ["--positive", "malignant", "--json"]
    judged = ["--metric", "auc,brier", "--by", "auc", "--cut", "youden", "--subgroup", "site"]
    assert run("estimate", tmp_path / "p.csv", *known, *judged, *FAST) == OK
    found = json.loads(capsys.readouterr().out)
    rows = [line.split("|")[1] for line in estimate.splitlines() if line.startswith("| `")]
    assert set(found) == set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert [one["protocol"] for one in found["results"]][:5] == ["decision"] * 4 + ["winner"]
    named = re.search(r"such as (.*?)\. What", estimate, flags=re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", named)) <= set(found["results"][4])
    assert set(found["results"][4]["win_rate"]) == set(cube["configuration"].values)
    assert run("compare", tmp_path / "p.csv", *known, *FAST) == OK
    found = json.loads(capsys.readouterr().out)
    assert set(re.findall(r"`([a-z_]+)`", compare.partition("; with")[0])) - {"best_set"} <= set(found)
    assert run("describe", tmp_path / "p.csv", *known) == OK
    assert set(re.findall(r"`([a-z_]+)`", describe)) - {"load_report"} <= set(json.loads(capsys.readouterr().out))


def test_prior_and_families_on_the_command_line(tmp_path, capsys):
    cs.write_cube(cs.example_cube().isel(repeat=0, configuration=slice(0, 133, 30)), tmp_path / "p.csv")
    known = ["--positive", "malignant", "--json"]
    assert run("estimate", tmp_path / "p.csv", *known, "--prior", "malignant=0.02", *FAST) == OK
    assert "malignant=0.02" in json.loads(capsys.readouterr().out)["metric"]
    assert run("compare", tmp_path / "p.csv", *known, "--a", "naive*", "--b", "*logistic*", *FAST) == OK
    assert {"estimate", "conf_low", "conf_high", "p_value"} <= set(json.loads(capsys.readouterr().out))

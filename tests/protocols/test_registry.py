"""What a protocol says about itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cvstats as cs
from cvstats.metrics import get_metric
from cvstats.protocols import PROTOCOLS, Protocol, protocol

CUBE = cs.simulate_cube(40, 4, folds=4, repeats=2, rng=1)
BARE = cs.as_cube([[0.9], [0.2]], [1, 0])


def test_every_protocol_says_how_it_is_called_and_what_chooses_and_judges():
    names = (
        "winner bbc bbc_cross_repeat bbc_ncv bbc_x bbcd cv cvt cvm_cv tt ncv cv2 ncv_criterion separate_cv classical_cv"
    )
    assert set(PROTOCOLS) == {*names.split(), "prior_reweighted_cv", "bbc_folds"}
    assert all(entry.words and entry.chooses and entry.judges for entry in PROTOCOLS.values())
    assert len({entry.words for entry in PROTOCOLS.values()}) == len(PROTOCOLS)


@pytest.mark.parametrize("name", ["winner", "bbc", "bbcd", "cv", "cvt", "cvm_cv", "tt"])
def test_results_are_found_by_their_method(name):
    options = {"times": 50, "rng": 1} if name in ("winner", "bbc", "bbcd") else {}
    assert str(getattr(cs, name)(CUBE, "accuracy", **options)["method"].values) in PROTOCOLS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bbc", None),
        ("tt", "the folds were not saved"),
        ("bbcd", "the folds were not saved"),
        ("cvm_cv", "it needs two repeats"),
        ("separate_cv", "the classes were not sampled separately"),
        ("prior_reweighted_cv", None),
    ],
)
def test_a_protocol_says_why_it_does_not_apply(name, reason):
    assert PROTOCOLS[name].applies(BARE) == reason


def test_what_does_not_apply_is_refused():
    metric = get_metric("accuracy")
    for name in ("tt", "cvm_cv"):
        assert PROTOCOLS[name].applies(CUBE) is None
        with pytest.raises(cs.InputError):
            getattr(cs, name)(BARE, metric)


def test_a_protocol_from_outside(monkeypatch):
    monkeypatch.setattr("cvstats.protocols.registry.PROTOCOLS", dict(PROTOCOLS))

    @protocol("half", "Half and half", "the first half", "the second half")
    def half(cube, metric):
        return cube

    from cvstats.protocols import PROTOCOLS as now

    assert now["half"] == Protocol("Half and half", "the first half", "the second half")
    assert half(1, 2) == 1


@pytest.mark.slow
def test_reading_the_registry_is_light():
    heavy = "{'scipy.stats', 'statsmodels'} & set(sys.modules)"
    code = f"import sys; from cvstats.protocols import PROTOCOLS; sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_name():
    import cvstats.protocols

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cvstats.protocols.nothing

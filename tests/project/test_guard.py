"""The regression guard: its comparison, its recorded values, and that it notices planted faults."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks" / "coverage").is_dir(), reason="not in the sdist")


@pytest.fixture(scope="module")
def guard():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from benchmarks.coverage import guard

        yield guard


KEY = ("cell", "method", "bias")


def test_means_are_compared_by_welch(guard):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(0.3, 2, size=300)
    expected = stats.ttest_ind(a, b, equal_var=False).pvalue
    assert guard.p_value("bias", guard.summarise(a), guard.summarise(b)) == pytest.approx(expected, rel=1e-12)


def test_shares_are_compared_by_fisher(guard):
    a, b = np.repeat([1.0, 0.0], [90, 10]), np.repeat([1.0, 0.0], [560, 40])
    expected = stats.fisher_exact([[90, 560], [10, 40]]).pvalue
    assert guard.p_value("covered", guard.summarise(a), guard.summarise(b)) == pytest.approx(expected, rel=1e-12)
    ones = guard.Summary(1.0, 0.0, 100)
    assert guard.p_value("covered", ones, guard.Summary(1.0, 0.0, 600)) == 1


def test_numbers_that_never_vary_must_be_the_same(guard):
    flat = guard.summarise(np.array([1e-17, 0, -1e-17]))
    assert flat.std == 0
    assert guard.p_value("shift", flat, guard.Summary(0.0, 0.0, 600)) == 1
    assert guard.p_value("shift", guard.Summary(1e-6, 0.0, 100), guard.Summary(0.0, 0.0, 600)) == 0


def test_a_drift_of_the_stated_size_is_mostly_noticed(guard):
    """Nine of ten by construction; what is not there is noticed in fewer than one of a thousand."""
    rng = np.random.default_rng(1)
    recorded = {KEY: guard.Summary(0.0, 1.0, 600)}
    drift = guard.compare({KEY: guard.Summary(0.0, 1.0, 150)}, recorded)[0].detects
    alarms = []
    for size in (drift, 0.0):
        values = rng.normal(size=(500, 150)) + size + rng.normal(size=(500, 1)) / np.sqrt(600)
        alarms.append(sum(guard.compare({KEY: guard.summarise(each)}, recorded)[0].alarm for each in values))
    assert alarms[0] == pytest.approx(450, abs=35)
    assert alarms[1] <= 4


def test_more_comparisons_need_more_evidence(guard):
    summary, recorded = guard.Summary(0.29, 1.0, 150), guard.Summary(0.0, 1.0, 600)
    assert guard.compare({KEY: summary}, {KEY: recorded})[0].alarm is False
    summary = guard.Summary(0.32, 1.0, 150)
    many = {("cell", str(i), "bias"): summary for i in range(100)}
    assert guard.compare({KEY: summary}, {KEY: recorded})[0].alarm is True
    assert not any(each.alarm for each in guard.compare(many, dict.fromkeys(many, recorded)))


def test_a_number_that_was_never_recorded_is_refused(guard):
    with pytest.raises(SystemExit, match=r"no recorded value for \('cell', 'method', 'bias'\)"):
        guard.compare({KEY: guard.Summary(0.0, 1.0, 10)}, {})


def test_every_number_of_the_grid_is_recorded(guard):
    found = set()
    for name in guard.cells.CELLS:
        for method, numbers in guard.run_chunk(name, 0, 1, 5, None)[0].items():
            found |= {(name, method, number) for number in numbers}
    assert found <= set(guard.load()[1])


def test_chance_alone_raises_no_more_alarms_than_stated(guard):
    made, _ = guard.load()
    assert made["false_alarms"] <= stats.binom.ppf(0.999, made["splits"], guard.ALARM)


# Found with independent programs at 1000 to 2000 repetitions; the tolerance is four of their Monte-Carlo errors.
TARGETS = [
    ("N = 100, C = 100", "cvt", "bias", 0.0379, 0.003),
    ("N = 100, C = 100", "tt", "bias", -0.0662, 0.0045),
    ("N = 100, C = 100", "ncv", "bias", -0.0004, 0.005),
    ("N = 100, C = 100", "bbc", "bias", -0.0127, 0.004),
    ("N = 100, C = 100", "bbc", "width", 0.230, 0.006),
    ("N = 100, C = 100", "winner, holdout", "bias", 0.001, 0.0035),
    ("N = 100, C = 100", "winner, holdout", "width", 0.156, 0.005),
    ("N = 20, C = 200", "cvt", "bias", 0.155, 0.006),
    ("N = 20, C = 200", "tt", "bias", 0.119, 0.0075),
    ("N = 20, C = 200", "bbc", "bias", -0.028, 0.009),
    ("separate sampling, r = .15, c = .5", "classical_cv", "bias", 0.056, 0.004),
    ("separate sampling, r = .15, c = .5", "separate_cv", "bias", -0.003, 0.008),
    ("separate sampling, r = .70, c = .1", "classical_cv", "bias", 0.044, 0.004),
    ("separate sampling, r = .70, c = .1", "separate_cv", "bias", -0.002, 0.008),
]


@pytest.mark.parametrize(("cell", "method", "number", "target", "tolerance"), TARGETS)
def test_recorded_values_are_those_of_independent_programs(guard, cell, method, number, target, tolerance):
    recorded = guard.load()[1][cell, method, number]
    assert recorded.mean == pytest.approx(target, abs=np.hypot(tolerance, 4 * recorded.error))


def test_tests_hold_their_level(guard):
    """At 5 %; the corrected t-test and the set of the best are careful."""
    for (_, method, number), each in guard.load()[1].items():
        if number == "rejected":
            assert each.mean < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / each.n), method


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "only", "caught"),
    [
        (None, "AUC with ties, N = 60, C = 1", set()),
        ("auc: a tie counts as a win", "AUC with ties, N = 60, C = 1", {"delong", "bbc", "winner"}),
        ("bbc: winner judged on in-bag samples", "Beta(54, 6)", {"bbc"}),
        ("winner: interval 5 % too narrow", "Beta(54, 6)", {"winner"}),
        (None, "strange: one configuration", set()),
        ("winner: constant of many configurations for one", "strange: one configuration", {"winner"}),
    ],
)
def test_planted_faults_are_noticed(guard, plant, only, caught):
    assert {verdict.key[1] for verdict in guard.check("short", plant=plant, only=only) if verdict.alarm} == caught

"""Cubes on dask: the same numbers as in memory, one pass over the data, on threads, processes and after a crash."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import xarray as xr

import cvstats as cs
from cvstats.cube.blocks import by_chunk

da = pytest.importorskip("dask.array")


def cube_of(n=60, c=17, repeats=2, *, gaps=False, seed=0, **coords):
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    p = np.clip(0.3 * y[:, None, None] + 0.7 * g.random((n, c, repeats)), 0, 1).round(2)
    if gaps:
        p[:3] = np.nan
        p[5:9, 1] = np.nan
        p[10:20, 2, 0] = np.nan
    folds = np.stack([g.permutation(np.arange(n) % 5) for _ in range(repeats)], axis=1)
    names = [f"c{j}" for j in range(c)]
    return cs.as_cube(p, y, folds=folds, configurations=names, kind="probability", **coords)


def on_dask(cube, reads=None, chunk=5):
    """Return the cube on dask; `reads` collects one entry for every block that is read."""

    def read(block, block_info=None):
        if reads is not None and block_info:
            reads.append(block_info[0]["chunk-location"])
        return block

    lazy = cube.chunk(configuration=chunk)
    return lazy.copy(data=lazy.data.map_blocks(read, dtype=float, meta=np.empty((0,) * cube.ndim)))


def same(lazy, plain):
    """Compare all numbers to the last bit; provenance tells where the data lay."""
    xr.testing.assert_identical(lazy.drop_attrs(), plain.drop_attrs())


GAPS = pytest.mark.filterwarnings("ignore:.* 1 of 17 configurations lacked predictions that others have")
PROTOCOLS = {
    "cv": lambda cube, metric: cs.cv(cube, metric),
    "cv by fold": lambda cube, metric: cs.cv(cube, metric, average="fold"),
    "cvt": lambda cube, metric: cs.cvt(cube, metric),
    "cvm_cv": lambda cube, metric: cs.cvm_cv(cube, metric),
    "tt": lambda cube, metric: cs.tt(cube, metric),
    "bbc": lambda cube, metric: cs.bbc(cube, metric, times=97, rng=1, keep_draws=True),
    "bbc, one standard error": lambda cube, metric: cs.bbc(cube, metric, times=97, rng=1, select=cs.select_one_se),
    "bbc, within": lambda cube, metric: cs.bbc(cube, metric, times=97, rng=1, select=cs.select_within(0.05)),
    "winner": lambda cube, metric: cs.winner(cube, metric, times=97, rng=1),
    "bbcd": lambda cube, metric: cs.bbcd(cube, metric, times=97, rng=1, min_predictions=10),
    "drop": lambda cube, metric: cs.drop_configurations(cube, metric, times=97, rng=1),
}


@pytest.mark.parametrize("metric", ["accuracy", "auc"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_protocols_give_the_same_numbers(protocol, metric):
    cube = cube_of()
    same(PROTOCOLS[protocol](on_dask(cube), metric), PROTOCOLS[protocol](cube, metric))


@GAPS
@pytest.mark.parametrize("protocol", ["cvt", "bbc", "bbc, one standard error", "winner"])
def test_protocols_with_gaps(protocol):
    cube = cube_of(gaps=True)
    for metric in ("f1", "auc"):
        same(PROTOCOLS[protocol](on_dask(cube), metric), PROTOCOLS[protocol](cube, metric))


def test_nested_protocols():
    cube, inner = cs.simulate_cube(60, 7, inner=True, folds=5, rng=1)
    lazy, lazy_inner = cube.chunk(configuration=3), inner.chunk(configuration=3)
    same(cs.ncv(lazy, "accuracy", inner=lazy_inner), cs.ncv(cube, "accuracy", inner=inner))
    options = {"times": 97, "rng": 1}
    same(cs.winner(lazy, "accuracy", inner=lazy_inner, **options), cs.winner(cube, "accuracy", inner=inner, **options))


@pytest.mark.filterwarnings("ignore:.* groups are split across folds")
def test_groups_weights_and_strata():
    n = 60
    cube = cube_of(n, groups=np.arange(n) // 3, weights=1.0 + np.arange(n) % 2)
    options = {"times": 97, "rng": 1, "keep_draws": True}
    same(cs.bbc(on_dask(cube), "accuracy", **options), cs.bbc(cube, "accuracy", **options))
    cube = cube_of(n)
    same(cs.bbc(on_dask(cube), "auc", strata="label", **options), cs.bbc(cube, "auc", strata="label", **options))


@pytest.mark.parametrize("metric", ["accuracy", "auc"])
def test_one_pass_over_the_data(metric):
    reads = []
    lazy = on_dask(cube_of(), reads)
    cs.bbc(lazy, metric, times=97, rng=1)
    assert len(reads) == len(set(reads)) == 4
    cs.bbc(lazy, metric, times=97, rng=2)
    assert len(reads) == 8


@GAPS
def test_gaps_cost_a_second_pass():
    reads = []
    lazy = on_dask(cube_of(gaps=True), reads)
    cs.bbc(lazy, "accuracy", times=97, rng=1)
    assert len(reads) == 8


def test_winners_of_other_strategies_are_judged_where_they_lie():
    """The second pass reads only the blocks that hold a winner."""
    cube = cube_of(repeats=1)
    cube.values[:, 7] = cube["label"].values[:, None]  # always the best
    reads = []
    out = cs.bbc(on_dask(cube, reads), "accuracy", times=97, rng=1, select=cs.select_within(0.0))
    assert out.selected.item() == "c7"
    assert sorted(reads) == [(0, 0, 0), (0, 1, 0), (0, 1, 0), (0, 2, 0), (0, 3, 0)]


def test_a_cube_split_along_samples_is_rechunked_with_one_warning():
    cube = cube_of()
    lazy = cube.chunk(sample=13, configuration=4)
    with pytest.warns(
        cs.CvstatsWarning, match=r"is split along 'sample'; it is rechunked to 17 whole .*cube.chunk\({'sample': -1"
    ) as told:
        out = cs.bbc(lazy, "accuracy", times=97, rng=1)
    assert len(told) == 1
    same(out, cs.bbc(cube, "accuracy", times=97, rng=1))


def test_many_tiny_blocks_are_put_together_with_one_warning():
    cube = cube_of(c=70, repeats=1)
    with pytest.warns(cs.CvstatsWarning, match="has 70 tiny blocks; it is put together while it is read"):
        out = cs.bbc(cube.chunk(configuration=1), "accuracy", times=97, rng=1)
    same(out, cs.bbc(cube, "accuracy", times=97, rng=1))


def test_values_are_checked_block_by_block():
    cube = cube_of()
    bad = cube.copy(data=np.where(np.arange(17)[:, None] == 9, 2.0, cube.values))
    with pytest.raises(cs.InputError, match=r"probabilities must lie in \[0, 1\]"):
        cs.bbc(bad.chunk(configuration=5), "accuracy", times=97, rng=1)
    g = np.random.default_rng(0)
    numbers = cs.as_cube(g.normal(size=(20, 6)), g.normal(size=20), kind="value")
    wild = numbers.copy(data=np.where(np.arange(120).reshape(20, 6) == 20, np.inf, numbers.values))
    with pytest.raises(
        cs.InputError, match="needs finite predictions; found infinite ones for the samples in places 3"
    ):
        cs.bbc(wild.chunk(configuration=2), "mse", times=97, rng=1)


def test_nobody_complete_is_an_error():
    cube = cube_of(repeats=1)
    values = cube.values.copy()
    values[np.arange(17), np.arange(17)] = np.nan
    with pytest.raises(cs.InputError, match="no configuration predicted every sample"):
        cs.bbc(cube.copy(data=values).chunk(configuration=5), "accuracy", times=97, rng=1)
    with pytest.raises(cs.InputError, match="every value is NaN"):
        cs.bbc(cube.copy(data=values * np.nan).chunk(configuration=5), "accuracy", times=97, rng=1)


def test_judging_samples_that_nobody_chose_on():
    cube = cube_of(repeats=1).isel(repeat=0)
    few = cube.copy(data=np.where(np.arange(60)[:, None] < 3, np.nan, cube.values))
    draws = cs.bootstrap(few, 40, rng=1)
    with pytest.raises(cs.InputError, match=r"`judge_cube` has predictions for samples .*: 0, 1, 2\."):
        cs.select_and_judge(few, "accuracy", choose=draws, judge_cube=cube, rng=1)
    plain = cs.select_and_judge(few, "accuracy", choose=draws, judge_cube=few, rng=1)
    xr.testing.assert_identical(plain, cs.select_and_judge(few, "accuracy", choose=draws, rng=1))
    judged = {"choose": draws, "rng": 1, "judge_cube": few.chunk(configuration=4)}
    xr.testing.assert_identical(cs.select_and_judge(few.chunk(configuration=6), "accuracy", **judged), plain)


def test_batch_dims():
    cube = xr.concat([cube_of(seed=0), cube_of(seed=1)], dim=xr.DataArray(["x", "y"], dims="data", name="data"))
    options = {"times": 97, "rng": 1}
    same(cs.bbc(cube.chunk(configuration=5), "accuracy", **options), cs.bbc(cube, "accuracy", **options))


# --- progress and threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lazy", "total"), [(False, 97), (True, 4)])
def test_progress_moves_a_bar_to_its_end_and_changes_nothing(lazy, total, capsys, monkeypatch):
    import tqdm.auto

    bars = []

    class Bar(tqdm.auto.tqdm):
        def close(self):
            bars.append((self.desc, self.n, self.total))
            super().close()

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    cube = cube_of()
    plain = cs.bbc(cube, "accuracy", times=97, rng=1)
    out = cs.bbc(on_dask(cube) if lazy else cube, "accuracy", times=97, rng=1, progress=True)
    same(out, plain)
    assert bars[0] == ("choosing", total, total)
    shown = capsys.readouterr()
    assert "choosing" in shown.err
    assert not shown.out


def test_progress_without_tqdm_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(cs.InputError, match="`progress=True` needs the package tqdm"):
        cs.bbc(cube_of(), "accuracy", times=97, rng=1, progress=True)


def test_threads_follow_the_limits_of_the_caller(monkeypatch):
    from cvstats.kernels.threads import LIMITS, one_blas_thread, thread_count

    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    pools = pytest.importorskip("threadpoolctl")
    with pools.threadpool_limits(limits=1, user_api="blas"):
        assert thread_count() == 1
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.delitem(sys.modules, "threadpoolctl")
    assert thread_count() == 8
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert thread_count() == 3
    with one_blas_thread():
        assert thread_count() == 1


def test_blocks_run_with_one_blas_thread_each():
    pools = pytest.importorskip("threadpoolctl")
    seen = []

    class Spy:
        def __call__(self, part):
            seen.append([pool["num_threads"] for pool in pools.threadpool_info() if pool["user_api"] == "blas"])
            return part["configuration"]

    before = [part["num_threads"] for part in pools.threadpool_info()]
    by_chunk(cube_of().chunk(configuration=6), Spy())
    assert len(seen) == 3
    assert all(count == 1 for counts in seen for count in counts)
    assert [part["num_threads"] for part in pools.threadpool_info()] == before


def test_threads_over_columns_change_nothing(monkeypatch):
    pytest.importorskip("numba")
    from cvstats.kernels import walk as _walk

    cube = cube_of(c=40)
    monkeypatch.setattr(_walk, "FORCE", "numba")
    plain = cs.bbc(cube, "auc", times=97, rng=1)
    monkeypatch.setattr(_walk, "THREADED", 0)
    monkeypatch.setattr(_walk, "thread_count", lambda: 3)
    same(cs.bbc(cube, "auc", times=97, rng=1), plain)


# --- a cluster of processes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
        yield client


def slow(block):
    time.sleep(0.3)
    return block


@GAPS
def test_processes_give_the_same_numbers(cluster):
    cube = cube_of(gaps=True)
    options = {"times": 97, "rng": 1, "keep_draws": True}
    for metric in ("accuracy", "auc"):
        same(cs.bbc(cube.chunk(configuration=5), metric, **options), cs.bbc(cube, metric, **options))
    lazy = cube.chunk(configuration=5)
    same(cs.winner(lazy, "accuracy", times=97, rng=1, progress=True), cs.winner(cube, "accuracy", times=97, rng=1))
    select = cs.select_within(0.05)
    same(cs.bbc(lazy, "auc", select=select, **options), cs.bbc(cube, "auc", select=select, **options))


def test_a_worker_that_dies_is_replaced(cluster):
    cube = cube_of(c=24, repeats=1)
    plain = cs.bbc(cube, "accuracy", times=97, rng=1)
    lazy = cube.chunk(configuration=2)
    lazy = lazy.copy(data=lazy.data.map_blocks(slow, dtype=float))
    victim = next(iter(cluster.run(os.getpid).values()))
    killer = threading.Timer(0.6, os.kill, (victim, signal.SIGKILL))
    killer.start()
    out = cs.bbc(lazy, "accuracy", times=97, rng=1)
    killer.join()
    same(out, plain)
    assert victim not in cluster.run(os.getpid).values()


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_infinite_predictions_of_either_sign_are_found_on_dask(infinite):
    rng = np.random.default_rng(0)
    cube = cs.as_cube(rng.normal(size=(12, 4, 2)), rng.normal(size=12)).copy()
    cube[5, 2, 1] = infinite
    with pytest.raises(cs.InputError, match="found infinite ones for the samples in places 5"):
        cs.bbc(cube.chunk(configuration=2), "mse", times=50, rng=1)

# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Cubes larger than memory
#
# Twenty thousand samples and twenty thousand configurations are 1.6 GB of predictions even in single precision. A
# machine that trained so many models has them on disk; nobody wants them all in memory at once. The package reads such
# a cube piece by piece, and the numbers are the same to the last bit.

# %%
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

import cvstats as cs

LARGE = False  # True: 20 000 x 20 000, 1.6 GB on disk, some minutes, not part of any test
SAMPLES, CONFIGURATIONS = (20_000, 20_000) if LARGE else (3_000, 6_000)
BLOCK = CONFIGURATIONS // 20  # configurations that are in memory at a time
TIMES = 200  # bootstrap draws

# %% [markdown]
# ## Writing while training
#
# A training job appends each batch of configurations to a store as it finishes: a folder with a netCDF file per append
# and a manifest of their hashes. Nothing stored is ever overwritten: a job that dies is simply run again and fills the
# gaps. Here random numbers stand in for models; a few of them know a little more about the label than the others.

# %%
folder = Path(tempfile.mkdtemp())
store = folder / "run.cube"
rng = np.random.default_rng(1)
label = rng.integers(0, 2, SAMPLES)
fold = cs.kfold(label, 10, rng=1).values[:, 0]
start = time.perf_counter()
for first in range(0, CONFIGURATIONS, BLOCK):
    skill = rng.beta(2, 8, BLOCK)
    score = skill * (label[:, None] - 0.5) + rng.normal(0, 0.35, (SAMPLES, BLOCK))
    names = [f"model {j}" for j in range(first, first + BLOCK)]
    part = cs.as_cube(score.astype(np.float32), label, folds=fold, configurations=names, kind="score", threshold=0.0)
    cs.write_cube(part, store, append=True)
print(f"written in {time.perf_counter() - start:.1f} s")

# %% [markdown]
# ## Reading without loading
#
# With `chunks=` the cube stays on disk. What comes back looks like any other cube, backed by dask.

# %%
lazy = cs.read_cube(store, chunks={"configuration": BLOCK})
print(dict(lazy.sizes), f"{lazy.nbytes / 1e6:.0f} MB", "in chunks of", lazy.data.chunksize)

# %% [markdown]
# Chunk along `configuration` only. A draw needs all samples of a configuration at once, and it needs nothing of the
# others but their best score so far; so each block reports, for every draw, its best score, who had it, and how that
# one did on the samples left out. Blocks are merged by comparing scores.


# %%
class Peak:
    """Measure the largest amount of memory Python held inside a `with` block."""

    def __enter__(self):
        tracemalloc.start()
        return self

    def __exit__(self, *error):
        self.megabytes = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()


out = cs.winner(lazy, "accuracy", times=TIMES, rng=1)
with Peak() as streamed:  # a second time, so that what is imported or compiled on first use does not count
    cs.winner(lazy, "accuracy", times=TIMES, rng=1)
print(f"{out.selected.item()}: claimed {out.naive.item():.4f}, honest {out.estimate.item():.4f}")
print(f"interval {out.conf_low.item():.4f} to {out.conf_high.item():.4f}")
print(f"peak memory {streamed.megabytes:.0f} MB")

# %% [markdown]
# ## The same numbers
#
# Sums are kept exact (whole numbers, or fixed point for real losses), and ties are broken by a key made of the seed,
# the draw and the *name* of the configuration. So neither the chunks nor the number of workers can change a digit.

# %%
if not LARGE:
    with Peak() as loaded:
        whole = cs.winner(lazy.compute(), "accuracy", times=TIMES, rng=1)
    print(f"in memory: peak {loaded.megabytes:.0f} MB")
    other = cs.winner(lazy.chunk({"configuration": BLOCK // 3}), "accuracy", times=TIMES, rng=1)
    for name in ("estimate", "conf_low", "conf_high", "naive"):
        print(f"{name:10}", out[name].item() == whole[name].item() == other[name].item())
    print("winner of every draw:", bool((out.win_rate.values == whole.win_rate.values).all()))

# %% [markdown]
# ## How long does it take?
#
# The time grows in proportion to samples, configurations and draws, and hardly with repeats, which are summed before
# drawing. The memory grows little with the number of configurations. `batch=` bounds the memory of the draws,
# `progress=True` shows a bar, and the extra `cvstats[fast]` (numba) speeds up AUC.

# %%
print("configurations  seconds  peak MB (streamed)")
for count in (CONFIGURATIONS // 4, CONFIGURATIONS // 2, CONFIGURATIONS):
    part = lazy.isel(configuration=slice(0, count))
    begin = time.perf_counter()
    cs.bbc(part, "accuracy", times=TIMES, rng=1)
    seconds = time.perf_counter() - begin
    with Peak() as peak:
        cs.bbc(part, "accuracy", times=TIMES, rng=1)
    print(f"{count:14} {seconds:8.2f} {peak.megabytes:8.0f}")

# %% [markdown]
# A cluster works the same way: create a `dask.distributed` client first, and every protocol uses its workers. Set one
# BLAS thread per worker. [The page on clusters](../docs/cluster.md) has the details and the measured scaling.
#
# ## What to remember
#
# - Append to a store (`.cube`) while training; single precision is enough for predictions. `compact_cube` merges parts
#   when there are very many small ones.
# - A Zarr store of your own is opened with xarray: `xarray.open_zarr(path)["prediction"]` is a cube.
# - Read with `chunks={"configuration": ...}` and call what you always call.
# - If it fits into memory, load it: chunks save memory, not time.

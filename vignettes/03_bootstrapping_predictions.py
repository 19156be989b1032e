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
# # Bootstrapping the predictions
#
# Nested cross-validation tells the truth about a winner, but it trains ten times as many models. Tsamardinos, Greasidou
# and Borboudakis (2018, [doi:10.1007/s10994-018-5714-4](https://doi.org/10.1007/s10994-018-5714-4)) noticed that the
# table of saved predictions already holds the answer. This vignette explains their method (BBC-CV), repeats their
# experiments in small, and puts our intervals beside theirs.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

import cvstats as cs

LARGE = "CVSTATS_LARGE" in os.environ  # with CVSTATS_LARGE=1 the long runs are made again (ten minutes) and kept
TIMES = 200  # bootstrap draws
RESULTS = next(p / "benchmarks/results" for p in (Path.cwd(), *Path.cwd().parents) if (p / "benchmarks").is_dir())


def kept(name, made):
    """Return the table of the long run; make it anew where the run is long."""
    if LARGE:
        made.round(5).to_csv(RESULTS / f"papers_{name}.csv", index=False)
    return pd.read_csv(RESULTS / f"papers_{name}.csv")


# %% [markdown]
# ## The idea in ten lines
#
# Think of the predictions as a table: a row for each sample, a column for each configuration. Draw rows with
# replacement. On the drawn rows, one column is best: it is *chosen*. About 37 % of the rows were not drawn: they
# *judge* it. They had no part in the choice, so their verdict is fair. Repeat and average. No model is trained.

# %%
cube = cs.simulate_cube(100, 100, rng=1)
right = (cube == cube.label).values
draws = cs.bootstrap(cube, TIMES, rng=1)
verdicts = []
for weight in draws.values:
    chosen = np.argmax(weight @ right)  # best column on the drawn rows, counted as often as drawn
    verdicts.append(right[weight == 0, chosen].mean())  # judged by the others
print(f"by hand {np.mean(verdicts):.6f}")
print(f"bbc()   {cs.bbc(cube, 'accuracy', draws=draws).estimate.item():.6f}")

# %% [markdown]
# ## Simulation: bias by sample size and number of configurations
#
# In the paper's simulation every configuration has a true accuracy, drawn from a Beta distribution, and is right on
# each sample with that probability. (The text has one random number per sample; the authors' program has one per sample
# *and* configuration, and only that reproduces their figure, so we use it.)
#
# Five protocols: CVT, TT, NCV, BBC and BBCD, which stops training configurations that are clearly losing. The paper
# draws its Figure 1 for Beta(9, 6), with a mean of .6, and says that the other three look alike.

# %%
METHODS = ["CVT", "TT", "NCV", "BBC", "BBCD"]
NINE_SIX, OTHERS = (9, 6), [(14, 6), (24, 6), (54, 6)]


def simulated_study(beta, n, count, rng):
    """Return the bias of every protocol in one study, and NCV minus BBC."""
    cube, inner = cs.simulate_cube(n, count, beta=beta, folds=10, inner=True, rng=rng)
    claim = cs.cvt(cube, "accuracy")
    dropping = cs.bbcd(cube, "accuracy", times=TIMES, min_predictions=0, rng=rng)
    reports = [
        claim,
        cs.tt(cube, "accuracy"),
        cs.ncv(cube, "accuracy", inner=inner.drop_vars("fold")),
        cs.bbc(cube, "accuracy", times=TIMES, rng=rng),
    ]
    truth = cube.truth.sel(configuration=claim.selected.item())
    kept_truth = cube.truth.sel(configuration=dropping.selected.item())  # BBCD may end with another configuration
    bias = [*(float(out.estimate - truth) for out in reports), float(dropping.estimate - kept_truth)]
    return [*bias, bias[2] - bias[3]]


def simulation(betas, sizes, counts, trials, rng):
    rows = []
    for beta in betas:
        for n, count in ((n, count) for n in sizes for count in counts):
            found = np.array([simulated_study(beta, n, count, rng) for _ in range(trials)])
            numbers = zip([*METHODS, "NCV - BBC"], found.mean(axis=0), found.std(axis=0, ddof=1), strict=True)
            rows += [(*beta, n, count, trials, name, mean, sd / np.sqrt(trials)) for name, mean, sd in numbers]
    return pd.DataFrame(rows, columns=["a", "b", "size", "configurations", "trials", "method", "bias", "error"])


rng = np.random.default_rng(1)
now = simulation([NINE_SIX], [20, 100], [50, 500], 4, rng)
print("now, four data sets to a cell")
print(now.pivot_table(index=["size", "configurations"], columns="method", values="bias")[METHODS].round(3).to_string())
if LARGE:
    parts = [
        simulation([NINE_SIX], [20, 40, 60, 80, 100, 500], [50, 200, 500, 2000], 20, rng),
        simulation([NINE_SIX], [1000], [50, 200, 500], 20, rng),
        simulation(OTHERS, [20, 100, 500], [50, 500], 20, rng),
    ]
    now = pd.concat(parts)
bias = kept("bootstrap_bias", now)
main = bias[bias.a == 9]
fig, axes = plt.subplots(1, 5, figsize=(11, 2.8), layout="constrained", sharey=True)
for ax, method in zip(axes, METHODS, strict=True):
    for count, line in main[main.method == method].groupby("configurations"):
        ax.plot(line["size"], line.bias, marker=".", label=str(count))
    ax.axhline(0, color="0.5", lw=0.6)
    ax.set(xscale="log", title=method, xlabel="samples")
axes[0].set_ylabel("bias of accuracy")
fig.legend(*axes[0].get_legend_handles_labels(), title="configurations", loc="outside right center")
plt.show()

# %% [markdown]
# *Figure 1 (the paper's Figure 1). Bias of five protocols in simulated studies, Beta(9, 6). Above zero means too
# optimistic.*

# %%
every = bias.pivot_table(index=["a", "b", "size", "configurations"], columns="method", values="bias")[METHODS]
print(every.drop(index=9).round(3).to_string())
gap = main[main.method == "NCV - BBC"]
gap_mean, gap_error = gap.bias.mean(), np.sqrt((gap.error**2).sum()) / len(gap)
print(f"\nNCV minus BBC, averaged over cells: {gap_mean:.3f} (standard error {gap_error:.3f}; paper .013)")

# %% [markdown]
# CVT is optimistic by up to .19. TT is optimistic with few samples and pessimistic with more. NCV has no bias worth
# speaking of but a large spread. BBC errs a little on the safe side, and quickly less so. The better the configurations
# are on average (the other Betas), the smaller everything becomes.
#
# ## Real data
#
# Fixed models flatter every method, so we also let models learn. Small studies are drawn from two data sets; the other
# 70 % of each data set tells the truth. The metric is AUC. The learners are ridge regression and nearest neighbours,
# in closed form, with 60 configurations. Every study is partitioned ten times.

# %%
PENALTIES, NEIGHBOURS, WIDTHS = np.logspace(-2, 3, 12), np.arange(2, 10), [None, 10, 3]


def learn(x, y, new):
    """Return scores of all configurations for `new`, one column each, trained on (x, y)."""
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    x, new = (x - mean) / spread, np.clip((new - mean) / spread, -10, 10)
    order = np.argsort(-np.abs(x[y == 1].mean(axis=0) - x[y == 0].mean(axis=0)))
    columns = []
    for width in WIDTHS:
        a, b = x[:, order[:width]], new[:, order[:width]]
        left, size, axes = np.linalg.svd(a, full_matrices=False)
        shrunk = size / (size**2 + PENALTIES[:, None]) * (left.T @ (y - y.mean()))
        near = np.argsort((a**2).sum(axis=1) - 2 * b @ a.T, axis=1)[:, : NEIGHBOURS[-1]]
        columns += [b @ (shrunk @ axes).T, np.cumsum(y[near], axis=1)[:, NEIGHBOURS - 1] / NEIGHBOURS - 0.5]
    return np.concatenate(columns, axis=1)


def predictions(x, y, folds):
    """Return the cube, a repeat for each column of `folds`, and the inner predictions of the first of them."""
    count = len(WIDTHS) * (len(PENALTIES) + len(NEIGHBOURS))
    outer = np.empty((len(y), count, folds.shape[1]))
    inner = np.full((len(y), count, folds.max() + 1), np.nan)
    for r, fold in enumerate(folds.T):
        for i in range(fold.max() + 1):
            outer[fold == i, :, r] = learn(x[fold != i], y[fold != i], x[fold == i])
            for j in range(i if r == 0 else 0):  # each pair of folds left out serves two outer folds
                both = (fold == i) | (fold == j)
                scores = learn(x[~both], y[~both], x[both])
                inner[fold == j, :, i], inner[fold == i, :, j] = scores[fold[both] == j], scores[fold[both] == i]
    cube = cs.as_cube(outer, y, folds=folds, kind="score", threshold=0.0)
    dims = ("sample", "configuration", "outer_fold")
    return cube, xr.DataArray(inner, dims=dims, coords={"sample": cube.sample, "configuration": cube.configuration})


# %%
digits, cancer = load_digits(), load_breast_cancer()
wanted = [any(w in name for w in ("texture", "smoothness", "symmetry", "fractal")) for name in cancer.feature_names]
DATA = {"digits": (digits.data, digits.target % 2), "breast cancer": (cancer.data[:, wanted], cancer.target)}
LEVELS = np.array([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99])  # the paper's
ALPHAS = {"BBCD": 0.99, "BBCD .95": 0.95, "BBCD .90": 0.90}


def real_study(dataset, size, trial):
    """Return a row for every method: estimate, truth of its choice, speed-up, level that holds the truth, width."""
    x, y = DATA[dataset]
    pool_x, held_x, pool_y, held_y = train_test_split(x, y, train_size=0.3, stratify=y, random_state=0)
    some, _ = train_test_split(np.arange(len(pool_y)), train_size=size, stratify=pool_y, random_state=trial)
    x, y = pool_x[some], pool_y[some]
    k = min(10, np.bincount(y).min())
    repeated, inner = predictions(x, y, cs.kfold(y, k, repeats=10, rng=trial).values)
    cube = repeated.isel(repeat=0, drop=True)
    how = {"times": TIMES, "strata": "label", "rng": trial, "keep_draws": True}
    reports = {
        "CVT": cs.cvt(cube, "auc"),
        "TT": cs.tt(cube, "auc"),
        "NCV": cs.ncv(cube, "auc", inner=inner, average="fold"),
        "BBC": cs.bbc(cube, "auc", **how),
        **{name: cs.bbcd(cube, "auc", threshold=a, min_predictions=0, **how) for name, a in ALPHAS.items()},
        **{f"BBC, {r} repeats": cs.bbc(repeated.isel(repeat=slice(r)), "auc", **how) for r in (2, 4, 10)},
        "winner": cs.winner(cube, "auc", times=TIMES, rng=trial),
        "second partition": cs.cvt(repeated.isel(repeat=1, drop=True), "auc"),
    }
    held = cs.auc(cs.as_cube(learn(x, y, held_x), held_y, kind="score", threshold=0.0))
    for name, out in reports.items():
        right = float(held.sel(configuration=out.selected.item()))
        low = high = width = np.nan
        if "draw_estimate" in out:
            tails = np.stack([(1 - LEVELS) / 2, (1 + LEVELS) / 2])
            low, high = np.quantile(out.draw_estimate.values, tails)  # what confint() does, all levels at once
        if "conf_low" in out:
            width = float(out.conf_high - out.conf_low)
        inside = LEVELS[(low <= right) & (right <= high)]
        first = inside.min() if inside.size else 1.0 if "draw_estimate" in out else np.nan
        if name == "winner":
            first = 0.95 if out.conf_low <= right <= out.conf_high else 1.0
        yield dataset, size, trial, name, float(out.estimate), right, float(out.get("speed_up", 1)), first, width


columns = ["dataset", "size", "trial", "method", "estimate", "truth", "speed_up", "level", "width"]
CELLS = [(name, size) for name in DATA for size in (20, 40, 100)] + [("digits", 500)]
runs = [(*cell, t) for cell in CELLS for t in range(15)] if LARGE else [("digits", 40, 0)]
real = pd.DataFrame([row for run in runs for row in real_study(*run)], columns=columns)
if not LARGE:
    print("now, one study")
    print(real.drop(columns=["dataset", "size", "trial"]).round(3).to_string(index=False))
real = kept("bootstrap_real", real)
five = real[real.method.isin([*METHODS, "winner"])].set_index(columns[:4])[["estimate", "truth"]].to_xarray()
five = five.reindex({"method": [*METHODS, "winner"]})
real_bias = cs.bias_table(five.estimate, five.truth, dim=("dataset", "trial"))
print("\nbias of AUC, mean of both data sets (500 samples: digits only)")
print(cs.format_table(real_bias, rows="size", columns="method", values="estimate", digits=3))
fig = plt.figure(figsize=(10, 2.8), layout="constrained")
small = five.sel(size=[20, 40, 100])
cs.plot_bias(cs.bias_table(small.estimate, small.truth, dim="trial"), figure=fig, spread=False)

# %% [markdown]
# *Figure 2 (in the layout of the paper's Figure 2). Bias of AUC on real data by data set. Bars are 95 % limits. CVT
# claims most, the others less. TT needs an AUC inside single folds of a few samples, which is a noisy thing.*
#
# ## What dropping saves, and what it costs
#
# After each fold BBCD bootstraps the predictions so far and stops training every configuration that loses to the
# current leader in more than 99 % of the draws. With 500 samples the first fold already has 50 predictions, and most
# configurations can go.

# %%
large = cs.simulate_cube(500, 500, beta=(9, 6), rng=4)
dropped = cs.bbcd(large, "accuracy", times=TIMES, rng=4)
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
cs.plot_dropping(dropped, ax=ax)

# %% [markdown]
# *Figure 3. Configurations still being trained, fold by fold (500 simulated samples). The hatched area is work saved.*
#
# The paper found a speed-up of 2 to 5, at most 10 (the number of folds), without loss at N = 500; with fewer samples
# good configurations are lost to bad luck in the first folds. Hence its advice to wait for 50 predictions, which is our
# default. Here is the other side, real data and no waiting, for three thresholds: how much AUC the chosen
# configuration loses on the locked samples.

# %%
truths = real.pivot_table(index=["dataset", "size", "trial"], columns="method", values="truth")
speeds = real.pivot_table(index=["dataset", "size", "trial"], columns="method", values="speed_up")


def relative(name, other):
    """Return the mean relative change of the true AUC in percent, and its standard error, by data set and size."""
    change = 100 * (truths[name] / truths[other] - 1)
    return change.groupby(["dataset", "size"]).agg(["mean", "sem"])


dropping = pd.concat({name: relative(name, "CVT") for name in ALPHAS}, axis=1)
for name in ALPHAS:
    dropping[name, "speed-up"] = speeds[name].groupby(["dataset", "size"]).mean()
print(dropping.sort_index(axis=1).round(2).to_string())

# %% [markdown]
# ## What repeats buy
#
# More random partitions of the same samples take out the luck of the partition. Does the winner get better? Choose once
# by one partition and once by ten. Nested cross-validation needs as many models as ten repeats, and in the end chooses
# by one partition, here the second.

# %%
TEN = "BBC, 10 repeats"
gains = pd.concat(
    {"against one partition": relative(TEN, "BBC"), "against NCV": relative(TEN, "second partition")}, axis=1
)
print("relative gain of the true AUC, %")
print(gains.round(2).to_string())
names = {"BBC": 1, "BBC, 2 repeats": 2, "BBC, 4 repeats": 4, TEN: 10}
repeats = real[real.method.isin(names)].assign(repeats=lambda t: t.method.map(names))
widths = repeats.pivot_table(index="repeats", columns=["dataset", "size"], values="width")
fig, ax = plt.subplots(figsize=(5.4, 3), layout="constrained")
widths.plot(ax=ax, marker="o", xticks=widths.index, ylim=(0, None), ylabel="width of the 95 % interval")
ax.legend([f"{name}, {size}" for name, size in widths.columns], bbox_to_anchor=(1, 1), loc="upper left")
plt.show()

# %% [markdown]
# *Figure 4 (the paper's Figure 7). Mean width of the percentile interval for the winner's AUC by number of partitions.*
#
# Repeats shrink the noise of the partition. They do not create patients: the interval soon stops shrinking.
#
# ## Coverage
#
# A 95 % interval should contain the truth in 95 of 100 studies. The paper's interval takes the 2.5 % and 97.5 %
# quantiles of the out-of-bag verdicts (which of the many definitions of a sample quantile is not said; ours is type 7,
# linear). Each verdict rests on only 37 % of the samples, so their spread is larger than that of the estimate, and the
# interval is wider than necessary. Ours (`winner`) is computed from the same draws but scaled to the whole sample.

# %%
share = {}
for (size, method), part in real.dropna(subset="level").groupby(["size", "method"]):
    share[size, method] = (part.level.to_numpy() <= LEVELS[:, None] + 1e-9).mean(axis=1)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, size in zip(axes, (20, 100, 500), strict=True):
    ax.plot([0.5, 1], [0.5, 1], color="grey", lw=0.8)
    for method, mark in (("BBC", "o--"), ("BBCD", "s--"), (TEN, "^--")):
        ax.plot(LEVELS, share[size, method], mark, ms=4, label=method)
    ax.plot(0.95, share[size, "winner"][-2], "k*", ms=9, label="winner")
    ax.set(title=f"N = {size}", xlabel="promised")
axes[0].set_ylabel("covered")
axes[-1].legend(frameon=False, loc="upper left")
plt.show()
excess = {size: {m: (share[size, m] - LEVELS).mean() for m in ("BBC", "BBCD", TEN)} for size in (20, 40, 100, 500)}
print("covered minus promised, mean over levels")
print(pd.DataFrame(excess).round(3).to_string())
at = {size: {m: share[size, m][-2] for m in ("BBC", "BBCD", TEN, "winner")} for size in (20, 40, 100, 500)}
print("coverage of 95 % limits")
print(pd.DataFrame(at).round(3).to_string())

# %% [markdown]
# *Figure 5 (the paper's Figure 6). How often percentile intervals contained the truth against what they promised; 30
# studies for each line, 15 for N = 500. Above the diagonal: wider than needed. The star is the calibrated interval.*
#
# Thirty studies know a coverage of .95 to .04; [the coverage study](../docs/coverage.md) has thousands. Here the
# intervals are wide, but the bias of BBC moves them, so that they cover about what they promise.
#
# ## One detail that matters: ties
#
# With few samples and many good configurations, several are equally good in a draw. The paper takes the first. That
# sounds harmless, but it picks the *same* configuration in draw after draw, so the verdicts no longer show how
# uncertain the choice is. `winner` breaks ties at random.


# %%
def nearly_perfect(rng):
    return cs.simulate_cube(20, 200, beta=(54, 6), rng=rng)


ties = {
    rule: cs.coverage(
        nearly_perfect,
        lambda cube, rng, rule=rule: cs.bbc(cube, "accuracy", times=TIMES, ties=rule, rng=rng),
        repetitions=30,
        rng=6,
    )
    for rule in ("first", "random")
}
for rule, study in ties.items():
    print(f"ties {rule:6}: coverage {study.coverage:.2f}, RMSE of the estimate {study.rmse:.3f}")

# %% [markdown]
# ## Do we agree with the paper?

# %% tags=["hide-input"]
by_method = main.pivot_table(index=["size", "configurations"], columns="method", values="bias")
cvt_max = by_method["CVT"].max()
tt = by_method["TT"].groupby("size").mean()
part = bias[bias.method == "NCV"]
ncv, ncv_error = part.bias.mean(), np.sqrt((part.error**2).sum()) / len(part)
alike = every.drop(index=9)
order = bool((alike["CVT"] > alike["BBC"]).all() and (alike["CVT"] > 0).all())
real_mean = real_bias.estimate.mean("size").to_series()
loss, speed = dropping["BBCD", "mean"], dropping["BBCD", "speed-up"]
early = loss.drop(index=500, level="size")
costly = bool((loss < -2 * dropping["BBCD", "sem"]).any())
others = [relative(name, "BBCD") for name in ("BBCD .90", "BBCD .95")]
same = all(bool((part["mean"].abs() <= 2 * part["sem"]).all()) for part in others)
lowest = min(part["mean"].min() for part in others)
faster = bool((dropping["BBCD .90", "speed-up"] >= dropping["BBCD", "speed-up"]).all())
later = gains.drop(index=20, level="size")
cover = [excess[size]["BBC"] for size in (20, 100, 500)]
closer = [abs(excess[size][TEN]) < abs(excess[size]["BBC"]) for size in (20, 100)]
narrower = widths.loc[10] < widths.loc[1]


def text(values):
    return " ".join(f"{value:+.1f}" for value in values)


verdict = [
    ("CVT is optimistic, at most", ".17", f"{cvt_max:.2f}", abs(cvt_max - 0.17) < 0.03),
    ("TT: optimistic at N=20, pessimistic at N=500", "+ / -", f"{tt[20]:+.3f} / {tt[500]:+.3f}", tt[20] > 0 > tt[500]),
    ("NCV is almost unbiased", "0", f"{ncv:+.3f} +- {ncv_error:.3f}", abs(ncv) < 0.01),
    ("NCV minus BBC", ".013", f"{gap_mean:.3f} +- {gap_error:.3f}", abs(gap_mean - 0.013) < 2 * gap_error),
    ("other Betas alike: CVT optimistic, above BBC", "yes", f"CVT {alike['CVT'].min():+.3f} at least", order),
    ("real data: CVT optimistic", "> 0", f"{real_mean['CVT']:+.3f}", real_mean["CVT"] > 0),
    ("real data: BBC mainly conservative", "<= 0", f"{real_mean['BBC']:+.3f}", real_mean["BBC"] <= 0),
    ("dropping at N=500: speed-up", "2 to 5, once 10", f"{speed['digits', 500]:.1f}", 2 <= speed["digits", 500] <= 5),
    ("dropping at N=500: loss in %", "0 to 1.4", f"{-loss['digits', 500]:.2f}", -loss["digits", 500] < 1.4),
    ("dropping early costs, N = 20 to 100, in %", "up to 9", f"{-early.min():.1f} at most", costly),
    ("alpha .90, .95: no worse, fewer models", "yes", f"{lowest:+.1f} % at worst", same and faster),
    (
        "ten repeats, better winner, N >= 40, in %",
        "equal or better",
        text(later["against one partition", "mean"]),
        bool((later["against one partition", "mean"] >= -2 * later["against one partition", "sem"]).all()),
    ),
    (
        "... also than NCV's",
        "mostly",
        text(later["against NCV", "mean"]),
        bool((later["against NCV", "mean"] > 0).mean() > 0.5),
    ),
    ("more repeats, narrower interval", "yes", f"{int(narrower.sum())} of {len(narrower)} cells", bool(narrower.all())),
    (
        "percentile intervals conservative, N=20, 100, 500",
        "yes, yes, no",
        " ".join(f"{value:+.2f}" for value in cover),
        min(cover[:2]) > 0 > cover[2],
    ),
    (
        "ten repeats calibrate better, N=20, 100",
        "yes",
        " ".join(f"{excess[size][TEN]:+.2f}" for size in (20, 100)),
        all(closer),
    ),
]
print(pd.DataFrame(verdict, columns=["claim", "paper", "here", "agree"]).to_string(index=False))

# %% [markdown]
# Where the last column says False, and where True says little:
#
# - *NCV minus BBC.* The agreement to the last digit is luck: a first run, with ten data sets to a cell instead of
#   twenty, had .021.
# - *The cost of dropping early.* The largest loss, 1 % with 20 samples, is within its standard error of nothing. The
#   paper saw losses of up to 9 % on one of its data sets, where nearly everything was dropped after a few predictions;
#   our two do not drop so fast.
# - *Conservative intervals, better calibrated by ten repeats.* On these data intervals of AUC cover about what they
#   promise with 20 and 100 samples, with one partition as with ten, so there was nothing to calibrate. Simulated
#   studies of accuracy do find them too wide ([the coverage study](../docs/coverage.md)). With 500 samples they fail as
#   in the paper, but for another reason: there they lay too low, here too high. On the digits BBC is optimistic by
#   .004, nearly as much as CVT, and the interval is narrow.
# - *BBC conservative.* For AUC it is. With refitted models it is on average slightly optimistic for accuracy, because
#   labels leak a little between folds through the models; [the caveats](../docs/caveats.md) have the measured numbers.
# - *The percentile interval* is too wide in most studies and far too narrow near perfect scores with ties to the first.
#
# ## What to remember
#
# - Save the predictions. The correction then costs seconds, whatever training cost.
# - Use `winner` for the number to report, and `bbc` when you want the published method to the letter.
# - Add repeats when you can afford them: they improve the choice a little and never hurt.

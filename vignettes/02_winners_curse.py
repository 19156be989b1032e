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
# # The winner's curse
#
# Try many things, keep the best, and the best looks better than it is. Auctions know this as the winner's curse.
# Tsamardinos, Rakhshani and Lagani (2015, [doi:10.1142/S0218213015400230](https://doi.org/10.1142/S0218213015400230))
# measured it for cross-validation and compared four ways of reporting the winner. This vignette repeats their argument
# with code that runs here, and says at the end where we agree with them.

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

LARGE = "CVSTATS_LARGE" in os.environ  # with CVSTATS_LARGE=1 the long run is made again (some minutes) and kept
FOLDS = 10
RESULTS = next(p / "benchmarks/results" for p in (Path.cwd(), *Path.cwd().parents) if (p / "benchmarks").is_dir())

# %% [markdown]
# ## A calculation on the back of an envelope
#
# Suppose you try *m* models and every one of them is truly right 85 % of the time. You test each on *n* cases and
# report the best score. Nothing is left to learn here, all models are equally good; and yet the reported number is
# not .85. It is the largest of *m* binomial proportions, and its mean can be computed exactly.

# %%
models, sizes = [5, 10, 20, 50, 100, 1000], [20, 40, 80, 100, 500, 1000]
best = cs.expected_maximum(0.85, sizes, models)
table = best["mean"].transpose("n_configurations", "n_samples").to_pandas().round(3)
print(table.rename_axis("models", axis=0).rename_axis("test cases", axis=1))

# %% [markdown]
# The paper's Table 1 has the same layout, from 10 000 simulations. Here are its numbers and the largest difference.

# %%
printed = np.array(
    [
        [0.935, 0.913, 0.895, 0.891, 0.868, 0.863],
        [0.959, 0.930, 0.908, 0.902, 0.874, 0.867],
        [0.977, 0.946, 0.920, 0.913, 0.879, 0.871],
        [0.993, 0.961, 0.933, 0.925, 0.885, 0.875],
        [0.999, 0.971, 0.941, 0.932, 0.889, 0.878],
        [1.000, 0.994, 0.962, 0.952, 0.899, 0.885],
    ]
)
gap = np.abs(table.to_numpy() - printed)
table_one = float(np.abs(best["mean"].transpose("n_configurations", "n_samples").values - printed).max())
print(f"largest difference from print: {table_one:.4f}; {int((gap > 0.0005).sum())} of 36 last digits differ")
ends = best["quantiles"].sel(n_configurations=100, n_samples=100).values
print(f"100 models, 100 cases: between {ends[0]:.2f} and {ends[1]:.2f} in nine of ten studies (print: .91; .95)")

# %% [markdown]
# With 100 models and 100 cases one *expects* to report .93 for something worth .85. The few digits that differ are the
# noise of the paper's simulation; ours is an exact sum.
#
# ## A rule of thumb
#
# Divide the excess by the standard error of a single accuracy, the square root of .85 x .15 / n. What is left hardly
# depends on the number of cases any more:

# %%
error_of_one = np.sqrt(0.85 * 0.15 / best.n_samples)
excess = (best.optimism / error_of_one).transpose("n_configurations", "n_samples").to_pandas()
print(excess[[100, 500, 1000]].round(1).rename_axis("models", axis=0).rename_axis("test cases", axis=1))

# %% [markdown]
# The best of 10 equal models looks about 1.5 standard errors better than it is, the best of 100 about 2.4, the best of
# 1000 about 3. That is the whole curse in one line, and it tells what helps and what does not:
#
# - *More samples* help: the standard error shrinks.
# - *Fewer candidates* help, but slowly: a tenth of the models takes off less than one standard error.
# - *Alike candidates* help. If all models are right and wrong on the same samples, their scores move up and down
#   together, and the best is no luckier than the rest. A hundred values of one penalty may count like a handful.
# - *Unequal candidates* help. If one model is far better than all others, it wins without luck.
# - *More folds or repeats* do not help much. The luck is in the samples, and they stay the same.
#
# Nobody knows how alike and how unequal his candidates are, so no formula corrects the score. The methods below find
# out from the predictions.
#
# ## Four ways to report the winner
#
# All four pick the same configuration. They differ in what they say about it.
#
# - **CVM** (we call it `cvt`): report the score that won. The samples that chose also judge.
# - **CVM-CV** (`cvm_cv`): split the data into folds once more, and report the winner's score on the new split.
# - **TT** (`tt`): ask how much better the best configuration *of each single fold* did in that fold, and subtract it.
# - **NCV** (`ncv`): nested cross-validation. Choose inside the training set of every outer fold, judge on the fold.
#
# Here they are on one simulated study: 40 samples, 100 configurations, whose true accuracies we know.

# %%
METHODS = ["CVM", "CVM-CV", "TT", "NCV"]


def four_reports(cube, inner, metric="accuracy", undefined="nan"):
    """Return what the protocols say about the winner on the first split, and that winner's name."""
    first = cube.isel(repeat=0, drop=True) if "repeat" in cube.dims else cube
    claim = cs.cvt(first, metric, average="fold", undefined=undefined)
    nested = cs.ncv(first, metric, inner=inner, undefined=undefined)
    reports = {"CVM": claim, "TT": cs.tt(first, metric, undefined=undefined), "NCV": nested}
    if "repeat" in cube.dims and (undefined == "nan" or metric == "accuracy"):
        reports["CVM-CV"] = cs.cvm_cv(cube, metric, average="fold")
    return {name: float(report.estimate) for name, report in reports.items()}, claim.selected.item()


def simulated_study(n, rng):
    cube, inner = cs.simulate_cube(n, 100, beta=(9, 6), folds=FOLDS, repeats=2, inner=True, rng=rng)
    reports, picked = four_reports(cube, inner.isel(repeat=0, drop=True).drop_vars("fold"))
    return reports, float(cube.truth.sel(configuration=picked))


def as_table(rows, names):
    """Return a data set over `names` and `method`, with the estimates and the truth."""
    flat = [(*row, name, value, right) for *row, reports, right in rows for name, value in reports.items()]
    frame = pd.DataFrame(flat, columns=[*names, "method", "estimate", "truth"])
    return frame.set_index([*names, "method"]).to_xarray().reindex({"method": METHODS})


reports, true = simulated_study(40, rng=3)
for method in METHODS:
    print(f"{method:7} {reports[method]:.3f}")
print(f"truth   {true:.3f}")

# %% [markdown]
# One study proves nothing: each of these numbers has a standard deviation of several hundredths. So we repeat it.

# %%
rng = np.random.default_rng(1)
runs = as_table([(n, t, *simulated_study(n, rng)) for n in (20, 60, 100) for t in range(24)], ["size", "trial"])
simulated = cs.bias_table(runs.estimate, runs.truth, dim="trial", against="NCV")
print(cs.format_table(simulated, rows="size", columns="method", values="estimate", digits=4))

# %% [markdown]
# *Mean bias, positive when the report is too good. Two stars: the t-test of "no bias" has P < .01. This is the layout
# of the paper's Tables 3, 6, 9 and 12.*

# %%
fig = plt.figure(figsize=(9, 4.4), layout="constrained")
cs.plot_bias(simulated, figure=fig)

# %% [markdown]
# *Figure 1. Bias (above) and its standard deviation (below) of the four protocols in simulated studies of 100
# configurations; bars are 95 % limits of the mean.*
#
# CVM is optimistic everywhere, and most with few samples. TT swings from too optimistic to too pessimistic. CVM-CV lies
# in between: a new split of the *same* samples removes the luck of the split, but the samples stay. NCV is nearly
# unbiased.
#
# ## Real data, with the truth held out
#
# Simulated models do not learn. So we do what the paper did: take a data set, lock 70 % of it away, draw small studies
# from the other 30 %, and look up the truth of each winner in the locked part. The paper used seven data sets and
# Matlab; we use two that come with scikit-learn. Three kinds of learners, each with several tuning values, make the
# 40 configurations of the strategy *without* feature selection; with the best 8 or 3 features as further choices there
# are 120. Tens of thousands of small fits are needed, so the learners are written in closed form, all tuning values at
# once.

# %%
NEIGHBOURS = np.arange(1, 12)
PENALTIES = np.logspace(-2, 3, 20)
SMOOTHING = np.logspace(-2, 1, 9)
WIDTHS = [None, 8, 3]  # all features, or the best few by the difference of class means
PLAIN = len(NEIGHBOURS) + len(PENALTIES) + len(SMOOTHING)  # configurations without feature selection


def neighbours(x, y, new):
    order = np.argsort((x**2).sum(axis=1) - 2 * new @ x.T, axis=1)[:, : NEIGHBOURS[-1]]
    return np.cumsum(y[order], axis=1)[:, NEIGHBOURS - 1] / NEIGHBOURS - 0.5


def ridge(x, y, new):
    left, values, right = np.linalg.svd(x, full_matrices=False)
    shrunk = values / (values**2 + PENALTIES[:, None]) * (left.T @ (y - y.mean()))
    return y.mean() - 0.5 + new @ (shrunk @ right).T


def naive_bayes(x, y, new):
    score = 0
    for sign, part in ((1, x[y == 1]), (-1, x[y == 0])):
        variance = part.var(axis=0) + SMOOTHING[:, None]
        distance = ((new[:, None] - part.mean(axis=0)) ** 2 / variance + np.log(variance)).sum(axis=2)
        score = score + sign * (np.log(len(part)) - distance / 2)
    return score


def learn(x, y, new, widths):
    """Train every configuration on (x, y) and return its scores of `new`, one column each; class 1 is above 0."""
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    x, new = (x - mean) / spread, np.clip((new - mean) / spread, -10, 10)
    order = np.argsort(-np.abs(x[y == 1].mean(axis=0) - x[y == 0].mean(axis=0)))
    columns = []
    for width in widths:
        keep = order[:width]
        columns += [learner(x[:, keep], y, new[:, keep]) for learner in (neighbours, ridge, naive_bayes)]
    return np.concatenate(columns, axis=1)


# %% [markdown]
# Nested cross-validation needs a model for every *pair* of folds left out. That is all it needs: the model trained
# without folds i and j serves as an inner model for outer fold i and for outer fold j.


# %%
def predict_outer(x, y, folds, widths):
    """Return predictions (sample, configuration), each made without the sample's fold."""
    out = np.empty((len(y), PLAIN * len(widths)))
    for i in range(folds.max() + 1):
        out[folds == i] = learn(x[folds != i], y[folds != i], x[folds == i], widths)
    return out


def predict_inner(x, y, folds, widths):
    """Return predictions (sample, configuration, outer fold), each made without the sample's and the outer fold."""
    k = folds.max() + 1
    out = np.full((len(y), PLAIN * len(widths), k), np.nan)
    for i in range(k):
        for j in range(i):
            both = (folds == i) | (folds == j)
            guess = learn(x[~both], y[~both], x[both], widths)
            out[folds == j, :, i] = guess[folds[both] == j]
            out[folds == i, :, j] = guess[folds[both] == i]
    return out


KINDS = ["NFS", "WFS", "NS", "drawn again"]  # without and with feature selection, random folds, with replacement


def real_study(x, y, held_x, held_y, seed, kinds):
    """Return reports and truth of each kind and metric."""
    dims = ("sample", "configuration", "outer_fold")
    how = {"kind": "score", "threshold": 0.0}
    k = min(FOLDS, np.bincount(y).min())  # as in the paper: every fold can hold every class
    for kind in kinds:
        widths, random = WIDTHS if kind == "WFS" else WIDTHS[:1], kind == "NS"
        held = cs.as_cube(learn(x, y, held_x, widths), held_y, **how)
        fold = cs.kfold(y, k, stratified=not random, repeats=2, rng=seed).values
        outer = np.stack([predict_outer(x, y, part, widths) for part in fold.T], axis=2)
        cube = cs.as_cube(outer, y, folds=fold, **how)
        inner = predict_inner(x, y, fold[:, 0], widths)
        inner = xr.DataArray(inner, dims=dims, coords={"sample": cube.sample, "configuration": cube.configuration})
        for metric in ("accuracy", "auc"):
            reports, picked = four_reports(cube, inner, metric, "skip" if random else "nan")
            yield kind, metric, reports, float(cs.score(held, metric)[picked])


# %% [markdown]
# Now the two data sets, the two kinds of folds and the two strategies. Every study is seen by all of them. The paper
# says that it drew its studies *with replacement*. If that means that a sample can be in a study twice, it can be in
# training and test set at once, so we draw without, and look at the difference below. A few studies are made now; the
# tables show the long run.

# %%
digits, cancer = load_digits(), load_breast_cancer()
wanted = [any(w in name for w in ("texture", "smoothness", "symmetry", "fractal")) for name in cancer.feature_names]
DATA = {
    "digits (even or odd)": (digits.data, digits.target % 2),
    "breast cancer (no sizes)": (cancer.data[:, wanted], cancer.target),
}


def real_studies(dataset, size, trial):
    x, y = DATA[dataset]
    pool_x, held_x, pool_y, held_y = train_test_split(x, y, train_size=0.3, stratify=y, random_state=0)
    some, _ = train_test_split(np.arange(len(pool_y)), train_size=size, stratify=pool_y, random_state=trial)
    again = np.random.default_rng(trial).choice(len(pool_y), size)
    for chosen, kinds in ((some, KINDS[:3]), (again, KINDS[3:] if size in (40, 80) else [])):
        for kind, metric, reports, right in real_study(pool_x[chosen], pool_y[chosen], held_x, held_y, trial, kinds):
            yield {
                "kind": kind,
                "metric": metric,
                "dataset": dataset,
                "size": size,
                "trial": trial,
                "truth": right,
            } | reports


CELLS = [(name, size, 15) for name in DATA for size in (20, 40, 80, 100)] + [("digits (even or odd)", 500, 5)]
if not LARGE:
    CELLS = [(name, 20, 1) for name in DATA]
everything = pd.DataFrame([row for *cell, trials in CELLS for t in range(trials) for row in real_studies(*cell, t)])
if LARGE:
    everything.round(4).to_csv(RESULTS / "papers_protocols.csv", index=False)
print("now")
print(everything.drop(columns="trial").round(3).to_string(index=False))
everything = pd.read_csv(RESULTS / "papers_protocols.csv")
keys = ["kind", "metric", "dataset", "size", "trial"]
everything = everything.melt([*keys, "truth"], METHODS, "method", "estimate").set_index([*keys, "method"]).to_xarray()
everything = everything.reindex({"method": METHODS})
REAL_SIZES = [20, 40, 80, 100, 500]


def bias_of(kind, metric="accuracy"):
    part = everything.sel(kind=kind, metric=metric, drop=True)
    part = part.where(part.estimate.notnull()).dropna("method", how="all", subset=["estimate"])
    part = part.dropna("size", how="all", subset=["estimate"])
    return cs.bias_table(part.estimate, part.truth, dim=("dataset", "trial"), against="NCV")


plain, selecting, unstratified = bias_of("NFS"), bias_of("WFS"), bias_of("NS")
print("\nlong run")
print(cs.format_table(plain, rows="size", columns="method", values=["estimate", "std_dev", "truth"], digits=4))

# %% [markdown]
# *Mean bias, standard deviation of the bias, and accuracy of the winner on the locked samples, averaged over two data
# sets (500 samples: digits only), stratified folds, without feature selection: the layout of the paper's Tables 6, 7
# and 8. Stars in the first part come from a t-test of zero bias, in the second from O'Brien's test against NCV's
# variance.*
#
# ## Spread matters as much as bias
#
# An estimator that is right on average but all over the place helps nobody. CVM, with CVM-CV close by, has the smallest
# spread of all: always claiming too much is very consistent. O'Brien's test takes the methods as independent; they were
# judged on the same studies, so the paired test of Pitman and Morgan (printed below) sees more.

# %%
spread = plain[["std_dev", "obrien_p_value", "pitman_p_value"]].sel(size=20)
print(spread.to_dataframe().round(4)[["std_dev", "obrien_p_value", "pitman_p_value"]])

# %%
folds = pd.Index(["stratified", "random"], name="folds")
both = xr.concat([plain, unstratified.reindex({"method": METHODS})], dim=folds, join="exact")
fig = plt.figure(figsize=(9, 4.4), layout="constrained")
cs.plot_bias(both, figure=fig)

# %% [markdown]
# *Figure 2. Real data: bias and spread with stratified and with purely random folds (500 samples: digits only).*
#
# ## Stratified or not
#
# Random folds of a small study differ in their share of each class. A learner trained where a class is rarer than it
# should be is then tested where that class is more frequent than it should be. That makes the estimate pessimistic, so
# it hides some optimism, and it adds noise. The paper advises stratification for its smaller variance.

# %%
strata = pd.DataFrame(
    {
        "bias, stratified": plain.estimate.sel({"method": "NCV"}).values,
        "bias, random": unstratified.estimate.sel({"method": "NCV"}).values,
        "s.d., stratified": plain.std_dev.sel({"method": "NCV"}).values,
        "s.d., random": unstratified.std_dev.sel({"method": "NCV"}).values,
    },
    index=pd.Index(REAL_SIZES, name="size"),
)
print("nested cross-validation")
print(strata.round(4))
steady = strata["s.d., stratified"] < strata["s.d., random"]

# %% [markdown]
# ## With and without feature selection
#
# Feature selection as a further choice triples the number of configurations. More candidates, more luck to pick from.

# %%
print(cs.format_table(selecting, rows="size", columns="method", values=["estimate", "std_dev", "truth"], digits=4))
rise = (selecting.estimate - plain.estimate).to_pandas()
print("\nincrease over the strategy without feature selection")
print(rise.round(4))

# %% [markdown]
# *The layout of the paper's Tables 12, 13 and 14.*
#
# ## With replacement
#
# Draw from the pool with replacement, and a sample that is drawn twice is trained on in one fold and tested in another.

# %%
doubled = bias_of("drawn again").estimate
once = plain.estimate.sel(size=doubled["size"])
print("bias, without and with replacement")
print(pd.concat({"without": once.to_pandas(), "with": doubled.to_pandas()}, axis=1).round(3).to_string())

# %% [markdown]
# Everything looks better by two to four hundredths, and the nested estimate is no longer on the safe side: no protocol
# can see that a sample knows its copy. With large pools, as most of the paper's are, copies are rare.
#
# ## The same by AUC
#
# AUC is the paper's main metric. It is computed within folds and averaged, so every fold must hold both classes. Random
# folds of small studies often do not; `undefined="skip"` averages over those that do, which is how a column such as
# NS-TT comes to be.

# %%
ranked, ranked_more, ranked_random = bias_of("NFS", "auc"), bias_of("WFS", "auc"), bias_of("NS", "auc")
print("without feature selection (Tables 3 to 5)")
print(cs.format_table(ranked, rows="size", columns="method", values=["estimate", "std_dev", "truth"], digits=4))
print("\nwith feature selection (Tables 9 to 11)")
print(cs.format_table(ranked_more, rows="size", columns="method", values=["estimate", "std_dev", "truth"], digits=4))
print("\nrandom folds, without feature selection: the columns NS-")
print(cs.format_table(ranked_random, rows="size", columns="method", values=["estimate", "std_dev"], digits=4))

# %% [markdown]
# With a pair of samples in a fold its AUC is 0, .5 or 1. Random folds of 20 samples leave few pairs to average over, so
# that among many configurations one ranks nearly all right: the claim is then too good by twice as much.
#
# ## Why leave-one-out breaks TT
#
# With one sample per fold, the best configuration *of a fold* is simply one that gets this sample right, and among many
# configurations somebody always does. The bias that TT subtracts is then the whole loss of the winner, so TT reports
# exactly twice the loss. No data are needed to see it, but here they are.

# %%
cube = cs.simulate_cube(40, 200, beta=(24, 6), folds=10, rng=2)
single = cube.assign_coords(fold=("sample", np.arange(40)))  # every sample a fold of its own
loss = cs.cvt(single, "error_rate", average="fold").estimate.item()
twice = cs.tt(single, "error_rate").estimate.item()
print(f"leave-one-out: CVM loss {loss:.3f}, TT loss {twice:.3f}, ratio {twice / loss:.2f}")

# %% [markdown]
# ## Do we agree with the paper?

# %% tags=["hide-input"]
small, large, largest = (plain.estimate.sel(size=size).to_pandas() for size in (20, 80, 500))
fixed = simulated.estimate.sel(size=20).to_pandas()
spread = plain.std_dev.sel(size=20).to_pandas()
auc, auc_spread = ranked.estimate.sel(size=20).to_pandas(), ranked.std_dev.sel(size=20).to_pandas()
auc_more = float(ranked_more.estimate.sel({"size": 20, "method": "CVM"})) - auc["CVM"]
more_spread = selecting.std_dev.sel(size=20).to_pandas()
auc_more_spread = ranked_more.std_dev.sel(size=20).to_pandas()
always = bool((simulated.estimate.sel({"method": "CVM"}) > 0).all() & (small["CVM"] > 0) & (large["CVM"] > 0))


def numbers(values):
    return " ".join(f"{value:.2f}" for value in values)


verdict = [
    ("Table 1, 36 means", "printed to 3 digits", f"within {table_one:.4f}", table_one < 0.001),
    ("CVM is optimistic, N = 20 to 80", ".10 to .06", f"{small['CVM']:.2f} to {large['CVM']:.2f}", always),
    ("bias: CVM > CVM-CV > TT > NCV, N=20", ".10 .06 .05 -.01", numbers(small), small.is_monotonic_decreasing),
    ("the same order, N=80", ".06 .04 .01 .02", numbers(large), large.is_monotonic_decreasing),
    ("the same order, N=500", ".01 .00 -.01 .00", numbers(largest), largest.is_monotonic_decreasing),
    ("the same order, simulated, N=20", "", numbers(fixed), fixed.is_monotonic_decreasing),
    ("CVM has the smallest spread, N=20", ".08 .11 .12 .14", numbers(spread), spread.idxmin() == "CVM"),
    ("s.d. of NCV, stratified < random, N=40", ".09 .11", numbers(strata.loc[40].iloc[2:]), steady[40]),
    ("feature selection adds to CVM's bias, N=20", "+.043", f"{rise.loc[20, 'CVM']:+.3f}", rise.loc[20, "CVM"] > 0),
    ("and to TT's", "+.028", f"{rise.loc[20, 'TT']:+.3f}", rise.loc[20, "TT"] > 0),
    ("AUC: CVM > CVM-CV > TT > NCV, N=20 (Table 3)", ".17 .09 .08 -.05", numbers(auc), auc.is_monotonic_decreasing),
    (
        "AUC: CVM has the smallest spread (Table 4)",
        ".13 .20 .21 .21",
        numbers(auc_spread),
        auc_spread.idxmin() == "CVM",
    ),
    ("AUC: feature selection adds to CVM's bias (Table 9)", "+.089", f"{auc_more:+.3f}", auc_more > 0),
    (
        "CVM varies least with feature selection (Tables 13, 10)",
        ".06 .14 .11 .13 .07 .22 .13 .21",
        numbers([*more_spread, *auc_more_spread]),
        more_spread.idxmin() == "CVM" and auc_more_spread.idxmin() == "CVM",
    ),
    ("leave-one-out: TT doubles the loss", "2", f"{twice / loss:.2f}", abs(twice / loss - 2) < 1e-9),
]
print(pd.DataFrame(verdict, columns=["claim", "paper (Tables 3 to 12)", "here", "agree"]).to_string(index=False))

# %% [markdown]
# Where the last column says False:
#
# - *The order at N = 80 and 500.* The paper states the order in its text, but its own Table 6 breaks it from N = 80 on:
#   TT falls below NCV. So it does here. TT over-corrects as soon as the folds are large enough for CVM to be nearly
#   right.
# - *The order in the simulation.* Fixed models break it: TT is then more optimistic than CVM-CV at N = 20. The paper's
#   Table 9 (AUC, with feature selection, N = 20) breaks it in the same way, and so does ours.
# - *Stratification at N = 40.* A standard deviation from 30 studies is known to about 13 %, so a single cell can fall
#   either way. At N = 20 stratified folds are steadier here; in the paper the two are equal there (.139 and .137).
#
# True says little, too: a cell has 30 studies on two data sets (five of the digits with 500 samples), in the paper 210
# on seven. We tuned the study, though: with five folds and 20 configurations, an earlier form of it, CVM did not have
# the smallest spread at N = 20; we then took the paper's ten folds and more configurations. N = 60 is left out for
# time, N = 1500 because the pools are too small.
#
# ## What to remember
#
# - The winner's own score is optimistic, the more so the fewer samples and the more candidates.
# - A second split of the same samples repairs part of it. TT repairs too little or too much, depending on the size of
#   the folds, and must not be used with leave-one-out.
# - Nested cross-validation is nearly unbiased and needs many more models. [The next
#   vignette](03_bootstrapping_predictions.py) gets there without training any.

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
# # Over-fitting the selection itself
#
# Everybody knows that a model can over-fit its training data. Cawley and Talbot (2010,
# [JMLR 11, 2079-2107](https://www.jmlr.org/papers/v11/cawley10a.html)) showed that the *choice* of a model can over-fit
# too. Cross-validation gives a score to every setting of the tuning values. The score comes from a finite sample, so it
# is noisy, and whoever minimises it hard enough minimises the noise.
#
# This vignette repeats their experiments on simulated data, where the truth is known, and then re-analyses the tables
# that they printed.

# %%
import io
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

import cvstats as cs

LARGE = "CVSTATS_LARGE" in os.environ  # with CVSTATS_LARGE=1 the long runs are made again (some minutes) and kept
SEARCHES = 300 if LARGE else 30  # data sets for the first figure; the paper has 1000
GROUPS = 100 if LARGE else 30  # replications of the protocols
PER_GROUP = 50 if LARGE else 6  # data sets in each of them; the paper has 100
CROSS_VALIDATED = 25  # data sets for the external protocol
VALIDATIONS = 100  # validation sets, as in the paper
RESULTS = next(p / "benchmarks/results" for p in (Path.cwd(), *Path.cwd().parents) if (p / "benchmarks").is_dir())


def kept(name, made):
    """Return the table of the long run; make it anew where the run is long."""
    if LARGE:
        made.round(6).to_csv(RESULTS / f"papers_{name}.csv")
    return pd.read_csv(RESULTS / f"papers_{name}.csv", index_col=0)


# %% [markdown]
# ## The learner and the data
#
# The data are Ripley's mixture: two classes in the plane, each made of two round Gaussian clouds. Nobody can do better
# than 12.4 % errors. The learner is kernel ridge regression, a smooth function fitted to labels -1 and +1. It has a
# penalty `ridge` and a kernel of width `eta`; with a width per input (the "ARD" kernel) it has three tuning values.
#
# Its cross-validated residuals come in closed form from the inverse of one matrix, which makes the search below cheap.


# %%
def draw(n, rng):
    """Return n points of Ripley's mixture and their classes, -1 or 1."""
    centres = np.array([[0.4, 0.7], [-0.3, 0.7], [-0.7, 0.3], [0.3, 0.3]])
    which = rng.permutation(np.arange(n) % 4)
    return centres[which] + 0.2 * rng.standard_normal((n, 2)), np.where(which < 2, 1.0, -1.0)


def fit(x, y, theta):
    """Train with log penalty theta[0] and log widths theta[1:]; return the inverse matrix and the coefficients."""
    n = len(y)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = np.exp(-((x[:, None] - x) ** 2 @ np.exp(theta[1:]))) + np.exp(theta[0]) * np.eye(n)
    system[n, n] = 0
    inverse = np.linalg.inv(system)
    return inverse, inverse[:, :n] @ y


def criterion(theta, x, y, folds):
    """Return the cross-validated mean squared error: what the search minimises."""
    if np.abs(theta).max() > 12:
        return 9.0
    inverse, coefficients = fit(x, y, theta)
    parts = [np.linalg.solve(inverse[np.ix_(fold, fold)], coefficients[fold]) for fold in folds]
    return (np.concatenate(parts) ** 2).mean()


def truth(theta, x, y, new_x, new_y):
    """Return the mean squared error on new data: what the search should minimise."""
    _, coefficients = fit(x, y, theta)
    kernel = np.exp(-((new_x[:, None] - x) ** 2 @ np.exp(theta[1:])))
    return ((kernel @ coefficients[:-1] + coefficients[-1] - new_y) ** 2).mean()


# %% [markdown]
# ## The longer the search, the worse the model
#
# We draw 64 points, start from a smooth model, and let a Nelder-Mead search lower the four-fold cross-validated error
# step by step. At every step we look at the error on 1000 new points, which the search never sees.

# %%
STEPS = 40
START = np.array([2.0, -1.0, -1.0])
rng = np.random.default_rng(1)
new_x, new_y = draw(1000, rng)


def search(rng):
    """Return the criterion and the truth after every step of one search."""
    x, y = draw(64, rng)
    folds = np.array_split(rng.permutation(64), 4)
    path = [START]
    options = {"maxiter": STEPS, "initial_simplex": START + np.vstack([np.zeros(3), np.eye(3) / 2])}
    minimize(
        criterion, START, (x, y, folds), "Nelder-Mead", callback=lambda at: path.append(at.copy()), options=options
    )
    values = {}
    for theta in path:
        if (key := tuple(theta)) not in values:
            values[key] = criterion(theta, x, y, folds), truth(theta, x, y, new_x, new_y)
    steps = [values[tuple(theta)] for theta in path]
    return steps + [steps[-1]] * (STEPS + 1 - len(steps))


searches = np.array([search(rng) for _ in range(SEARCHES)])  # search x step x (criterion, truth)
worst = int((searches[:, -1, 1] - searches[:, :, 1].min(axis=1)).argmax())
# The lowest point of a noisy curve is itself a winner. So each half of the data sets says where the other half turns.
halves = np.array_split(searches[:, :, 1], 2)
turns = [half.mean(axis=0).argmin() for half in halves[::-1]]
rise = np.concatenate([half[:, -1] - half[:, at] for half, at in zip(halves, turns, strict=True)])
steps = pd.DataFrame(searches.mean(axis=0), columns=["criterion", "true"])
steps["rise"], steps["standard error"], steps["searches"] = rise.mean(), rise.std(ddof=1) / np.sqrt(SEARCHES), SEARCHES
print(f"now, {SEARCHES} data sets: rise to the end {steps.rise[0]:.3f} +- {steps['standard error'][0]:.3f}")
steps = kept("searches", steps)
turn, count = int(steps.true.idxmin()), steps.searches[0]
rise, rise_t = steps.rise[0], steps.rise[0] / steps["standard error"][0]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
both = ((steps[["criterion", "true"]].to_numpy(), f"mean of {count} data sets"), (searches[worst], "one data set"))
for ax, (lines, title) in zip(axes, both, strict=True):
    ax.plot(lines[:, 0], label="cross-validated (what is minimised)")
    ax.plot(lines[:, 1], "--", label="true (what matters)")
    ax.set(xlabel="step of the search", title=title)
axes[0].set_ylabel("mean squared error")
axes[0].legend()
print(f"{count} data sets: the mean true error is lowest after {turn} steps: {steps.true[turn]:.3f}; ", end="")
print(f"at the end {steps.true.iloc[-1]:.3f}; rise {rise:.3f}, {rise_t:.1f} standard errors from zero")

# %% [markdown]
# *Figure 1 (the paper's Figure 2). The criterion can only fall. The true error falls, turns, and climbs. Right: the
# data set with the largest damage.*
#
# This is the picture that every course shows for training, one level up. At first the search learns something about the
# problem, later only about these 64 points.
#
# ## Why: the criterion has a variance
#
# Take the simplest criterion there is, the error on a separate validation set. It is unbiased for every setting. To see
# what its variance does, one training set of 256 points is kept fixed, a grid of settings is trained on it once, and
# only the validation set is drawn again and again. `ripley_mixture` makes such cubes. As in the paper we count smoothed
# errors, which makes surfaces less jagged.

# %%
RIDGES, ETAS = np.logspace(-4, 2, 13), np.logspace(-1, 3, 13)
pool = VALIDATIONS * (64 + 256)
_, test = cs.ripley_mixture(256, ridge=RIDGES, eta=ETAS, test=True, n_test=pool + 10000, rng=1)
smooth_truth = cs.score(test.isel(sample=slice(pool, None)), "smoothed_error_rate")
bayes_like = float(smooth_truth.min())


def validation_scores(size, start, metric="smoothed_error_rate"):
    """Return the score of every setting on every one of the validation sets."""
    part = test.isel(sample=slice(start, start + VALIDATIONS * size)).drop_vars("sample")
    sets = part.coarsen(sample=size).construct(sample=("realisation", "sample"))
    return cs.score(sets.assign_coords(sample=np.arange(size)), metric)


surfaces = {64: validation_scores(64, 0), 256: validation_scores(256, VALIDATIONS * 64)}
rows = {}
for size, surface in surfaces.items():
    picked = surface.argmin("configuration")
    claimed, right = surface.min("configuration"), smooth_truth.isel(configuration=picked)
    rows[size] = {
        "bias of the criterion": float((surface.mean("realisation") - smooth_truth).mean()),
        "its s.d.": float(surface.std("realisation").mean()),
        "claimed at the minimum": float(claimed.mean()),
        "true at the minimum": float(right.mean()),
        "s.d. of true": float(right.std()),
        "worst true": float(right.max()),
    }
split_sample = pd.DataFrame(rows).T.rename_axis("validation samples")
print(split_sample.round(4).T.to_string())
print(f"best setting: {bayes_like:.4f}")

# %% [markdown]
# Averaged over the grid the criterion has practically no bias. At its *minimum* it claims less than the best possible
# setting has: that is the winner's curse again. With four times as many validation samples the standard deviation
# halves and the chosen models become both better and more alike.

# %%
fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
grid = smooth_truth.values.reshape(len(RIDGES), len(ETAS))
jitter = np.random.default_rng(0)
top = max(float(smooth_truth.isel(configuration=s.argmin("configuration")).max()) for s in surfaces.values())
for column, (size, surface) in enumerate(surfaces.items()):
    picked = surface.argmin("configuration").values
    right, claimed = smooth_truth.values[picked], surface.min("configuration").values
    ax = axes[0, column]
    ax.scatter(claimed, right, s=14, alpha=0.6)
    ax.axline((0.12, 0.12), slope=1, color="0.6", lw=0.8)
    ax.set(
        xlabel="claimed (validation set)",
        title=f"{size} validation samples",
        xlim=(0.02, 0.21),
        ylim=(0.118, top + 0.005),
    )
    ax = axes[1, column]
    ax.contourf(
        np.log2(ETAS), np.log2(RIDGES), grid, levels=np.linspace(grid.min(), grid.min() + 0.1, 12), extend="max"
    )
    spots = jitter.normal(0, 0.15, (2, len(picked)))
    ax.plot(np.log2(test.eta.values[picked]) + spots[0], np.log2(test.ridge.values[picked]) + spots[1], "r+", ms=5)
    best = int(smooth_truth.values.argmin())
    ax.plot(np.log2(test.eta.values[best]), np.log2(test.ridge.values[best]), "w+", ms=14, mew=3)
    ax.set(xlabel="log2 eta", xlim=np.log2(ETAS[[0, -1]]), ylim=np.log2(RIDGES[[0, -1]]))
axes[0, 0].set_ylabel("true smoothed error rate")
axes[1, 0].set_ylabel("log2 ridge")
plt.show()

# %% [markdown]
# *Figure 2 (the paper's Figures 4, 7 and 8). Above: what each of 100 validation sets claims for its own choice, and the
# truth; on the grey line they would agree. Below: where the choices lie (red, moved a little so that they do not hide
# each other) on the map of the true error (dark is good); the white cross is the best setting.*
#
# What does a single validation set see, and what comes of it? Six of them, with a training set whose points we know.

# %%
train_x, train_y = draw(256, rng)
models = {}  # coefficients by setting
for eta in ETAS:
    kernel = np.exp(-eta * cdist(train_x, train_x, "sqeuclidean"))
    for ridge in RIDGES:
        system = np.block([[kernel + ridge * np.eye(256), np.ones((256, 1))], [np.ones((1, 256)), np.zeros((1, 1))]])
        models[ridge, eta] = np.linalg.solve(system, np.append(train_y, 0))


def predict(points, ridge, eta):
    return np.exp(-eta * cdist(points, train_x, "sqeuclidean")) @ models[ridge, eta][:-1] + models[ridge, eta][-1]


def smoothed(points, label):
    """Return the smoothed error rate of every setting."""
    scores = np.column_stack([predict(points, *setting) for setting in models])
    cube = cs.as_cube(scores, label, kind="score", threshold=0.0, positive=1.0)
    return cs.score(cube, "smoothed_error_rate").values


sets = [draw(64, rng) for _ in range(40)]
seen = np.array([smoothed(*part) for part in sets])
settings = list(models)
widths = np.array([settings[at][1] for at in seen.argmin(axis=1)])
shown = np.argsort(widths, kind="stable")[np.linspace(0, 39, 6).astype(int)]  # from smooth to wiggly
plane = np.stack(np.meshgrid(np.linspace(-1.3, 1.0, 60), np.linspace(-0.4, 1.4, 60)), axis=-1)
fig, axes = plt.subplots(2, 6, figsize=(11, 4.2), layout="constrained", sharex="row", sharey="row")
for column, at in enumerate(shown):
    ridge, eta = settings[seen[at].argmin()]
    surface = seen[at].reshape(len(ETAS), len(RIDGES)).T
    top, below = axes[:, column]
    top.contourf(np.log2(ETAS), np.log2(RIDGES), surface, levels=12)
    top.plot(np.log2(eta), np.log2(ridge), "r+", ms=10, mew=2)
    top.set(xlabel="log2 eta", title=f"validation set {at}")
    below.scatter(*train_x.T, s=3, c=train_y, cmap="coolwarm")
    below.contour(
        *np.moveaxis(plane, -1, 0), predict(plane.reshape(-1, 2), ridge, eta).reshape(60, 60), [0], colors="k"
    )
axes[0, 0].set_ylabel("log2 ridge")
plt.show()

# %% [markdown]
# *Figure 3 (the paper's Figures 5 and 6). Above: the smoothed error of 64 validation samples over the settings, with
# its minimum. Below: the boundary of the model that it chooses, from under-fitted to over-fitted, on one training set.*
#
# ## Unbiased is not the same as useful
#
# We want few errors, so the number of errors is the unbiased criterion. The squared error measures something else and
# is a biased estimate of the error rate. But it varies less. Which of them chooses better?

# %%
test_error = cs.score(test.isel(sample=slice(pool, None)), "error_rate")
squares = test.assign_coords(kind="value").drop_vars(["threshold", "positive"])
by = {
    "errors": validation_scores(64, 0, "error_rate"),
    "smoothed errors": surfaces[64],
    "squared error": cs.score(
        squares.isel(sample=slice(0, VALIDATIONS * 64))
        .drop_vars("sample")
        .coarsen(sample=64)
        .construct(sample=("realisation", "sample"))
        .assign_coords(sample=np.arange(64)),
        "mse",
    ),
}
chosen = {name: test_error.isel(configuration=surface.argmin("configuration")) for name, surface in by.items()}
criteria = pd.DataFrame(
    {
        name: {
            "true error of the choice": float(right.mean()),
            "s.d.": float(right.std()),
            "worst of 100": float(right.max()),
        }
        for name, right in chosen.items()
    }
).T
print(criteria.round(4).to_string())
print(f"best setting {float(test_error.min()):.4f}")

# %% [markdown]
# The paper argues this with a drawing (its Figure 3); the table is the experiment. A criterion needs its minimum in the
# right place, not the right height.
#
# ## Internal, median, external
#
# Now to reporting. A learner with tuning values is evaluated on many data sets (realisations). Three protocols:
#
# - **internal**: tune afresh in every realisation. Slow, and the only one that describes what a user will experience.
# - **median**: tune in the first five, take the median of each tuning value, use it everywhere.
# - **external**: tune once on all samples, then cross-validate with these values.
#
# First the median protocol with fresh data everywhere, so that no test sample is ever reused. The paper did this to ask
# whether the bias is only leakage.


# %%
def grouped(cube, size):
    """Split the realisations into groups, each of which is one run of the protocols."""
    parts = cube.drop_vars("realisation").coarsen(realisation=size)
    return parts.construct(realisation=("group", "realisation")).assign_coords(realisation=np.arange(size))


press, fresh = cs.ripley_mixture(64, kind="value", test=True, n_test=300, realisations=GROUPS * PER_GROUP, rng=2)
# chosen by squared errors of the numbers, judged by errors of their signs
judging, choosing = grouped(fresh, PER_GROUP), grouped(press, PER_GROUP)
synthetic = cs.evaluation_protocols(judging, "error_rate", selection=choosing, criterion="mse")
by_group = synthetic.estimate.sel(protocol=["internal", "median"])
median_test = cs.wilcoxon_test(by_group.sel(protocol="internal"), "group", other=by_group.sel(protocol="median"))
print(by_group.mean("group").to_pandas().round(4).to_string())
print(f"now, {GROUPS} groups of {PER_GROUP} data sets: P = {float(median_test.p_value):.2g} (Wilcoxon)")
long = kept("median_protocol", by_group.transpose("group", "protocol").to_pandas())
columns = (xr.DataArray(long[name], dims="group") for name in ("internal", "median"))
median_p = float(cs.wilcoxon_test(next(columns), "group", other=next(columns)).p_value)
print(
    f"{len(long)} groups of 50 data sets: {long.internal.mean():.4f}, {long['median'].mean():.4f}; P = {median_p:.2g}"
)

# %% [markdown]
# No leak, and still a bias. The median of five choices is a better choice than any one of them: it has a smaller
# variance. Nobody who tunes on one data set gets this for free.
#
# ## The worse the criterion, the larger the flattery
#
# Here the criterion is a repeated split: train on nine tenths, validate on one tenth, average over *m* such splits. Few
# splits, large variance. The cube has two repeats of ten folds; the first *m* folds are *m* splits.

# %%
many, fresh = cs.ripley_mixture(
    60, folds=10, repeats=2, kind="value", test=True, n_test=300, realisations=(100 if LARGE else 12) * 6, rng=3
)
judged = grouped(fresh, 6)
SPLITS = [1, 2, 5, 10, 20]
curves = {}
for m in SPLITS:
    if m < 10:
        chooser = many.isel(repeat=0, drop=True)
        chooser = chooser.isel(sample=np.flatnonzero(chooser.fold.values < m))
    else:
        chooser = many.isel(repeat=slice(0, m // 10))
    with warnings.catch_warnings():
        # In a small group the protocols may agree everywhere; the test within that group, which we do not use, is NaN.
        warnings.filterwarnings("ignore", "evaluation_protocols: no difference to test", cs.CvstatsWarning)
        found = cs.evaluation_protocols(judged, "error_rate", selection=grouped(chooser, 6), criterion="mse")
    curves[m] = found[["estimate", "bias"]].sel(protocol=["internal", "median"])
by_splits = xr.concat(list(curves.values()), pd.Index(SPLITS, name="splits"))
parts = {}
for protocol in ("internal", "median"):
    part = by_splits.estimate.sel(protocol=protocol)
    parts[protocol], parts[f"{protocol} s.e."] = part.mean("group"), part.std("group") / np.sqrt(part.sizes["group"])
splits = pd.DataFrame({name: part.values for name, part in parts.items()}, index=pd.Index(SPLITS, name="splits"))
print(f"now, {by_splits.sizes['group']} groups\n{splits.round(4).to_string()}")
splits = kept("splits", splits)
fig, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
for protocol, mark in (("internal", "o-"), ("median", "s--")):
    ax.errorbar(SPLITS, splits[protocol], splits[f"{protocol} s.e."], fmt=mark, capsize=3, label=protocol)
ax.set(xscale="log", xlabel="splits averaged by the criterion", ylabel="error rate reported")
ax.set_xticks(SPLITS, [str(m) for m in SPLITS])
ax.legend()
flattery = splits.internal - splits["median"]
print(flattery.round(4).rename("internal minus median, long run").to_string())

# %% [markdown]
# *Figure 4 (in the spirit of the paper's Figure 14). Error reported by the two protocols; bars are standard errors over
# groups.*
#
# Under the internal protocol a noisy criterion is punished, as it should be. The median protocol hides most of it, so
# it flatters most what is least reliable.
#
# ## External: tuned on the very samples that judge
#
# The paper's second culprit is subtler than it sounds: cross-validation is done properly, except that the tuning values
# came from a preliminary look at all the data.

# %%
cube, inner = cs.ripley_mixture(60, folds=10, inner=True, n_test=10, realisations=CROSS_VALIDATED, rng=4)
outside = cs.evaluation_protocols(cube, "error_rate", inner=inner)
shown = ["estimate", "bias", "bias_std_error", "p_value"]
print(outside[shown].to_dataframe()[shown].round(4).to_string())

# %% [markdown]
# ## Evidence over-fits too
#
# A Gaussian process is not tuned by cross-validation but by its evidence, the probability of the labels given the
# tuning values. That is a criterion from a finite sample as well. The paper's classifiers need expectation propagation;
# with labels -1 and +1 taken as numbers, process and kernel ridge regression make the *same* predictions, and evidence
# and PRESS are two criteria for the same models, both in closed form.


# %%
def criteria(x, y, theta):
    """Return PRESS and minus the log evidence (its scale at the best value) of log penalty and log widths `theta`."""
    n, scaled = len(y), x * np.exp(np.asarray(theta[1:]) / 2)
    inverse = np.linalg.inv(np.exp(-cdist(scaled, scaled, "sqeuclidean")) + np.exp(theta[0]) * np.eye(n))
    coefficients = inverse @ y
    press = ((coefficients / np.diag(inverse)) ** 2).sum()
    evidence = n / 2 * (1 + np.log(2 * np.pi * (y @ coefficients) / n)) - np.linalg.slogdet(inverse)[1] / 2
    return press, evidence


def scores(x, y, new, theta):
    width = np.exp(np.asarray(theta[1:]) / 2)
    kernel = np.exp(-cdist(x * width, x * width, "sqeuclidean")) + np.exp(theta[0]) * np.eye(len(y))
    return np.exp(-cdist(new * width, x * width, "sqeuclidean")) @ np.linalg.solve(kernel, y)


# %% [markdown]
# Such numbers are no predictions, so `ncv` takes them as `criterion=`: for each outer fold the criterion of its
# training set. One study of 128 points, ten folds:

# %%
GRID = [(np.log(ridge), np.log(eta), np.log(eta)) for ridge in RIDGES[::2] for eta in ETAS[::2]]
x, y = draw(128, rng)
fold = cs.kfold(y, 10, rng=1).values.ravel()
outer, chosen_by = np.empty((128, len(GRID))), np.empty((2, len(GRID), 10))
for j in range(10):
    rest = fold != j
    for at, theta in enumerate(GRID):
        outer[~rest, at] = scores(x[rest], y[rest], x[~rest], theta)
        chosen_by[:, at, j] = criteria(x[rest], y[rest], theta)
cube = cs.as_cube(outer, y, folds=fold, kind="score", threshold=0.0, positive=1.0)
for name, values in zip(("PRESS", "evidence"), chosen_by, strict=True):
    numbers = xr.DataArray(
        values,
        dims=("configuration", "outer_fold"),
        coords={"configuration": cube.configuration, "outer_fold": range(10)},
    )
    nested = cs.ncv(cube, "error_rate", criterion=numbers)
    settings_used = len(set(nested.selected_fold.values))
    print(f"chosen by {name:8}: error {float(nested.estimate):.3f}, {settings_used} settings in ten folds")

# %% [markdown]
# Now many data sets. *Ripley*: 64 points of the mixture, two widths at most. *Twonorm*, one of the paper's benchmarks:
# two Gaussian clouds in 20 dimensions; 100 points instead of the paper's 400, because a search over 21 tuning values
# takes its time. Each is tuned by both criteria, with one width for all inputs (RBF) and with a width for every input
# (ARD).


# %%
def twonorm(n, rng):
    y = np.where(rng.permutation(n) % 2, 1.0, -1.0)
    return rng.standard_normal((n, 20)) + 2 / np.sqrt(20) * y[:, None], y


PROBLEMS = {"Ripley": (draw, 64, 0.0, 100), "twonorm": (twonorm, 100, -3.0, 50)}  # samples, start, data sets


def tuned(problem, rng):
    """Return the value of each criterion that a search ends with, and the test error of the model, by kernel."""
    sample, n, start, _ = PROBLEMS[problem]
    (x, y), (new_x, new_y) = sample(n, rng), sample(2000, rng)
    for which, criterion in enumerate(("PRESS", "evidence")):
        theta = np.array([0.0, start])
        for kernel, inputs in (("RBF", 1), ("ARD", x.shape[1])):
            start_at = np.append(theta[0], np.full(inputs, theta[1]))  # ARD begins where RBF has ended

            def value(at, which=which):
                full = np.append(at[0], np.broadcast_to(at[1:], x.shape[1]))
                return criteria(x, y, full)[which] if np.abs(full).max() < 12 else np.inf

            options = {"maxfev": 60 + 25 * inputs, "adaptive": True}
            found = minimize(value, start_at, method="Nelder-Mead", options=options)
            theta = found.x
            full = np.append(theta[0], np.broadcast_to(theta[1:], x.shape[1]))
            wrong = (scores(x, y, new_x, full) > 0) != (new_y > 0)
            yield problem, criterion, kernel, found.fun, 100 * wrong.mean()


names = ["problem", "criterion", "kernel", "value", "error"]
rows = [
    (t, *row)
    for problem, (*_, many) in PROBLEMS.items()
    for t in range(many if LARGE else 1)
    for row in tuned(problem, rng)
]
tunings = kept("evidence", pd.DataFrame(rows, columns=["trial", *names]).set_index("trial")).reset_index()
wide = tunings.pivot_table(index=["problem", "criterion", "trial"], columns="kernel", values=["value", "error"])
fitted = pd.DataFrame(
    {
        f"{what} {kernel}": wide[what, kernel].groupby(["problem", "criterion"], sort=False).mean()
        for what in ("error", "value")
        for kernel in ("RBF", "ARD")
    }
)
print(fitted.round(2).to_string())
change = (
    (wide["error", "ARD"] - wide["error", "RBF"]).groupby(["problem", "criterion"], sort=False).agg(["mean", "sem"])
)
print("errors of ARD minus RBF, in percent")
print(change.round(2).to_string())

# %%
pairs = tunings[(tunings.problem == "Ripley") & (tunings.kernel == "RBF")]
gp, ridge = (pairs[pairs.criterion == name].error.to_numpy() for name in ("evidence", "PRESS"))
fig, ax = plt.subplots(figsize=(3.8, 3.6), layout="constrained")
ax.scatter(ridge, gp, s=14, alpha=0.6)
ax.axline((15, 15), slope=1, color="0.6", lw=0.8)
ax.set(xlabel="test error, chosen by PRESS, %", ylabel="test error, chosen by evidence, %")
plt.show()
print(f"evidence better on {(gp < ridge).sum()}, PRESS on {(gp > ridge).sum()} of {len(gp)} data sets; ", end="")
print(f"means {gp.mean():.2f}, {ridge.mean():.2f}")

# %% [markdown]
# *Figure 5 (as the paper's Figure 9, for other classifiers). Two ways to tune the same classifier on 100 data sets of
# the mixture. Whoever looks at one data set may find either of them superior.*
#
# ## What the paper printed
#
# The authors' tables are data as well. They give mean error rates (percent) on thirteen benchmark data sets for three
# classifiers: a Gaussian process (GPC), kernel logistic regression (KLR) and kernel ridge regression (KRR).

# %%
PRINTED = """
dataset         GPC int   KLR int   KRR int   GPC med   KLR med   KRR med   10f ext   10f int   KRR ARD  ext s.e.
banana           10.413    10.567    10.610    10.371    10.407    10.384    10.355    10.495    10.638     0.035
breast cancer    26.506    26.636    26.727    26.117    26.130    26.377    26.280    27.470    28.766     0.135
diabetis         23.280    23.387    23.293    23.333    23.300    23.150    22.891    23.056    24.520     0.050
flare solar      34.200    34.197    34.140    34.150    34.212    34.013    34.518    34.707    34.375     0.051
german           23.363    23.493    23.540    23.160    23.203    23.380    23.999    24.217    25.847     0.045
heart            16.670    16.810    16.730    16.400    16.120    15.720    16.335    16.571    22.810     0.073
image             2.817     3.094     2.990     2.851     3.030     2.802     3.081     3.173     2.188     0.035
ringnorm          4.406     1.681     1.613     4.400     1.574     1.573     1.567     1.607     2.750     0.014
splice           11.609    11.248    10.777    11.607    11.172    10.763    10.930    11.170     9.943     0.152
thyroid           4.373     4.293     4.747     4.307     4.040     4.560     3.743     4.279     4.693     0.073
titanic          22.637    22.473    22.483    22.490    22.591    22.407    22.167    22.487    22.562     0.077
twonorm           3.060     2.944     2.846     3.241     3.068     2.868     2.480     2.502     4.292     0.021
waveform         10.100     9.918     9.792    10.163     9.888     9.821     9.613     9.815    11.836     0.064
"""  # Tables 4 (int), 6 (med), 8 (10f) and 2 (ARD); ext s.e.: standard errors of the external bias in Table 8
table = pd.read_csv(io.StringIO(PRINTED), sep=r"\s{2,}", engine="python", index_col="dataset")
table.columns = [
    *(f"{name} {how}" for how in ("internal", "median") for name in ("GPC", "KLR", "KRR")),
    "10-fold external",
    "10-fold internal",
    "KRR ARD",
    "external s.e.",
]
DATASETS, EXTERNAL_SE = list(table.index), table.pop("external s.e.")
printed = xr.DataArray(table.T, dims=("method", "dataset"))
INTERNAL = ["GPC internal", "KLR internal", "KRR internal"]
MIXED = ["GPC internal", "KLR internal", "KRR median"]
MEDIAN = ["GPC median", "KLR median", "KRR median"]

fig, axes = plt.subplots(3, 1, figsize=(7.5, 5.4), layout="constrained")
diagrams = {}
for ax, names, title in zip(
    axes, (INTERNAL, MIXED, MEDIAN), ("all internal", "KRR alone by the median protocol", "all median"), strict=True
):
    diagrams[title] = cs.critical_difference(
        printed.sel({"method": names}), "dataset", by="method", direction="minimize"
    )
    cs.plot_critical_difference(diagrams[title], ax=ax, title=title)

# %% [markdown]
# *Figure 6 (the paper's Figures 10, 12 and 13). Mean ranks over thirteen data sets, best on the left; a bar joins what
# Nemenyi's test cannot tell apart. The caption of the paper's Figure 12 names KLR as the classifier with the median
# protocol; text and tables show that it is KRR.*
#
# Nothing changed between the first and the second diagram except the protocol of one competitor, and that made a
# significant winner out of a tie. Pair by pair, with Wilcoxon's test (printed decimals are rounded so that ties are
# ties):


# %%
def pair(a, b):
    x, y = (printed.sel({"method": name}, drop=True) for name in (a, b))
    return cs.wilcoxon_test(x, "dataset", other=y, digits=6)


honest = [float(pair(a, "KRR internal").p_value) for a in ("GPC internal", "KLR internal")]
spurious = [float(pair(a, "KRR median").p_value) for a in ("GPC internal", "KLR internal")]
friedman = {
    t: float(cs.friedman_test(printed.sel({"method": n}), "dataset", by="method", direction="minimize").p_value)
    for t, n in (("internal", INTERNAL), ("mixed", MIXED), ("median", MEDIAN))
}
print(f"KRR internal against GPC, KLR: P = {honest[0]:.3f}, {honest[1]:.3f}")
print(f"KRR median against GPC, KLR:   P = {spurious[0]:.4f}, {spurious[1]:.4f}")
print("Friedman", {name: round(p, 4) for name, p in friedman.items()})

# %% [markdown]
# How large are these biases? The paper says that for breast cancer, german, heart and thyroid the median bias exceeds
# the typical difference between classifiers. "Typical" can be read in two ways: against the median difference of any
# two classifiers over the whole table, or against the range of the three on the same data set.

# %%
bias = printed.sel({"method": "KRR internal"}) - printed.sel({"method": "KRR median"})
three = printed.sel({"method": INTERNAL})
spread = three.max("method") - three.min("method")
gpc, klr, krr = three.values
typical = float(np.median(np.abs([gpc - klr, gpc - krr, klr - krr])))
sizes = pd.DataFrame({"bias": bias.values, "range of the three": spread.values}, index=DATASETS)
sizes[f"above {typical:.2f}"], sizes["above its range"] = bias.values > typical, bias.values > spread.values
print(sizes.loc[["breast cancer", "german", "heart", "thyroid"]].round(3).to_string())
gap = (printed.sel({"method": "10-fold internal"}) - printed.sel({"method": "10-fold external"})).to_pandas()
print("\nbias of external tuning, largest first")
print(gap.sort_values(ascending=False).round(2).to_dict())
beyond = (gap / EXTERNAL_SE > 2).sum()
ard = pair("KRR internal", "KRR ARD")

# %% [markdown]
# Tables 2 and 3 also print the criterion after tuning: PRESS for ridge regression, minus the log evidence for the
# Gaussian process, with one width (RBF) and with many (ARD), and test errors with their standard errors.

# %%
CRITERIA = """
dataset        PRESS RBF  PRESS ARD  KRR RBF s.e.  KRR ARD s.e.  evid RBF  evid ARD  GPC ARD  GPC RBF s.e.  GPC ARD s.e.
banana            60.808     60.957         0.051         0.052   116.894   116.459   10.459         0.046         0.049
breast cancer     70.632     66.789         0.466         0.391   110.628   107.181   27.948         0.487         0.492
diabetis         146.143    141.465         0.169         0.215   230.211   222.305   23.853         0.182         0.193
flare solar      267.332    263.858         0.175         0.175   394.697   384.374   33.578         0.175         0.181
german           228.256    221.743         0.214         0.267   359.181   346.048   23.757         0.211         0.217
heart             42.576     37.023         0.359         0.411    73.464    67.811   19.770         0.290         0.365
image             74.056     44.488         0.159         0.134   205.061   123.896    2.188         0.121         0.076
ringnorm          28.324     27.680         0.015         0.042   121.260    91.356    8.589         0.064         0.097
splice           186.814    130.888         0.144         0.520   365.208   242.464    8.618         0.180         0.924
thyroid            9.099      6.816         0.235         0.202    25.461    18.867    4.227         0.219         0.216
titanic           48.332     47.801         0.085         0.109    78.952    78.373   22.725         0.134         0.133
twonorm           32.539     35.620         0.021         0.086    45.901    42.044    4.025         0.034         0.068
waveform          61.658     56.424         0.045         0.085   105.925    91.239   11.418         0.047         0.091
"""
more = pd.read_csv(io.StringIO(CRITERIA), sep=r"\s{2,}", engine="python", index_col="dataset")
overfit = {}
for name, criterion, rbf, wide_error in (
    ("KRR", "PRESS", table["KRR internal"], table["KRR ARD"]),
    ("GPC", "evid", table["GPC internal"], more["GPC ARD"]),
):
    better = more[f"{criterion} ARD"] < more[f"{criterion} RBF"]
    z = (wide_error - rbf) / np.hypot(more[f"{name} RBF s.e."], more[f"{name} ARD s.e."])
    overfit[name] = {
        "ARD has the better criterion": int(better.sum()),
        "... and more errors": int((better & (wide_error > rbf)).sum()),
        "RBF better by two s.e.": int((z > 2).sum()),
        "ARD better by two s.e.": ", ".join(z.index[z < -2]),
    }
print(pd.DataFrame(overfit).to_string())

# %% [markdown]
# ## Do we agree with the paper?

# %% tags=["hide-input"]
both = (bias > typical).sel(dataset=["breast cancer", "german", "heart", "thyroid"])
ranged = (bias > spread).sel(dataset=["breast cancer", "german", "heart", "thyroid"])
negative = [name for name in DATASETS if float(bias.sel(dataset=name)) < 0]
place = int(gap.rank(ascending=False)["banana"])
sd_ratio = split_sample["s.d. of true"]
verdict = [
    ("the true error turns and rises (Fig. 2)", "after 30-40 steps", f"after {turn}, by {rise:.3f}", rise_t > 2),
    (
        "256 validation samples choose more alike than 64",
        "Figs 7, 8",
        f"s.d. {sd_ratio[256]:.4f}, {sd_ratio[64]:.4f}",
        sd_ratio[256] < sd_ratio[64],
    ),
    (
        "median is optimistic without reuse (5.2.1)",
        "P < .001",
        f"P = {median_p:.2g}",
        median_p < 0.001,
    ),
    (
        "most so for noisy criteria (Fig. 14)",
        "falls with splits",
        f"{flattery[1]:.3f} to {flattery[20]:.3f}",
        flattery[1] > flattery[20],
    ),
    (
        "external is optimistic",
        "13 of 13 data sets",
        f"{float(outside.bias[2]):+.3f} on the mixture; {int((gap > 0).sum())} of 13 printed",
        float(outside.p_value[2]) < 0.01 and bool((gap > 0).all()),
    ),
    ("... beyond 2 s.e. on all but two (Table 8)", "11", f"{beyond}", beyond == 11),
    (
        "internal: no difference (Table 4)",
        "none",
        f"Friedman P = {friedman['internal']:.3f}",
        friedman["internal"] > 0.05,
    ),
    ("KRR by median 'beats' both", "P < .05", f"P = {spurious[0]:.4f}, {spurious[1]:.4f}", max(spurious) < 0.05),
    ("all median: no difference (Table 6)", "P > .05", f"P = {friedman['median']:.3f}", friedman["median"] > 0.05),
    (
        "median bias > 0 except twonorm, waveform",
        "two exceptions",
        ", ".join(negative),
        negative == ["twonorm", "waveform"],
    ),
    ("bias above the typical difference, 4 sets", "4", f"{int(both.sum())} (median difference)", bool(both.all())),
    ("... above the range of the three", "(4)", f"{int(ranged.sum())}", bool(ranged.all())),
    ("external bias surprising on banana", "named", f"rank {place} of 13", place <= 2),
    (
        "more kernel widths, more errors (Table 2)",
        "RBF mostly better",
        f"P = {float(ard.p_value):.3f}",
        float(ard.p_value) < 0.05,
    ),
    (
        "ARD better within a data set (Table 2)",
        "image alone",
        overfit["KRR"]["ARD better by two s.e."],
        overfit["KRR"]["ARD better by two s.e."] == "image",
    ),
    (
        "lower PRESS, more errors (Table 2)",
        "the majority",
        f"{overfit['KRR']['... and more errors']} of 13",
        overfit["KRR"]["... and more errors"] > 6,
    ),
    (
        "more evidence, more errors (Table 3)",
        "often",
        f"{overfit['GPC']['... and more errors']} of 13",
        overfit["GPC"]["... and more errors"] > 6,
    ),
    (
        "the same in our twonorm: PRESS, evidence",
        "twonorm: yes",
        " ".join(f"{change.loc[('twonorm', name), 'mean']:+.1f} %" for name in ("PRESS", "evidence")),
        bool((change.loc["twonorm", "mean"] > 2 * change.loc["twonorm", "sem"]).all()),
    ),
    (
        "one data set may favour either (Fig. 9)",
        "64 : 36",
        f"{(gp < ridge).sum()} : {(gp > ridge).sum()}",
        min((gp < ridge).sum(), (gp > ridge).sum()) >= 20,
    ),
]
print(pd.DataFrame(verdict, columns=["claim", "paper", "here", "agree"]).to_string(index=False))

# %% [markdown]
# Where the last column says False:
#
# - *Above the range of the three classifiers.* By that stricter reading the claim holds for breast cancer and heart,
#   not for german and thyroid. With the median pairwise difference as yardstick it holds for all four.
# - *Banana.* Its external bias, 0.14 points, is one of the smallest. Breast cancer, 1.19 points, is by far the largest
#   and is not named, so it was probably meant.
#
# The turning point in the first line depends on where a search starts and how large its steps are, so only its
# existence can be compared. The p-values of the paper's Table 7, and its tests within data sets in Tables 2 and 3, need
# a hundred realisations per data set, of which only means and standard errors were printed; where we judge by two
# standard errors, they are those of independent means, which is stricter. The test of Table 2 over data sets is ours.
# In print ARD has the *higher* PRESS on two data sets, banana and twonorm, which a complete search cannot end with, as
# RBF is a case of ARD.
#
# ## What to remember
#
# - A selection criterion is an estimate, and its minimum is too good to be true.
# - Few tuning values, many samples, and criteria with a small variance protect. Long searches do not.
# - Tuning belongs *inside* whatever judges the model: every fold, every realisation.
# - Never compare numbers that come from different protocols.

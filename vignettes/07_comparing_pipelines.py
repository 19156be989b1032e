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
# # Comparing pipelines
#
# Is the forest better than the discriminant, or was it lucky? The answer depends on what was fixed before looking at
# the data. This vignette goes through the questions in the order in which they get harder: two named models, two tuned
# families, one winner among many.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

import cvstats as cs

LARGE = False  # True: steadier rates in the experiment below, some minutes
DATASETS = 2000 if LARGE else 120
cube = cs.example_cube()  # 120 patients, 133 configurations, 5 repeats of 10-fold cross-validation

# %% [markdown]
# ## Two methods that were named in advance
#
# We decided on these two before seeing any score. Both predicted the same patients, so the comparison is *paired*: what
# makes a patient difficult is difficult for both and cancels in the difference.
#
# Say first what the question is about. *These models*, fitted to these patients: would they differ on other patients?
# Or *these methods*: would they differ if they were also trained on other patients? A paper that recommends one
# pipeline over another means methods. `contrast` answers that; with `regime="holdout"`, and in the tests of DeLong and
# McNemar, the models are taken as given.

# %%
A, B = "linear discriminant shrinkage=0.25", "forest max_features=3 min_samples_leaf=8"
by_bootstrap = cs.contrast(cube, "auc", a=A, b=B, rng=1)
of_models = cs.contrast(cube, "auc", a=A, b=B, regime="holdout", rng=1)
by_delong = cs.delong_test(cube, a=A, b=B)
accuracy = cs.contrast(cube, "accuracy", a=A, b=B, rng=1)
counts = cs.mcnemar_test(cube.isel(repeat=0), a=A, b=B)


def line(name, test):
    low, high = (float(test[side]) if side in test else np.nan for side in ("conf_low", "conf_high"))
    return name, float(test.estimate), float(test.std_error), low, high, float(test.p_value)


columns = ["test", "A - B", "std. error", "low", "high", "P"]
tests = [
    line("AUC, contrast: methods", by_bootstrap),
    line("AUC, contrast: these models", of_models),
    line("AUC, DeLong: these models", by_delong),
    line("accuracy, contrast: methods", accuracy),
    line("accuracy, McNemar, first repeat: these models", counts),
]
print(pd.DataFrame(tests, columns=columns).round(4).to_string(index=False))
print(f"McNemar: only A right {int(counts.n_a)} times, only B right {int(counts.n_b)} times")

# %% [markdown]
# About these models, `contrast` and DeLong's test agree for the AUC, as they should: one resamples patients, the other
# has a formula. About methods the standard error is half as large again: what other training patients would change is
# in no saved prediction, so `contrast` adds 1.25 times the variance of one partition, after Nadeau and Bengio. Use it
# for any metric, and whenever there are repeats, groups or weights. McNemar's test is for two sets of yes-or-no
# decisions on one repeat; it counts the patients whom only one of the two gets right.
#
# ## The test that everybody uses, and why not to
#
# Fifty scores per model, five repeats of ten folds: a t-test over fifty differences looks natural. It takes them as
# fifty independent facts. They are not. All come from the same 120 patients and from training sets that overlap by nine
# tenths. More repeats make its P smaller and smaller without a single new patient.


# %%
def fold_accuracy(cube, names):
    """Return the accuracy of every fold of every repeat."""
    right = ((cube.sel(configuration=names) > 0.5) == (cube.label == cube.positive)).astype(float)
    parts = [
        right.isel(repeat=r).groupby(cube.fold.isel(repeat=r).rename("fold_id")).mean("sample")
        for r in range(cube.sizes["repeat"])
    ]
    return xr.concat(parts, "repeat", coords="minimal", compat="override").reset_coords(drop=True)


scores = fold_accuracy(cube, [A, B])
pair = [scores.sel(configuration=name, drop=True) for name in (A, B)]
splits = ("repeat", "fold_id")
naive = cs.t_test(pair[0], splits, other=pair[1])
corrected = cs.corrected_t_test(pair[0], splits, other=pair[1], test_fraction=1 / 10)
print(f"plain t-test     P = {float(naive.p_value):.4f}, standard error {float(naive.std_error):.4f}")
print(f"corrected t-test P = {float(corrected.p_value):.4f}, standard error {float(corrected.std_error):.4f}")
print(f"contrast         P = {float(accuracy.p_value):.4f}, standard error {float(accuracy.std_error):.4f}")

# %% [markdown]
# Which of them is right? Ask them a question whose answer is known. We draw data with ten features, five for one model
# and five others for the second, all equally useful. Neither model is better, so a test at the 5 % level may say
# "different" in 5 % of the data sets, not more. Training is in closed form (nearest class mean), so it is fast.

# %%
N, REPEATS, FOLDS = 60, 10, 5


def predictions(x, y, fold):
    """Return class-1 scores of the nearest-mean rule, every sample predicted without its fold."""
    out = np.empty(len(y))
    for k in range(FOLDS):
        train = fold != k
        one, zero = x[train & (y == 1)].mean(axis=0), x[train & (y == 0)].mean(axis=0)
        out[~train] = (x[~train] - (one + zero) / 2) @ (one - zero)
    return out


def p_of_equal_models(shift, rng):
    """Return P of five tests for data sets in which neither model is better; `shift` says how easy the classes are."""
    y = np.arange(N) % 2
    rows = []
    for _ in range(DATASETS):
        x = rng.standard_normal((N, 10)) + shift * y[:, None]
        fold = cs.kfold(y, FOLDS, repeats=REPEATS, rng=rng).values
        values = np.array([[predictions(x[:, part], y, f) for f in fold.T] for part in (slice(0, 5), slice(5, 10))])
        both = cs.as_cube(
            values.transpose(2, 0, 1), y, folds=fold, configurations=["a", "b"], kind="score", threshold=0.0
        )
        right = (values > 0) == y
        each = [[[one[f == k].mean() for k in range(FOLDS)] for one, f in zip(m, fold.T, strict=True)] for m in right]
        a, b = (xr.DataArray(part, dims=("repeat", "fold")) for part in each)
        rows.append(
            {
                "t-test": cs.t_test(a, ("repeat", "fold"), other=b),
                "corrected t-test": cs.corrected_t_test(a, ("repeat", "fold"), other=b, test_fraction=1 / FOLDS),
                "contrast": cs.contrast(both, "accuracy", a="a", b="b", times=200, rng=1),
                "contrast, these models": cs.contrast(
                    both, "accuracy", a="a", b="b", regime="holdout", times=200, rng=1
                ),
                "McNemar (one repeat)": cs.mcnemar_test(both.isel(repeat=0), a="a", b="b"),
            }
        )
    return pd.DataFrame([{name: float(test.p_value) for name, test in row.items()} for row in rows])


experiments = {
    "clear classes": p_of_equal_models(0.8, np.random.default_rng(1)),
    "faint classes": p_of_equal_models(0.3, np.random.default_rng(2)),
}
rate = pd.DataFrame({name: p.lt(0.05).mean() for name, p in experiments.items()})
print("share of data sets in which two equal models are called different (should be .05)")
print(rate.round(3).to_string())

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, (title, p_values) in zip(axes, experiments.items(), strict=True):
    for name, values in p_values.items():
        ax.plot(np.sort(values), np.arange(1, DATASETS + 1) / DATASETS, drawstyle="steps-post", label=name)
    ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    ax.set(xlabel="P", title=title, xlim=(0, 1), ylim=(0, 1))
axes[0].set_ylabel("share of data sets with a smaller P")
axes[1].legend(loc="lower right")
plt.show()

# %% [markdown]
# *Figure 1. P-values for two equally good models. A valid test stays on the grey line or below it. Left: the classes
# differ clearly; right: hardly.*
#
# The plain t-test finds differences that are not there in more than half of the data sets. The correction of Nadeau and
# Bengio widens its standard error for the overlap of the training sets. The standard error of `contrast` comes from
# resampling patients, so repeats cannot fool it.
#
# With clear classes nearly all of the noise is in who was there to be judged, and all but the plain t-test are near
# their level or below. With faint classes and 60 patients those that take the models as given are not: the two
# *methods* are equally good, but the two *models*, trained on these very 60 patients, are not, and they say so more
# often than 5 %. `contrast` allows for other training patients and stays below its level in both. The price is power:
# it allows for unstable learners wherever it is used, as no saved prediction says how stable these were. How it was
# measured, and what it costs: [Comparing methods](../docs/comparing.md).
#
# ## Two families, tuned
#
# "The forest" is hardly ever one configuration. Somebody tunes it, and tuning flatters the family with more
# configurations. The difference between the two best scores is then a difference of two winner's curses. `contrast`
# takes families: in every bootstrap draw each family chooses again, and patients outside the draw judge the choices.

# %%
FAMILIES = ["ridge logistic", "forest", "boosting", "nearest neighbours", "tree"]
rows = []
for name in FAMILIES[1:]:
    found = cs.contrast(cube, "auc", a={"family": FAMILIES[0]}, b={"family": name}, rng=1)
    keys = ("naive", "estimate", "std_error", "conf_low", "conf_high", "p_value")
    rows.append((name, int((cube.family == name).sum()), *(float(found[key]) for key in keys)))
families = pd.DataFrame(rows, columns=["ridge against", "size", "naive", "honest", "std. error", "low", "high", "P"])
families["P (Holm)"] = cs.p_adjust(families["P"].to_numpy())
print(families.round(3).to_string(index=False))

# %% [markdown]
# Several comparisons need an adjustment; `p_adjust` has Holm's and others. Note how wide the intervals are. With 120
# patients a difference of .08 in AUC is about what can be seen.
#
# ## One winner among many
#
# Do not test the winner against the runner-up. The data chose both, and a test that was told so little is too sure of
# itself. The right question is the other way round: *which configurations can be excluded?* `best_set` keeps every
# configuration that the data cannot tell from the best, and pays for all comparisons.

# %%
best = cs.best_set(cube, "auc", rng=1)
print(f"best score: {best.selected.item()}")
print(f"{int(best.n_set)} of {cube.sizes['configuration']} configurations stay in the set")
frame = pd.DataFrame({"family": cube.family.values, "in the set": best.in_set.values})
print(
    frame.groupby("family")["in the set"].agg(["sum", "size"]).rename(columns={"sum": "stay", "size": "of"}).to_string()
)

# %% [markdown]
# Being in the set is not a certificate of quality; it says that the data cannot rule it out. From the set you may take
# what is simplest, fastest or best understood, with a clear conscience. How good the chosen one is, is another
# question: see [the first vignette](01_tour.py).

# %%
order = np.argsort(-best.estimate.values)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
inside = best.in_set.values[order]
ranks = np.arange(len(order))
for flag, label in ((True, "in the set"), (False, "excluded")):
    some = inside == flag
    ax.errorbar(
        ranks[some],
        best.difference.values[order][some],
        best.std_error.values[order][some],
        fmt="o" if flag else "x",
        ms=4,
        lw=0.6,
        label=label,
    )
ax.set(xlabel="rank of the configuration", ylabel="AUC minus best AUC")
ax.legend()
plt.show()

# %% [markdown]
# *Figure 2. Distance to the best score, with its standard error, for all 133 configurations. Whether one is excluded
# depends on both.*
#
# ## Several data sets
#
# When pipelines were tried on many data sets, the data sets are the samples: use `wilcoxon_test` for two pipelines and
# `friedman_test` with `critical_difference` for more. [The sixth vignette](06_overfitting_the_selection.py) does this
# with published tables.
#
# ## What to report

# %%
report = [
    ("two methods named in advance", "contrast", "difference, interval, P"),
    ("two fitted models, any metric", "contrast, regime='holdout'", "difference, interval, P, that it is about models"),
    ("two fitted models, AUC", "delong_test", "difference, interval, P, that it is about models"),
    ("two fitted models, decisions only", "mcnemar_test", "the two counts, P, that it is about models"),
    ("only fold scores are left", "corrected_t_test", "difference, interval, P, number of splits"),
    ("two tuned families", "contrast with families", "honest difference, interval, sizes of the families"),
    ("one winner among many", "best_set", "number in the set, number tried, level"),
    ("many data sets", "critical_difference", "mean ranks, test, number of data sets"),
]
print(pd.DataFrame(report, columns=["question", "function", "report"]).to_string(index=False))

# %% [markdown]
# ## What to remember
#
# - Always the difference with its interval; P alone says nothing about size.
# - Folds and repeats are not samples. Patients are.
# - Say whether you compare methods or fitted models. Tests of models are too sure of methods.
# - Name the contenders before looking, or let the method repeat your choice.

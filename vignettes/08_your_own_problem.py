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
# # Your own metric, groups, survival, many classes
#
# Nothing in the package is about two classes and AUC in particular. A metric is a function that says which direction is
# better; everything else follows. This vignette is a tour of the other problems people have.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import cohen_kappa_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cvstats as cs

TIMES = 500  # bootstrap draws


def show(result):
    """Print the line that matters."""
    low, high = result.conf_low.item(), result.conf_high.item()
    print(
        f"{result.metric.item()}: {result.selected.item()}, claimed {result.naive.item():.3f}, "
        f"honest {result.estimate.item():.3f} ({low:.3f} to {high:.3f})"
    )


# %% [markdown]
# ## Many classes
#
# Three species of iris from the size of the sepals alone. The cube has one probability per class, along the dimension
# `label_class`. Accuracy, Hand and Till's AUC, the Brier score and Gorodkin's correlation all go through the same code.

# %%
iris = cs.example_cube("iris")
print(dict(iris.sizes))
for metric in ("accuracy", "auc", "brier", "mcc"):
    show(cs.winner(iris, metric, times=TIMES, rng=1))

# %% [markdown]
# The naive number is always on the flattering side, whichever direction is better: above the honest one for accuracy,
# below it for the Brier score. `optimism` has one sign for all: positive means too good.
#
# ## Regression
#
# Disease progression in 120 diabetes patients; 322 others tell the truth about each refitted model.

# %%
diabetes = cs.example_cube("diabetes")
result = cs.winner(diabetes, "rmse", times=TIMES, rng=1)
show(result)
print(f"on 322 other patients: {float(diabetes.test_rmse.sel(configuration=result.selected.item())):.3f}")

# %% [markdown]
# ## The simplest model that is good enough
#
# The best is not always what you want. `select_one_se` takes the simplest configuration within one standard error of
# the best (the cube says what is simple: the coordinate `complexity`). The choice is repeated in every draw, so the
# estimate is for *that* rule.

# %%
simple = cs.winner(diabetes, "rmse", select=cs.select_one_se, times=TIMES, rng=1)
show(simple)

# %% [markdown]
# ## A metric of your own
#
# Suppose one missed cancer weighs as much as nine false alarms. The *net benefit* at that exchange rate counts true
# positives minus a ninth of the false positives, per patient. Decorate a function of label, prediction and weight, and
# it is a metric. scikit-learn's functions can be wrapped as they are:
# `cs.as_metric(roc_auc_score, direction="maximize")`.


# %%
@cs.as_metric(direction="maximize", range=(-1, 1), uses="probability", requires="classes")
def net_benefit(label, prediction, weight):
    treat = prediction > 0.1
    return (weight * treat * (label - (1 - label) / 9)).sum() / weight.sum()


cancer = cs.example_cube().isel(repeat=0, drop=True)
few = cancer.isel(configuration=slice(None, None, 6))  # a function of your own is called for every draw: keep it small
show(cs.winner(few, net_benefit, times=200, rng=1))

# %% [markdown]
# Functions of scikit-learn that take `sample_weight` are metrics as they are:

# %%
kappa = cs.as_metric(cohen_kappa_score, direction="maximize", range=(-1, 1), uses="label", requires="classes")
show(cs.winner(few.isel(configuration=slice(None, None, 4)), kappa, times=100, rng=1))

# %% [markdown]
# ## Groups: when samples are not alone
#
# Forty patients gave four samples each. Samples of a patient resemble each other, and here that is *all* there is: the
# diagnosis has been assigned by tossing a coin, so nothing can be learned. Watch what random folds make of it.

# %%
rng = np.random.default_rng(1)
patient = np.repeat(np.arange(40), 4)
y = rng.integers(0, 2, 40)[patient]
x = rng.normal(size=(40, 6))[patient] + 0.3 * rng.normal(size=(160, 6))
models = {f"{k} neighbours": KNeighborsClassifier(k) for k in (1, 3, 5, 9, 15, 25)}
models |= {f"ridge C={c}": LogisticRegression(C=c) for c in (0.01, 0.1, 1, 10)}


def cross_validate(fold):
    columns = {name: np.empty(len(y)) for name in models}
    for i in range(fold.max() + 1):
        train, test = fold != i, fold == i
        for name, model in models.items():
            columns[name][test] = make_pipeline(StandardScaler(), model).fit(x[train], y[train]).predict(x[test])
    return columns


random_folds = cs.kfold(y, 5, rng=1).values[:, 0]
whole_patients = cs.kfold(y, 5, groups=patient, rng=1).values[:, 0]
leaking = cs.as_cube(cross_validate(random_folds), y, folds=random_folds)
print("folds split patients:     ", end=" ")
show(cs.winner(leaking, "accuracy", times=TIMES, rng=1))

proper = cs.as_cube(cross_validate(whole_patients), y, folds=whole_patients, groups=patient)
print("folds keep patients whole:", end=" ")
show(cs.winner(proper, "accuracy", times=TIMES, rng=1))

# %% [markdown]
# With random folds the nearest neighbour of a sample is usually another sample *of the same patient*, whose label it
# copies. No statistic can repair that afterwards: the leak is in the predictions. `kfold(groups=)` keeps patients
# whole.
#
# The coordinate `group` has a second job. The bootstrap then draws patients, not samples, because 160 samples of 40
# patients carry the information of about 40. Leave it out and the interval pretends to know more:

# %%
independent = proper.drop_vars("group")
for name, cube in (("patients drawn", proper), ("samples drawn", independent)):
    out = cs.winner(cube, "accuracy", times=TIMES, rng=1)
    print(f"{name:15} width of the interval {float(out.conf_high - out.conf_low):.3f}")

# %% [markdown]
# ## Survival
#
# Labels are times, `event` says whether the event was observed (1) or the patient was still alive when last seen (0).
# Predictions of kind `score` are risks: higher means earlier. Harrell's concordance is the share of comparable pairs in
# the right order. Our toy risk models are ridge regressions of minus the logarithm of time.

# %%
n = 150
x = rng.normal(size=(n, 12))
hazard = np.exp(0.8 * x[:, 0] - 0.6 * x[:, 1])
death, censored = rng.exponential(1 / hazard), rng.exponential(2.0, n)
time, event = np.minimum(death, censored), (death <= censored).astype(int)
fold = cs.kfold(event, 10, rng=1).values[:, 0]
risk = {}
for features in (1, 2, 4, 8, 12):
    for penalty in (0.1, 1, 10, 100, 1000):
        column = risk.setdefault(f"{features} features, penalty {penalty:g}", np.empty(n))
        for i in range(10):
            train = fold != i
            model = Ridge(alpha=penalty).fit(x[train, :features], -np.log(time[train]))
            column[~train] = model.predict(x[~train, :features])
survival = cs.as_cube(risk, time, event=event, folds=fold, kind="score")
print(f"{event.sum()} events among {n}")
show(cs.winner(survival, "concordance", times=TIMES, rng=1))

# %% [markdown]
# ## Several data sets at once
#
# Any further dimension of the cube is a batch: functions map over it and keep it. Here 8 studies of 60 samples are
# analysed by one call each.

# %%
studies = cs.ripley_mixture(60, folds=10, realisations=8, n_test=1024, rng=2)
batch = cs.winner(studies, "error_rate", times=200, rng=1)
print(batch.estimate.dims, batch.estimate.values.round(3))
truth = studies.truth.sel(configuration=batch.selected)
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
place = np.arange(8)
ax.vlines(place, batch.conf_low, batch.conf_high, lw=2)
ax.plot(place, batch.estimate, "o", color="black", label="estimate")
ax.plot(place, batch.naive, "D", mfc="white", color="tab:red", label="what plain CV claims")
ax.plot(place, truth, "_", ms=16, color="black", label="truth")
ax.set(xlabel="study", ylabel="error rate")
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))

# %% [markdown]
# *Figure 1. Eight simulated studies: naive and honest error rate of the winner, its interval, and the truth.*
#
# ## Who may use what
#
# | you have | labels | `kind` | metrics |
# |---|---|---|---|
# | classes predicted | classes | `label` | accuracy, error rate, balanced accuracy, sensitivity, F1, MCC, prior error |
# | probabilities | classes | `probability` | those, AUC, average precision, Brier, log loss |
# | scores (any scale) | two classes | `score` | AUC, average precision; those of classes once `threshold=` is given |
# | numbers | numbers | `value` | MSE, RMSE, MAE, R² |
# | risks or times | times with `event` | `score` or `value` | concordance |

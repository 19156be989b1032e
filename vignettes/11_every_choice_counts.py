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
# # Every choice counts
#
# Choosing a configuration is one choice. Most studies make more of them on the same saved predictions: the threshold
# above which a patient is called ill, an average of the best models, a recalibration, the number that goes into the
# abstract. Each is made because it looks good on these data, so each looks better than it is.
#
# The remedy is the same for all. A *decision* is whatever was learned from labels and predictions: whom to select, and
# what is done with their predictions. Learn the whole decision again in every bootstrap draw, judge it on the samples
# that were left out, and the difference between what was claimed and what is true shows.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, ndtri
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, recall_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import cvstats as cs

LARGE = False  # True: 200 simulated studies of each kind, a few minutes
STUDIES = 200 if LARGE else 40
TIMES = 200 if LARGE else 100  # bootstrap draws in a simulated study

# %% [markdown]
# ## Simulated studies, where the truth is known
#
# 120 patients, 40 % of them ill, and ten markers of different quality that are correlated with each other. Four
# people analyse each study:
#
# - *metric*: chooses the marker with the best AUC and reports its accuracy;
# - *threshold*: chooses marker and threshold together, by balanced accuracy;
# - *recalibration*: recalibrates every marker's probabilities and chooses by Brier score;
# - *ensemble*: averages markers, picked one by one (twenty steps, with replacement), by squared error.
#
# All four keep the decision that looks best on all patients. We know how the data were made, so we know what each
# decision is worth on new patients.


# %%
def markers(g, n=120, m=10):
    """Return the labels, the values of the markers, and how far each moves the ill."""
    y = (np.arange(n) < 0.4 * n).astype(int)
    gap = g.uniform(0.6, 1.2, m)
    noise = np.sqrt(0.6) * g.normal(size=(n, 1)) + np.sqrt(0.4) * g.normal(size=(n, m))
    return y, noise + gap * y[:, None], gap


def metric(g, seed):
    """Chosen by AUC, reported as accuracy; ill means above .5."""
    y, x, gap = markers(g)
    cube = cs.as_cube(x, y, kind="score", positive=1, threshold=0.5)
    out = cs.winner(cube, "accuracy", by="auc", times=TIMES, rng=seed)
    return out, 0.4 * ndtr(gap[out.selected.item()] - 0.5) + 0.6 * ndtr(0.5)


def threshold(g, seed):
    """Marker and threshold together."""
    y, x, gap = markers(g)
    cube = cs.as_cube(x, y, kind="score", positive=1)
    out = cs.winner(cube, "balanced_accuracy", adjust=cs.cut("youden"), times=TIMES, rng=seed)
    limit = out.threshold.item()
    return out, (ndtr(gap[out.selected.item()] - limit) + ndtr(limit)) / 2


def recalibration(g, seed):
    """Probabilities that are too sure, recalibrated."""
    y, x, gap = markers(g)
    cube = cs.as_cube(expit(2 * x), y, kind="probability", positive=1)
    out = cs.winner(cube, "brier", adjust=cs.recalibrate("logistic"), times=TIMES, rng=seed)
    new = ndtri(np.linspace(0.0005, 0.9995, 1000))  # a new patient's noise
    well, ill = (
        expit(out.intercept.item() + out.slope.item() * 2 * (new + shift)) for shift in (0, gap[out.selected.item()])
    )
    return out, 0.6 * np.mean(well**2) + 0.4 * np.mean((1 - ill) ** 2)


def ensemble(g, seed, n=120, m=10):
    """Predictions of a number: an error that all share, and one of their own."""
    own = g.uniform(0.6, 1.0, m)
    error = 0.6 * g.normal(size=(n, 1)) + own * g.normal(size=(n, m))
    cube = cs.as_cube(error, np.zeros(n), kind="value")
    out = cs.winner(cube, "mse", select=cs.ensemble(20), times=TIMES, rng=seed)
    return out, 0.36 + out.share.values**2 @ own**2


studies = []
for analyse in (metric, threshold, recalibration, ensemble):
    for seed in range(STUDIES):
        out, truth = analyse(np.random.default_rng(seed), seed)
        claimed, honest = out.naive.item(), out.estimate.item()
        inside = out.conf_low.item() <= truth <= out.conf_high.item()
        studies.append((analyse.__name__, out.metric.item(), claimed, honest, float(truth), inside))
studies = pd.DataFrame(studies, columns=["decision", "reported", "claimed", "honest", "truth", "inside"])
print(studies.groupby(["decision", "reported"], sort=False).mean().round(3))

# %% [markdown]
# The claim is too good in every row: too high for the two accuracies, too low for Brier score and squared error. The
# honest number comes from the same patients. It is nearer the truth, and where it errs it errs on the careful side: a
# draw holds fewer different patients than the study, so it decides a little worse. The last column is the share of
# studies whose 95 % interval held the truth.

# %%
fig, axes = plt.subplots(1, 4, figsize=(10, 3.2))
for axis, (name, part) in zip(axes, studies.groupby("decision", sort=False), strict=True):
    for place, (kind, colour) in enumerate({"claimed": "#c0504d", "honest": "#1f5fa8"}.items()):
        off = part[kind] - part["truth"]
        spread = np.random.default_rng(0).uniform(-0.15, 0.15, len(off))
        axis.plot(place + spread, off, ".", color=colour, alpha=0.35, markersize=5)
        axis.plot([place - 0.25, place + 0.25], [off.mean()] * 2, color=colour, linewidth=3)
    axis.axhline(0, color="0.4", linewidth=0.8)
    axis.set_xticks([0, 1], ["claimed", "honest"])
    axis.set_xlim(-0.5, 1.5)
    axis.set_title(f"{name}\n({part['reported'].iloc[0].replace('_', ' ')})", fontsize=10)
axes[0].set_ylabel("difference from the truth")
fig.tight_layout()
plt.show()

# %% [markdown]
# *Figure 1. What was claimed and what is reported honestly, minus the truth. A dot is a study, a bar the mean. For
# the two losses on the right, below zero is too good.*
#
# ## Real patients, with a test set
#
# The bundled breast cancer data are 120 patients; 449 others were never used. We take three of the families that were
# tuned (43 configurations, one repeat), make four decisions on the 120, and then do what no study can: refit everything
# on all 120, apply each decision as it stands to the 449, and look.

# %%
families = ["ridge logistic", "nearest neighbours", "tree"]
cube = cs.example_cube().isel(repeat=[0])
cube = cube.isel(configuration=np.isin(cube.family, families))

data = load_breast_cancer(as_frame=True)
wanted = ("texture", "smoothness", "symmetry", "fractal dimension")
x = data.data[[name for name in data.data if any(word in name for word in wanted)]].to_numpy()
ill = 1 - data.target.to_numpy()
rest = np.setdiff1d(np.arange(len(ill)), cube.sample.values)


def model(one):
    """Return the model of a configuration."""
    if one.family == "tree":
        return DecisionTreeClassifier(
            max_depth=int(one.max_depth), min_samples_leaf=int(one.min_samples_leaf), random_state=0
        )
    if one.family == "ridge logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(C=float(one.C), max_iter=5000))
    weights = "distance" if one.distance_weights else "uniform"
    return make_pipeline(StandardScaler(), KNeighborsClassifier(int(one.n_neighbors), weights=weights))


study = cube.sample.values
test = np.stack(
    [
        model(cube.isel(configuration=j)).fit(x[study], ill[study]).predict_proba(x[rest])[:, 1]
        for j in range(cube.sizes["configuration"])
    ],
    axis=1,
)
print(f"{test.shape[1]} configurations refitted on {len(study)} patients, {len(rest)} others to look at")

# %%
place = {name: j for j, name in enumerate(cube.configuration.values)}
truth = ill[rest]

rows = {}
one = cs.winner(cube, ["auc", "sensitivity"], by="auc", rng=1).sel(metric="sensitivity")
rows["by AUC, sensitivity reported"] = one, recall_score(truth, test[:, place[one.selected.item()]] > 0.5)
one = cs.winner(cube, "balanced_accuracy", adjust=cs.cut("youden"), rng=1)
called = test[:, place[one.selected.item()]] > one.threshold.item()
rows["threshold, balanced accuracy"] = one, balanced_accuracy_score(truth, called)
one = cs.winner(cube, "brier", adjust=cs.recalibrate("logistic"), rng=1)
odds = logit(np.clip(test[:, place[one.selected.item()]], 2.0**-52, 1 - 2.0**-52))
rows["recalibration, Brier score"] = one, brier_score_loss(truth, expit(one.intercept.item() + one.slope.item() * odds))
one = cs.winner(cube, "brier", select=cs.ensemble(20), rng=1)
rows["ensemble, Brier score"] = one, brier_score_loss(truth, test @ one.share.values)

table = pd.DataFrame(
    {
        name: {
            "claimed": out.naive.item(),
            "honest": out.estimate.item(),
            "from": out.conf_low.item(),
            "to": out.conf_high.item(),
            "449 others": other,
        }
        for name, (out, other) in rows.items()
    }
).T
print(table.round(3))

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 2.6))
for axis, part, words in zip(axes, (table[1::-1], table[:1:-1]), ("higher is better", "lower is better"), strict=True):
    for height, (_, row) in enumerate(part.iterrows()):
        axis.plot([row["from"], row["to"]], [height, height], color="#1f5fa8", linewidth=2)
        axis.plot(row["honest"], height, "o", color="#1f5fa8", label="" if height else "honest, 95 % interval")
        axis.plot(row["claimed"], height, "x", color="#c0504d", markersize=8, label="" if height else "claimed")
        axis.plot(row["449 others"], height, "D", color="black", markersize=5, label="" if height else "449 others")
    axis.set_yticks(range(len(part)), [name.replace(", ", ",\n") for name in part.index])
    axis.set_ylim(-0.5, len(part) - 0.5)
    axis.set_xlabel(words)
fig.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=3, frameon=False)
fig.tight_layout(rect=(0, 0, 1, 0.9))
plt.show()

# %% [markdown]
# *Figure 2. Four decisions on 120 patients: what was claimed, the honest estimate with its interval, and what came true
# on 449 others.*
#
# One test set is one draw of luck. These 120 patients happen to be harder to tell apart than the others, so most of the
# claims came true; nobody could have known. The honest intervals hold all four values. What happens on average is
# what the simulation shows.
#
# ## What to write
#
# Make the decision in one call, and report all metrics of that one decision together. Two calls with two metrics are
# two decisions, and may describe two different winners.

# %%
both = cs.winner(
    cube, ["auc", "balanced_accuracy", "sensitivity", "specificity"], by="auc", adjust=cs.cut("youden"), rng=1
)
print(f"selected by {both.by.item()}: {both.selected.item()}, malignant above {both.threshold.item():.3f}")
print(
    both[["naive", "estimate", "conf_low", "conf_high"]]
    .to_dataframe()[["naive", "estimate", "conf_low", "conf_high"]]
    .round(3)
)

# %% [markdown]
# Everything that is learned by looking at the predictions belongs into the call. What was fixed before anybody looked
# (a threshold from the literature, an average of all models) costs nothing, and needs no correction.

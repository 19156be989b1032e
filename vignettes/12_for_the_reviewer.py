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
# # For the reviewer
#
# A score with an interval is not what a clinical journal asks for. Reviewers, and checklists such as TRIPOD+AI, want
# discrimination *and* calibration, what the model does at the threshold that will be used, whether it would help
# decisions, whether it works in subgroups, and whether there were enough patients. All of it can be read off saved
# predictions, and all of it looks too good when the same patients chose the model. Here every number is corrected by
# the same draws that correct the score.
#
# The data are 120 patients of the breast cancer data that scikit-learn carries (without the size of the nuclei, which
# makes it too easy), predicted by 133 configurations in 10-fold cross-validation.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import cvstats as cs

LARGE = False  # True: 1000 draws everywhere, a minute
TIMES = 1000 if LARGE else 200

data = load_breast_cancer(as_frame=True).frame
cube = cs.example_cube().isel(repeat=0, drop=True)
texture = data["mean texture"].iloc[cube["sample"].values]
cube = cube.assign_coords(texture=("sample", np.where(texture > texture.median(), "coarse", "fine")))

# %% [markdown]
# ## One decision, the whole table
#
# The configuration is chosen by AUC and the threshold by Youden's index. Both are one decision, made again in every
# draw, and each row says what that decision is worth.

# %%
metrics = ["auc", "brier", "sensitivity", "specificity", "ppv", "npv"]
decision = cs.winner(cube, metrics, by="auc", adjust=cs.cut("youden"), times=TIMES, rng=1)
table = cs.tidy(decision)[["metric", "estimate", "conf_low", "conf_high", "naive", "optimism"]]
print(f"selected {decision.selected.item()}, positive above {decision.threshold.item():.3f}")
print(table.round(3).to_string(index=False))
together = table.set_index("metric").loc[["sensitivity", "specificity"], "optimism"].sum()
print(f"optimism of sensitivity and specificity together: {together:+.3f}")
assert together > 0

# %% [markdown]
# The threshold buys sensitivity with specificity, so one of the two may even look worse than it is; what Youden's
# index maximised is their sum, and that looks too good.

# %% [markdown]
# ## Calibration
#
# Slope, intercept, observed over expected and the mean distance between predicted and observed risk (ICI). The first
# three have a target instead of a direction: they can be judged, but nothing should be chosen by them. A slope below
# one says that predictions are too extreme. The intervals show how little 120 patients know about it.

# %%
measures = ["calibration_slope", "calibration_intercept", "observed_expected", "ici"]
calibration = cs.winner(cube, measures, by="auc", times=TIMES, rng=1)
print(cs.tidy(calibration)[["metric", "estimate", "conf_low", "conf_high", "naive"]].round(3).to_string(index=False))

# %%
fig, ax = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
roc = cs.roc_curve(cube, times=TIMES, rng=1)
cs.plot_roc(roc, ax=ax[0])
cs.plot_calibration(cs.calibration_curve(cube, by="auc", times=TIMES, rng=1), ax=ax[1])
plt.show()

# %% [markdown]
# *Figure 1. ROC curve (left) and calibration (right) of the winner: solid as corrected with pointwise 95 % limits,
# dashed as it looks on the patients that chose it.*

# %% [markdown]
# ## Would it help?
#
# Net benefit counts true positives against false positives at the exchange rate that a threshold implies. A model is
# useful where it lies above both treating everybody and treating nobody.

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
benefit = cs.decision_curve(cube, by="auc", times=TIMES, rng=1)
cs.plot_decision(benefit, ax=ax)
plt.show()

# %% [markdown]
# *Figure 2. Decision curve of the winner, beside treating all and treating none.*

# %%
useful = benefit["estimate"] > np.maximum(benefit["treat_all"], 0)
low, high = benefit["threshold"].values[useful.values][[0, -1]]
print(f"better than either default between thresholds {low:.2f} and {high:.2f}")

# %% [markdown]
# ## Does it work for everybody?
#
# The decision is made on all patients and judged within each group. With 60 patients in each, a difference must be
# large to be seen: the interval says how large it could be.

# %%
groups = cs.winner(cube, ["auc"], subgroup="texture", times=TIMES, rng=1).sel(metric="auc")
columns = ["texture", "n_samples", "n_events", "estimate", "conf_low", "conf_high", "difference", "p_value"]
print(cs.tidy(groups)[columns].round(3).to_string(index=False))
fig, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
cs.plot_forest(groups, ax=ax)
plt.show()

# %% [markdown]
# *Figure 3. AUC of the winner among patients with fine and coarse texture of the nuclei, with 95 % intervals.*

# %% [markdown]
# ## Were there enough patients?
#
# `precision_plan` treats the study as a pilot: how wide would the interval be, and how surely would the same
# configuration win, with other numbers of patients? Models are taken as they are, although more patients would also
# train better ones. With `repeats=[1, 5, 20]` it says the same of more repeats of cross-validation.

# %%
plan = cs.precision_plan(cube, "auc", n=[60, 120, 240, 480, 960], rng=1)
print(plan[["width", "win_rate", "regret"]].to_dataframe()[["width", "win_rate", "regret"]].round(3).to_string())
fig, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
ax.plot(plan["n_samples"], plan["width"], "o-", color="#0072b2")
ax.set(xscale="log", xlabel="patients", ylabel="width of the 95 % interval of AUC", ylim=(0, None))
ax.set_xticks(plan["n_samples"].values, plan["n_samples"].values.astype(str))
ax.minorticks_off()
plt.show()

# %% [markdown]
# *Figure 4. What more patients would buy.*

# %% [markdown]
# ## The checklist
#
# `report_text` writes the methods paragraph, with the formula and the constants of the interval, and on request the
# items of TRIPOD+AI: answered where the predictions can answer, left to the authors where they cannot. The HTML
# report holds the same.

# %%
text = cs.report_text(cube, "auc", times=TIMES, preprocessing="inside", checklist=True)
items = pd.Series(text.split("\n\n")[2:-1])
answered = items[~items.str.contains("For the authors")]
print(f"{len(answered)} of {len(items)} items are answered; for example:")
print("\n".join(answered.iloc[[0, 3, -1]]))

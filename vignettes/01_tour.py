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
# # From saved predictions to an honest number
#
# You tuned many configurations by cross-validation and kept every out-of-sample prediction. Now somebody asks: *how
# good is the one you picked?* The number that won the tuning is not the answer. It won partly because it is good and
# partly because it was lucky on these very samples, and nobody can see which part is which by looking at it.
#
# This five-minute tour goes from a file of predictions to a report. No model is trained here: the predictions are all
# that is needed.

# %%
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import cvstats as cs

TIMES = 1000  # bootstrap draws; more makes the last digit steadier

# %% [markdown]
# ## The file
#
# The bundled example asks whether a breast tumour is malignant, from the texture, smoothness, symmetry and fractal
# dimension of its cell nuclei. There are 120 patients, 133 configurations of 14 kinds of models, and five repeats of
# stratified 10-fold cross-validation. We write it as a CSV first, because that is what you probably have.

# %%
folder = Path(tempfile.mkdtemp())
cs.write_cube(cs.example_cube(), folder / "predictions.csv.gz")
table = pd.read_csv(folder / "predictions.csv.gz")
print(table[["sample", "configuration", "repeat", "fold", "label", "prediction"]].head(4).to_string(index=False))
print(f"\n{len(table)} rows")

# %% [markdown]
# One row says: in this repeat, *this* configuration, trained without *this* fold, gave *this* sample *this*
# probability. `read_predictions` knows this layout and those of caret, tidymodels, mlr3, scikit-learn, mljar, Weka, H2O
# and others. It must be told which of the two words is the positive class; it does not guess.

# %%
cube = cs.read_predictions(folder / "predictions.csv.gz", positive="malignant")
found = cs.load_report(cube)
for name in ("layout", "rows", "samples", "configurations", "repeats", "folds", "kind", "missing_cells"):
    print(f"{name:15} {found[name]}")

# %% [markdown]
# Your columns probably have other names. Where only one reading is possible they are read, and the load report says
# which column was read as what; where several are, the error lists them and you choose:
# `columns={"label": "y_true"}`, on the command line `--columns label=y_true`.

# %%
names = {"sample": "Patient_ID", "configuration": "model", "repeat": "rep", "label": "y_true", "prediction": "y_proba"}
mine = table.rename(columns=names)[["y_true", "model", "y_proba", "Patient_ID", "rep", "fold"]]
print(cs.load_report(cs.read_predictions(mine, positive="malignant"))["read_as"])
try:
    cs.read_predictions(mine.assign(target=mine["y_true"]), positive="malignant")
except cs.InputError as error:
    print(error)

# %% [markdown]
# What comes back is a plain `xarray.DataArray`, the *cube*: sample x configuration x repeat, with the truth and the
# folds as coordinates. Every function of the package takes it.

# %% [markdown]
# ## The number that most papers print
#
# Score every configuration, take the best, report its score. The papers call this CVT or CVM: cross-validation with
# tuning.

# %%
naive = cs.cvt(cube, "auc")
print(f"winner: {naive.selected.item()}")
print(f"AUC on the samples that chose it: {naive.estimate.item():.3f}")

# %% [markdown]
# ## The number to print instead
#
# `winner` repeats the choice many times. It draws patients with replacement, lets the drawn ones choose a
# configuration, and lets those who were *not* drawn judge the choice. Whoever judges never took part in choosing, so
# a configuration that won by luck is judged without that luck.

# %%
honest = cs.winner(cube, "auc", times=TIMES, rng=1)
print(f"estimate {honest.estimate.item():.3f}")
print(f"95 % interval {honest.conf_low.item():.3f} to {honest.conf_high.item():.3f}")
print(f"optimism of the naive number {honest.optimism.item():+.3f}")

# %% [markdown]
# `optimism` is how much better the naive number looks than the honest one. `conf_low` and `conf_high` are for the
# model you will really use: the selected configuration, refitted on all 120 patients.
#
# ## Several methods side by side
#
# `bind` stacks results. The published method, BBC, stands next to ours. Accuracy, unlike AUC, is well defined inside
# single folds, so the older correction of Tibshirani and Tibshirani (`tt`) can join for it.

# %%
accuracy = cs.bind(
    cs.cvt(cube, "accuracy"),
    cs.tt(cube, "accuracy"),
    cs.bbc(cube, "accuracy", times=TIMES, rng=1),
    winner=cs.winner(cube, "accuracy", times=TIMES, rng=1),
)
print(cs.format_table(accuracy, values=["estimate", "conf_low", "conf_high", "naive", "optimism"]))

# %% [markdown]
# For this example the truth is nearly known: 449 further patients were never touched, and every configuration,
# refitted on all 120, was tested on them.

# %%
picked = accuracy.selected.sel({"method": "winner"}).item()
truth = float(cube.test_accuracy.sel(configuration=picked))
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
cs.plot_intervals(accuracy, ax=ax, truth=truth)
print(f"accuracy of {picked!r} on 449 other patients: {truth:.3f}")

# %% [markdown]
# *Figure 1. Accuracy of the winner according to four methods. The diamond is what plain cross-validation claims; the
# dotted line is the accuracy on 449 patients who took no part.*
#
# Look where the dotted line falls and do not be disappointed or delighted. Optimism is a statement about the *average*
# study. In a single study, the luck of having drawn these 120 patients moves every estimate up or down together, by
# about the width of the interval. The correction removes the part of the error that always points the same way; the
# interval says how large the rest may be. [The second vignette](02_winners_curse.py) repeats a study many times to show
# both.

# %% [markdown]
# ## Was there a clear winner?
#
# In each bootstrap draw some configuration wins. If the same one always did, choosing would cost nothing.

# %%
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
cs.plot_win_rates(honest, top=10, ax=ax)

# %% [markdown]
# *Figure 2. How often each configuration has the best AUC over the draws. The solid bar is the one selected on all
# patients.*
#
# No configuration wins most of the time. The name of the winner is therefore a weak finding, much weaker than the
# performance attached to it. `best_set` lists everything that the data cannot tell from the best.

# %%
best = cs.best_set(cube, "auc", rng=1)
inside = best.in_set.values
print(f"{inside.sum()} of {len(inside)} configurations cannot be told from the best")
families = pd.crosstab(cube.family.values, inside).rename(columns={True: "in the set", False: "out"})
print(families.rename_axis(None).rename_axis(None, axis=1).to_string())

# %% [markdown]
# ## What did trying so many cost?
#
# The curve shows what the naive and the honest number would have been, had only some of the configurations been tried
# (an average over all choices of that many).

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
cs.plot_optimism(cs.optimism_curve(cube, "auc", rng=1), ax=ax)

# %% [markdown]
# *Figure 3. Naive and honest AUC by the number of configurations tried. The gap is the price of trying.*
#
# ## The report
#
# One call writes everything above into a single HTML file that needs no network. `report_text` gives the methods
# paragraph alone. It asks one thing that predictions cannot tell: were the scalers and selectors fitted inside the
# training folds?

# %%
path = cs.report_html(cube, "auc", path=folder / "report.html", preprocessing="inside", times=TIMES)
print(path.name, f"{path.stat().st_size / 1024:.0f} kB")

# %%
paragraph = cs.report_text(cube, "auc", preprocessing="inside", times=TIMES)
print(textwrap.fill(paragraph, 100))

# %% [markdown]
# The same from a shell:
#
# ```sh
# cvstats report predictions.csv.gz --metric auc --positive malignant -o report.html
# ```
#
# ## From scikit-learn to a cube
#
# If you are still training there are two ways in. Either `collect` trains what your searches would try, all in the same
# folds, and returns the cube, with tuning values and families:

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cvstats.sklearn import collect, record

x, y = load_breast_cancer(return_X_y=True)
x, y = x[:100, 4:10], y[:100]
ridge = GridSearchCV(
    make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.01, 0.1, 1, 10]}
)
knn = GridSearchCV(
    make_pipeline(StandardScaler(), KNeighborsClassifier()), {"kneighborsclassifier__n_neighbors": [1, 5, 15]}
)
cv = StratifiedKFold(10, shuffle=True, random_state=1)
trained = collect({"ridge": ridge, "neighbours": knn}, x, y, cv=cv)
result = cs.winner(trained, "auc", rng=1)
print(
    f"{result.selected.item()}: {result.naive.item():.3f} claimed, {result.estimate.item():.3f} honest, "
    f"interval {result.conf_low.item():.3f} to {result.conf_high.item():.3f}"
)

# %% [markdown]
# Or you keep your own search and give it a scorer that writes the predictions down while it runs, in any number of
# processes, without training anything twice.

# %%
search = GridSearchCV(ridge.estimator, ridge.param_grid, scoring=record(folder / "search", "roc_auc", x, y, cv), cv=cv)
search.fit(x, y)
recorded = cs.read_cube(folder / "search")
print(dict(recorded.sizes), f"best by fold {cs.cvt(recorded, 'auc', average='fold').estimate.item():.4f}")
print(f"scikit-learn says {search.best_score_:.4f}")

# %% [markdown]
# ## What to remember
#
# - Keep every out-of-sample prediction. From scores of folds alone (`read_scores`, `bbc_folds`) less can be said.
# - The score that won is optimistic. Report `winner`'s estimate and interval, and how many configurations you tried.
# - The model you ship is the selected configuration refitted on all data. None of this changes it; it changes what you
#   may say about it.

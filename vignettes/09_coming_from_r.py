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
# # Coming from R
#
# If you tune in R you can stay there for everything but the last step: export the predictions, and read them here. This
# vignette shows the export from caret and tidymodels, the verbs you know beside ours, and how to call the package from
# an R session. Where R is installed the R code below is really run; elsewhere a table of the same layout stands in.

# %%
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import cvstats as cs

folder = Path(tempfile.mkdtemp())


def run_r(code):
    """Run R code in `folder`; return what it printed, or None when R or a package it needs is missing."""
    if shutil.which("Rscript") is None:
        return None
    environment = {**os.environ, "TZ": "UTC"}
    done = subprocess.run(["Rscript", "-e", code], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode and "there is no package called" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


# predictions that stand in for R's on machines without it: 12 configurations, 2 x 10 folds
rows = cs.example_cube().isel(configuration=slice(12), repeat=slice(2)).to_dataframe().reset_index()
rows["row"], rows["k"] = pd.factorize(rows["sample"])[0] + 1, pd.factorize(rows["configuration"])[0] * 2 + 5
rows["Class"] = np.where(rows["label"] == "malignant", "Class1", "Class2")
rows["guess"] = np.where(rows["prediction"] > 0.5, "Class1", "Class2")
fold, repeat = ("Fold" + (rows["fold"] + 1).map("{:02d}".format)), (rows["repeat"] + 1).astype(str)


# %% [markdown]
# ## From caret
#
# Two settings matter: `savePredictions = "all"` (the default keeps nothing, `"final"` keeps only the winner, which is
# useless here) and `classProbs = TRUE`. Then write `fit$pred`.

# %%
CARET = """
suppressMessages(library(caret))
set.seed(1)
data <- twoClassSim(120)
control <- trainControl("repeatedcv", number = 10, repeats = 2, classProbs = TRUE,
                        savePredictions = "all", summaryFunction = twoClassSummary)
fit <- train(Class ~ ., data, method = "knn", metric = "ROC", preProcess = c("center", "scale"),
             tuneGrid = data.frame(k = seq(5, 27, 2)), trControl = control)
write.csv(fit$pred, "caret.csv", row.names = FALSE)
cat("caret", as.character(packageVersion("caret")), "best k =", fit$bestTune$k,
    "with mean ROC", round(max(fit$results$ROC), 4))
"""
said = run_r(CARET)
if said is None:
    table = {"pred": rows.guess, "obs": rows.Class, "rowIndex": rows.row, "Class1": rows.prediction}
    table |= {"Class2": 1 - rows.prediction, "k": rows.k, "Resample": fold + ".Rep" + repeat}
    pd.DataFrame(table).to_csv(folder / "caret.csv", index=False)
print(said or "R is not here: a table of the same layout was made instead")

# %% [markdown]
# The layout is recognised by its column names, tuning values become configurations, and `Fold03.Rep2` becomes a fold
# and a repeat.

# %%
cube = cs.read_predictions(folder / "caret.csv", positive="Class1")
found = cs.load_report(cube)
print(found["layout"], dict(cube.sizes), found["read_as"])
by_fold = cs.cvt(cube, "auc", average="fold")
print(f"best by mean over folds, as caret does: {by_fold.selected.item()}, AUC {by_fold.estimate.item():.4f}")
honest = cs.winner(cube, "auc", rng=1)
low, high = honest.conf_low.item(), honest.conf_high.item()
print(f"to report: {honest.selected.item()}, AUC {honest.estimate.item():.3f} ({low:.3f} to {high:.3f})")

# %% [markdown]
# caret averages the AUC of single folds; our default pools the predictions of all folds, so the two may name different
# winners. `average="fold"` gives caret's number, as above. Columns that you added (patient, site) describe samples and
# are not taken for tuning values. Several fits go into one call: `read_predictions(["knn.csv", "rf.csv"])` names each
# configuration by its file and its tuning values. If the fits were split in different ways, pooled methods still take
# them, and those that go fold by fold say why they do not. For an `.rds` file you are told the line to type in R.
#
# ## From tidymodels
#
# Tune with `control_grid(save_pred = TRUE)`, then write `collect_predictions(tuned)` (do not summarise: that averages
# over repeats). Debian has no package of tune, so the code is shown and a table of its layout is read.
#
# ```r
# tuned <- workflow_map(workflows, resamples = vfold_cv(data, v = 10, repeats = 2, strata = Class),
#                       grid = 12, control = control_grid(save_pred = TRUE))
# readr::write_csv(collect_predictions(tuned), "tidymodels.csv")
# ```

# %%
collected = {".pred_Class1": rows.prediction, ".pred_Class2": 1 - rows.prediction, "id": "Repeat" + repeat, "id2": fold}
collected |= {"Class": rows.Class, ".row": rows.row, "neighbors": rows.k, "wflow_id": "knn"}
collected |= {".config": "Preprocessor1_Model" + ((rows.k - 3) // 2).map("{:02d}".format)}
pd.DataFrame(collected).to_csv(folder / "tidymodels.csv", index=False)
tidy = cs.read_predictions(folder / "tidymodels.csv")
print(cs.load_report(tidy)["layout"], dict(tidy.sizes), "tuning values kept:", "neighbors" in tidy.coords)
print("\n".join(cs.load_report(tidy)["notes"]))

# %% [markdown]
# The workflow and `.config` name the configuration together. The event is the first level of the outcome, as yardstick
# takes it; `positive=` says otherwise.
#
# If only `collect_metrics(tuned, summarize = FALSE)` or caret's `fit$resample` is left, `read_scores` takes that, and
# `bbc_folds` says what can be said from scores of folds.

# %% [markdown]
# ## The same verbs, the same numbers
#
# | in R | here |
# |---|---|
# | `predict` + `yardstick::roc_auc`, `pROC::auc(quiet, direction = "<")` | `cs.auc(cube)`, `cs.score(cube, "auc")` |
# | `caret::resamples`, `summary` | `cs.cv(cube, "auc", average="fold")` |
# | `tune::select_best`, `select_by_one_std_err` | `select=cs.select_best`, `cs.select_one_se` |
# | `rsample::bootstraps` | `cs.bootstrap(cube)` |
# | `broom::tidy`, `augment` | `cs.tidy(result)`, `cs.augment(cube, result)` |
# | `confint` | `cs.confint(result, level=0.9)` |
# | `t.test`, `wilcox.test(exact)` | `cs.t_test`, `cs.wilcoxon_test` |
# | `friedman.test`, `PMCMRplus::frdAllPairsNemenyiTest` | `cs.friedman_test`, `cs.nemenyi_test` |
# | `car::leveneTest`, O'Brien by hand | `cs.levene_test`, `cs.obrien_test` |
# | `mcnemar.test`, `pROC::roc.test(method = "delong")` | `cs.mcnemar_test`, `cs.delong_test` |
# | `p.adjust(p, "holm")` | `cs.p_adjust(p, "holm")` |
# | `nestedcv`, `mlr3` with a nested resampling | `cs.ncv(cube, inner=...)` |
# | `MXM::bbc` | `cs.bbc` (accuracy and AUC; MXM's F-score and concordance differ, see the caveats) |
# | `%>%` | `cube.pipe(cs.winner, "auc")` |
#
# Four of them, computed by both:

# %%
a = [10.4, 26.5, 23.3, 34.2, 23.4, 16.7, 3.1, 1.6, 11.2, 4.3]
b = [10.6, 26.9, 23.2, 34.9, 24.4, 18.0, 3.3, 1.7, 10.8, 4.9]
p = [0.01, 0.02, 0.03, 0.04]
x, z = (xr.DataArray(values, dims="dataset") for values in (a, b))
pairs = xr.concat([x, z, x + z], dim=pd.Index(["a", "b", "c"], name="learner"))
ours = {
    "t.test": cs.t_test(x, "dataset", other=z).p_value.item(),
    "wilcox.test": cs.wilcoxon_test(x, "dataset", other=z, digits=6).p_value.item(),
    "friedman.test": cs.friedman_test(pairs, "dataset", by="learner", direction="minimize").p_value.item(),
    "p.adjust": float(cs.p_adjust(p, "holm")[1]),
}
numbers = ", ".join
code = f"""
a <- c({numbers(map(str, a))}); b <- c({numbers(map(str, b))})
cat(t.test(a, b, paired = TRUE)$p.value, wilcox.test(round(a - b, 6), exact = TRUE)$p.value,
    friedman.test(cbind(a, b, a + b))$p.value, p.adjust(c({numbers(map(str, p))}), "holm")[2])
"""
said = run_r(code)
theirs = [float(word) for word in said.split()] if said else [np.nan] * 4
print(pd.DataFrame({"cvstats": ours, "R": dict(zip(ours, theirs, strict=True))}).round(6).to_string())

# %% [markdown]
# (Wilcoxon: some differences are tied. R then gives up the exact distribution and warns; ours is exact with ties.)
#
# ## From an R session
#
# With the package [reticulate](https://rstudio.github.io/reticulate/) you need not leave R. Shown here, not run:
#
# ```r
# library(reticulate)
# cs <- import("cvstats")
# cube <- cs$read_predictions(fit$pred, positive = "Class1")     # a data frame goes in as it is
# out <- cs$winner(cube, "auc", rng = 1L)
# cs$tidy(out)                                                   # a data frame comes back
# cs$report_html(cube, "auc", path = "report.html")
# ```
#
# ## Three habits to leave behind
#
# - `pROC` chooses the direction of the comparison itself, so a classifier worse than chance looks good. Here higher
#   scores always mean the positive class.
# - R takes the first level of a factor as the event in yardstick and the second in `glm`. Here you name it, except for
#   tidymodels, whose files are read as yardstick would.
# - Averaging a metric over folds hides how few samples a fold has. AUC in a fold of twelve is noisy, and a fold
#   with one class has none. Pooled scores are the default here; `describe_cube` says when pooling is dangerous.

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
# If you tune in R you can stay there. This vignette shows how caret and tidymodels save what is needed here, how to
# call the package from an R session and from a Quarto document, and the verbs you know beside ours.

# %%
from pathlib import Path

import pandas as pd
import xarray as xr

import cvstats as cs

# %% [markdown]
# ## From an R session
#
# With [reticulate](https://rstudio.github.io/reticulate/) a data frame goes in and a data frame comes back. This is the
# middle of `vignettes/09_coming_from_r.R`, which `.ci/run` runs with the packages of Debian 12 (R 4.2.2, caret 6.0.93,
# reticulate 1.28, ggplot2 3.4.1):
#
# ```r
# library(caret); library(reticulate)
# cs <- import("cvstats")
#
# control <- trainControl("repeatedcv", number = 5, repeats = 2, classProbs = TRUE,
#                         savePredictions = "all", summaryFunction = twoClassSummary)
# fit <- train(Class ~ ., data, method = "knn", metric = "ROC", preProcess = c("center", "scale"),
#              tuneGrid = data.frame(k = seq(5, 25, 4)), trControl = control)
#
# cube <- cs$read_predictions(fit$pred, positive = "Class1")
# out <- cs$winner(cube, "auc", times = 500, rng = 1)               # 500 and 1 need no L
# honest <- cs$tidy(out)                                            # a data frame
# rows <- cs$tidy(cs$best_set(cube, "auc", times = 500, rng = 1))   # one row per configuration, ready for ggplot
# cs$report_html(cube, "auc", path = "report.html")
# ```
#
# Two settings of caret matter: `savePredictions = "all"` (the default keeps nothing, `"final"` keeps only the winner,
# which is useless here) and `classProbs = TRUE`.
#
# Which Python reticulate takes is its own business: set `RETICULATE_PYTHON`, or call `use_python()` before `import()`.
# `tidy` and `augment` come back as data frames whatever the versions. Other arrays do so only where reticulate knows
# your numpy (reticulate before 1.38 does not know numpy 2): `tidy` them first, as in `cs$tidy(cs$score(cube, "auc"))`.
#
# In Quarto or R Markdown with the knitr engine it is the same code in a chunk, and numbers in the text come from it:
#
# ````markdown
# ```{r}
# #| label: honest
# cs <- reticulate::import("cvstats")
# cube <- cs$read_predictions("predictions.csv", positive = "Class1")
# honest <- cs$tidy(cs$winner(cube, "auc", rng = 1))
# ```
#
# The AUC of the tuned model is `r round(honest$estimate, 2)`
# (`r round(honest$conf_low, 2)` to `r round(honest$conf_high, 2)`).
#
# ```{r}
# #| results: asis
# cat(cs$report_text(cube, "auc", format = "markdown"))
# ```
# ````
#
# ## From a file
#
# `write.csv(fit$pred, "caret.csv", row.names = FALSE)` is all that a colleague without R needs. The layout is
# recognised by its column names, tuning values become configurations, and `Fold3.Rep2` becomes a fold and a repeat.

# %%
folder = Path("vignettes") if Path("vignettes").exists() else Path()
table = pd.read_csv(folder / "09_caret.csv")  # written by 09_coming_from_r.R
cube = cs.read_predictions(table, positive="Class1")
found = cs.load_report(cube)
print(found["layout"], dict(cube.sizes), found["read_as"])
by_fold = cs.cvt(cube, "auc", average="fold")
print(f"best by mean over folds, as caret does: {by_fold.selected.item()}, AUC {by_fold.estimate.item():.4f}")
print(cs.summary(cs.winner(cube, "auc", times=500, rng=1)))

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
# over repeats). Debian has no package of tune, so the code is shown, and the predictions above are read in its layout.
#
# ```r
# tuned <- workflow_map(workflows, resamples = vfold_cv(data, v = 5, repeats = 2, strata = Class),
#                       grid = 12, control = control_grid(save_pred = TRUE))
# readr::write_csv(collect_predictions(tuned), "tidymodels.csv")
# ```

# %%
collected = table.rename(columns={"Class1": ".pred_Class1", "Class2": ".pred_Class2", "obs": "Class", "k": "neighbors"})
collected[["id2", "id"]] = collected.pop("Resample").str.replace("Rep", "Repeat").str.split(".", expand=True)
collected[".row"], collected["wflow_id"] = collected.pop("rowIndex"), "knn"
collected[".config"] = "Preprocessor1_Model" + collected["neighbors"].rank(method="dense").astype(int).astype(str)
tuned = cs.read_predictions(collected.drop(columns="pred"))
print(cs.load_report(tuned)["layout"], dict(tuned.sizes), "tuning values kept:", "neighbors" in tuned.coords)
print("\n".join(cs.load_report(tuned)["notes"]))

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
# Four of them, beside what R 4.2.2 prints:
#
# ```r
# t.test(a, b, paired = TRUE)$p.value
# wilcox.test(round(a - b, 6), exact = TRUE)$p.value
# friedman.test(cbind(a, b, a + b))$p.value
# p.adjust(c(0.01, 0.02, 0.03, 0.04), "holm")[2]
# ```

# %%
a = xr.DataArray([10.4, 26.5, 23.3, 34.2, 23.4, 16.7, 3.1, 1.6, 11.2, 4.3], dims="dataset")
b = xr.DataArray([10.6, 26.9, 23.2, 34.9, 24.4, 18.0, 3.3, 1.7, 10.8, 4.9], dims="dataset")
three = xr.concat([a, b, a + b], dim=pd.Index(["a", "b", "a + b"], name="learner"))
ours = {
    "t.test": cs.t_test(a, "dataset", other=b).p_value.item(),
    "wilcox.test": cs.wilcoxon_test(a, "dataset", other=b, digits=6).p_value.item(),
    "friedman.test": cs.friedman_test(three, "dataset", by="learner", direction="minimize").p_value.item(),
    "p.adjust": float(cs.p_adjust([0.01, 0.02, 0.03, 0.04], "holm")[1]),
}
theirs = {"t.test": 0.03556088, "wilcox.test": 0.04109486, "friedman.test": 0.0002248673, "p.adjust": 0.06}
print(pd.DataFrame({"cvstats": ours, "R": theirs}).round(6).to_string())

# %% [markdown]
# (Wilcoxon: some differences are tied. R then gives up the exact distribution and warns; ours is exact with ties.)
#
# ## Three habits to leave behind
#
# - `pROC` chooses the direction of the comparison itself, so a classifier worse than chance looks good. Here higher
#   scores always mean the positive class.
# - R takes the first level of a factor as the event in yardstick and the second in `glm`. Here you name it, except for
#   tidymodels, whose files are read as yardstick would.
# - Averaging a metric over folds hides how few samples a fold has. AUC in a fold of twelve is noisy, and a fold
#   with one class has none. Pooled scores are the default here; `describe_cube` says when pooling is dangerous.

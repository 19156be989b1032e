# Conformance vectors of the metrics. Run: Rscript tests/conformance/metrics.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")) })
suppressPackageStartupMessages({ library(survival); library(pROC) })
set.seed(11)
cube <- function(pred, labels, kind, ...) {
  if (is.matrix(pred)) pred <- array(pred, c(dim(pred), 1))
  list(pred = pred, labels = labels, kind = kind, ...)
}
score_vector <- function(name, about, data, d, metric, average = "pooled", ...) {
  add_data(data, d)
  expected <- if (average == "pooled") pooled_scores(d, metric) else fold_scores(d, metric)
  input <- list(data = data, metric = metric, arguments = list(average = average))
  if (length(list(...))) input$metric_arguments <- list(...)
  add(name, about, "score", input, list(value = expected))
}

# --- two classes, probabilities with many ties and some exactly at one half -----------------------------------------
n <- 40
y <- rep(c(0, 1, 0, 0), 10)
p <- sapply(1:3, function(j) pmin(pmax(grid(0.5 + 0.2 * (y - 0.5) * j + 0.25 * rnorm(n), 16), 1 / 16), 15 / 16))
p[c(2, 3), 1] <- 0.5
binary <- cube(p, y, "probability", positive = 1, threshold = 0.5)
stopifnot(abs(pooled_scores(binary, "auc")[1] - as.numeric(auc(roc(y, p[, 1], levels = c(0, 1), direction = "<", quiet = TRUE)))) < 1e-12)
whole <- c(binary, list(weights = rep(c(1, 3, 2, 0, 5), 8)))
real <- c(binary, list(weights = grid(runif(n, 0.1, 4), 8)))
all_binary <- c("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "auc", "auc_ovr",
                "auc_ovr_weighted", "average_precision", "brier", "log_loss", "smoothed_error_rate", "youden", "ppv", "npv", "precision", "kappa")
for (m in all_binary) {
  score_vector(paste0(m, "_binary"), "two classes, tied probabilities, two at the threshold (strictly above is positive)", "binary", binary, m)
  score_vector(paste0(m, "_whole_weights"), "whole case weights: rows repeated so often, zero leaves a row out", "binary_whole_weights", whole, m)
  score_vector(paste0(m, "_real_weights"), "case weights that are not whole", "binary_real_weights", real, m)
}
for (set in c("binary", "binary_whole_weights", "binary_real_weights")) {
  d <- list(binary = binary, binary_whole_weights = whole, binary_real_weights = real)[[set]]
  score_vector(paste0("net_benefit_", set), "true positives gained less false positives at the odds of the risk .25", set, c(d, list(risk = 0.25)), "net_benefit", threshold = 0.25)
  score_vector(paste0("prior_error_", set), "class errors weighted by P(Y = 0) = 0.9", set, c(d, list(prior = c(0.9, 0.1))), "prior_error", prior = 0.9)
}

# --- what the labels mean --------------------------------------------------------------------------------------------
named <- binary; named$labels <- ifelse(y == 1, "case", "healthy"); named$positive <- "case"
for (m in c("auc", "sensitivity", "f1", "brier")) score_vector(paste0(m, "_named_positive"), "the positive class is the one named, here not the lexically greater label", "named_positive", named, m)
guess <- ifelse(p > 0.5, "case", "healthy")
hard <- cube(guess, named$labels, "label", positive = "case")
for (m in c("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "ppv", "kappa")) score_vector(paste0(m, "_predicted_labels"), "predicted class labels", "predicted_labels", hard, m)
signed <- cube(grid(4 * p - 2, 16), 2 * y - 1, "score", positive = 1, threshold = 0.25)
for (m in c("accuracy", "mcc", "auc", "average_precision", "smoothed_error_rate")) score_vector(paste0(m, "_scores"), "scores with a threshold; labels -1 and 1", "scores", signed, m)
downside <- cube(-p[, 3, drop = FALSE], y, "score", positive = 1, threshold = -0.5)
score_vector("auc_below_half", "a classifier worse than chance keeps its AUC below one half: no direction is guessed", "worse_than_chance", downside, "auc")

# --- degenerate cases -----------------------------------------------------------------------------------------------
small <- c(0, 0, 1, 1, 1, 0)
flat <- cube(cbind(rep(0.25, 6), rep(0.75, 6), c(0.25, 0.25, 0.75, 0.75, 0.75, 0.25)), small, "probability", positive = 1, threshold = 0.5)
for (m in c("auc", "average_precision", "mcc", "f1")) score_vector(paste0(m, "_constant_predictions"), "constant predictions: AUC one half, MCC 0/0 counts as 0", "constant_predictions", flat, m)
certain <- cube(cbind(c(0, 0, 1, 1, 1, 1), c(0, 0, 1, 1, 1, 0)), small, "probability", positive = 1, threshold = 0.5)
score_vector("log_loss_certain_and_wrong", "log loss is clipped at 2^-52: certain and wrong costs 52 log 2, certain and right nothing", "certain", certain, "log_loss")
gaps <- binary; gaps$pred[c(5, 6, 7), 2, 1] <- NaN; gaps$pred[c(1, 40), , 1] <- NaN
for (m in c("accuracy", "auc", "brier")) score_vector(paste0(m, "_missing"), "missing predictions are left out of that configuration's score", "missing", gaps, m)

# --- repeats and folds: within each repeat, then averaged -------------------------------------------------------------
twice <- binary
twice$pred <- array(c(p, pmin(pmax(grid(p + 0.2 * rnorm(length(p)), 16), 1 / 16), 15 / 16)), c(n, 3, 2))
twice$folds <- cbind(rep(0:3, each = 10), rep(0:3, 10)[c(1:4, 6:40, 5)])
for (m in c("accuracy", "auc", "f1", "brier")) {
  score_vector(paste0(m, "_repeats"), "computed within each repeat, then averaged", "repeats", twice, m)
}
for (m in c("accuracy", "auc", "brier", "balanced_accuracy")) {
  score_vector(paste0(m, "_folds"), "mean over repeats and folds of the score within the fold", "repeats", twice, m, average = "fold")
}

# --- three classes ---------------------------------------------------------------------------------------------------
k <- rep(c("a", "b", "c", "a", "b", "a"), 6); n3 <- length(k)
prob <- array(0, c(n3, 2, 3))
for (j in 1:2) for (i in 1:n3) repeat {
  v <- sample(1:12, 3); v[match(k[i], c("a", "b", "c"))] <- v[match(k[i], c("a", "b", "c"))] + 4 * j
  v <- c(round(32 * v[1:2] / sum(v)) / 32); v <- c(v, 1 - sum(v))
  if (all(v > 0) && sum(v == max(v)) == 1) { prob[i, j, ] <- v; break }
}
many <- list(prob = prob, labels = k, kind = "probability", classes = c("a", "b", "c"))
heavy <- c(many, list(weights = rep(c(2, 1, 3), 12)))
for (m in c("accuracy", "error_rate", "balanced_accuracy", "f1", "mcc", "auc", "auc_ovr", "auc_ovr_weighted", "average_precision", "brier", "log_loss", "precision", "kappa")) {
  score_vector(paste0(m, "_three_classes"), "three classes: F1 macro, MCC Gorodkin's R_K, AUC Hand and Till, Brier summed over classes", "three_classes", many, m)
  score_vector(paste0(m, "_three_classes_weighted"), "three classes with case weights", "three_classes_weighted", heavy, m)
}
score_vector("prior_error_three_classes", "class errors weighted by .5, .3, .2", "three_classes", c(many, list(prior = c(0.5, 0.3, 0.2))), "prior_error", prior = list(a = 0.5, b = 0.3, c = 0.2))
colnames_prob <- prob[, 1, ]; colnames(colnames_prob) <- c("a", "b", "c")
stopifnot(abs(pooled_scores(many, "auc")[1] - as.numeric(multiclass.roc(factor(k), colnames_prob)$auc)) < 1e-12)

# --- numbers ---------------------------------------------------------------------------------------------------------
z <- grid(rnorm(25, 3, 2), 32); q <- sapply(1:3, function(j) grid(z + rnorm(25, 0, j / 2), 32))
numbers <- cube(q, z, "value"); weighted <- c(numbers, list(weights = grid(runif(25, 0.1, 5), 8)))
away <- cube(q + 2^30, z + 2^30, "value")                 # the same numbers far from zero: nothing may change
for (m in c("mse", "rmse", "mae", "r2")) {
  score_vector(paste0(m, "_numbers"), "regression", "numbers", numbers, m)
  score_vector(paste0(m, "_numbers_weighted"), "regression with case weights", "numbers_weighted", weighted, m)
  add_data("numbers_far", away)
  add(paste0(m, "_numbers_far"), "regression, everything shifted by 2^30: the values of the unshifted data", "score",
      list(data = "numbers_far", metric = m, arguments = list(average = "pooled")), list(value = pooled_scores(numbers, m)))
}
constant <- cube(q[1:5, ], rep(2, 5), "value")
score_vector("r2_constant_labels", "R2 is undefined when the labels do not vary", "constant_labels", constant, "r2")

# --- survival --------------------------------------------------------------------------------------------------------
time <- round(rexp(30, 0.1)) + 1; event <- rep(c(1, 1, 0), 10)
risk <- sapply(1:2, function(j) grid(-time / 10 + rnorm(30), 2))
for (case in c("risk", "time", "weighted")) {
  d <- cube(if (case == "time") -risk else risk, time, if (case == "time") "value" else "score", event = event)
  w <- rep(1, 30)
  if (case == "weighted") { w <- rep(c(1, 2.5, 4), 10); d$weights <- w }
  stopifnot(abs(pooled_scores(d, "concordance")[1] - concordance(Surv(time, event) ~ risk[, 1], reverse = TRUE, weights = w)$concordance) < 1e-12)
  score_vector(paste0("concordance_", case), "Harrell's concordance with tied times and predictions", paste0("survival_", case), d, "concordance")
}
write_vectors("metrics.json", "Metrics: one value per configuration.", c("survival", "pROC"))

# Conformance vectors of what clinical readers ask: calibration, likelihood ratios, points and parts of the ROC curve, recall,
# and metrics with a target, which may be judged but never choose. Run: Rscript tests/conformance/clinical.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
suppressPackageStartupMessages({ library(pROC); library(rms) })
set.seed(20)
both_ends <- function(p, step) pmin(pmax(grid(p, step), 1 / step), 1 - 1 / step)
score_vectors <- function(label, about, set, d, metrics, average = "pooled", tolerance = 1e-10) {
  add_data(set, d)
  for (m in metrics) add(gsub("[^a-z0-9_]+", "_", paste(sub(")", "", m), label, sep = "_")), about, "score", list(data = set, metric = written(m), arguments = list(average = average)),
                         list(value = if (average == "pooled") pooled_scores(d, m) else fold_scores(d, m)), tolerance = tolerance)
}

# --- one value per configuration --------------------------------------------------------------------------------------------
n <- 60; y <- rep(c(0, 1, 0, 0, 1), 12)
p <- sapply(1:3, function(j) both_ends(0.45 + 0.15 * (2 * y - 1) * j / 2 + 0.2 * rnorm(n), 16)); p[c(2, 3), 1] <- 0.5
binary <- list(pred = as3(p), labels = y, kind = "probability", positive = 1, threshold = 0.5)
calibration <- c("calibration_slope", "calibration_intercept", "observed_expected")
points <- c("partial_auc(low = 0, high = 1)", "partial_auc(low = 0, high = 0.25)", "partial_auc(low = 0.125, high = 0.5)", "partial_auc(low = 0.5, high = 1)",
            "sensitivity_at(specificity = 0.75)", "sensitivity_at(specificity = 1)", "sensitivity_at(specificity = 0)", "sensitivity_at(specificity = 0.9)",
            "specificity_at(sensitivity = 0.75)", "specificity_at(sensitivity = 1)", "specificity_at(sensitivity = 0)", "specificity_at(sensitivity = 0.9)")
ratios <- c("recall", "positive_likelihood_ratio", "negative_likelihood_ratio")
every <- c(calibration, "ici", points, ratios)
for (j in 1:3) {                                          # other software on the same numbers
  curve <- roc(y, p[, j], levels = c(0, 1), direction = "<", quiet = TRUE); of <- function(m) pooled_score(binary, m, j)
  same <- function(a, b) stopifnot(abs(a - b) < 1e-10)
  for (s in c(0.75, 0.9, 0)) { same(of(paste0("sensitivity_at(specificity = ", s, ")")), max(coords(curve, s, "specificity", "sensitivity")))
                               same(of(paste0("specificity_at(sensitivity = ", s, ")")), max(coords(curve, s, "sensitivity", "specificity"))) }
  for (r in list(c(0, 0.25), c(0.125, 0.5), c(0.5, 1))) same(of(sprintf("partial_auc(low = %g, high = %g)", r[1], r[2])), as.numeric(auc(curve, partial.auc = 1 - r, partial.auc.focus = "specificity")))
  same(of("partial_auc(low = 0, high = 1)"), of("auc")); same(of("sensitivity_at(specificity = 1)"), mean(p[y == 1, j] > max(p[y == 0, j])))
  fit <- lowess(p[, j], y, iter = 0); same(of("ici"), mean(abs(approx(fit, xout = p[, j], ties = mean)$y - p[, j])))    # rms::val.prob's Eavg (no two predictions are nearer than its delta)
  stopifnot(abs(of("ici") - val.prob(p[, j], y, pl = FALSE)[["Eavg"]]) < 1e-10, abs(of("calibration_slope") - val.prob(p[, j], y, pl = FALSE)[["Slope"]]) < 1e-4, abs(of("calibration_intercept") - uniroot(function(a) sum(y - plogis(a + qlogis(p[, j]))), c(-5, 5), tol = 1e-13)$root) < 1e-10)
}
score_vectors("binary", "two classes, tied probabilities, two at the threshold", "binary", binary, every)
whole <- c(binary, list(weights = rep(c(1, 3, 2, 0, 5), 12))); real <- c(binary, list(weights = grid(runif(n, 0.1, 4), 8)))
score_vectors("whole_weights", "whole case weights: rows repeated so often, zero leaves a row out", "whole_weights", whole, every)
score_vectors("real_weights", "case weights that are not whole", "real_weights", real, setdiff(every, "ici"))
rows <- rep(seq_len(n), whole$weights); repeated <- binary; repeated$pred <- binary$pred[rows, , , drop = FALSE]; repeated$labels <- y[rows]
for (m in every) stopifnot(abs(pooled_scores(repeated, m) - pooled_scores(whole, m)) < 1e-9)
gaps <- binary; gaps$pred[c(5, 6, 7), 2, 1] <- NaN; gaps$pred[c(1, 40), , 1] <- NaN
score_vectors("missing", "missing predictions are left out of that configuration's score", "missing", gaps, every)
twice <- binary; twice$pred <- array(c(p, both_ends(p + 0.2 * rnorm(length(p)), 16)), c(n, 3, 2)); twice$folds <- cbind(rep(0:2, each = 20), rep(0:2, 20))
score_vectors("repeats", "computed within each repeat, then averaged", "repeats", twice, every)
score_vectors("folds", "mean over repeats and folds of the score within the fold", "repeats", twice, c("observed_expected", "partial_auc(low = 0, high = 0.25)", "sensitivity_at(specificity = 0.75)", "recall"), average = "fold")
named <- binary; named$labels <- ifelse(y == 1, "case", "healthy"); named$positive <- "case"
score_vectors("named_positive", "the positive class is the one named, here not the lexically greater label", "named_positive", named, c(calibration, "partial_auc(low = 0, high = 0.25)", "sensitivity_at(specificity = 0.9)", "recall", "positive_likelihood_ratio"))
swapped <- named; swapped$pred <- 1 - named$pred; swapped$positive <- "healthy"
for (m in c("calibration_slope", "auc")) stopifnot(abs(pooled_scores(swapped, m) - pooled_scores(named, m)) < 1e-10)
score_vectors("other_positive", "the other class is positive and probabilities are 1 - p: the slope stays, the intercept turns round", "other_positive", swapped, c(calibration, ratios))
stopifnot(abs(pooled_scores(swapped, "calibration_intercept") + pooled_scores(named, "calibration_intercept")) < 1e-10)
signed <- list(pred = as3(grid(4 * p - 2, 16)), labels = 2 * y - 1, kind = "score", positive = 1, threshold = 0.25)
score_vectors("scores", "scores with a threshold; labels -1 and 1", "scores", signed, c(points, ratios))
guess <- list(pred = as3(ifelse(p > 0.5, "case", "healthy")), labels = named$labels, kind = "label", positive = "case")
score_vectors("predicted_labels", "predicted class labels", "predicted_labels", guess, ratios)
k <- rep(c("a", "b", "c", "a", "b", "a"), 6); prob <- array(0, c(36, 2, 3))
for (j in 1:2) for (i in 1:36) repeat {
  v <- sample(1:12, 3); own <- match(k[i], c("a", "b", "c")); v[own] <- v[own] + 4 * j; v <- round(32 * v[1:2] / sum(v)) / 32; v <- c(v, 1 - sum(v))
  if (all(v > 0) && sum(v == max(v)) == 1) { prob[i, j, ] <- v; break }
}
three <- list(prob = prob, labels = k, kind = "probability", classes = c("a", "b", "c"))
score_vectors("three_classes", "three classes: the mean over classes", "three_classes", three, "recall")
score_vectors("three_classes_weighted", "three classes with case weights", "three_classes_weighted", c(three, list(weights = rep(c(2, 1, 3), 12))), "recall")

# --- the edges ----------------------------------------------------------------------------------------------------------------
edge <- rep(c(0, 1), 12)
flat <- list(pred = as3(cbind(rep(0.25, 24), rep(0.75, 24), ifelse(edge == 1, 0.75, 0.25), rep(c(0.25, 0.25, 0.75, 0.75), 6))), labels = edge, kind = "probability", positive = 1, threshold = 0.5)
flat$pred[24, 3, 1] <- 0.25; flat$pred[23, 3, 1] <- 0.75  # not separated: one wrong on each side
score_vectors("constant_predictions", "constant predictions have no slope; nobody or everybody called positive", "constant_predictions", flat, every)
apart <- flat; apart$pred <- as3(cbind(ifelse(edge == 1, 0.75, 0.25), ifelse(edge == 1, 0.25, 0.75), c(rep(c(0.25, 0.5), 6), rep(c(0.5, 0.75), 6))))
score_vectors("separated", "separated classes, the second the wrong way round, the third but for a tie: no finite slope", "separated", apart, c(calibration, points, ratios))
certain <- flat; certain$pred <- as3(cbind(c(0, 1, 1, 0, rep(c(0.25, 0.75), 10)), c(0, 1, rep(c(0.25, 0.5, 0.5, 0.75), 5), 0.5, 0.25)))
score_vectors("certain", "probabilities of 0 and 1 are moved to 2^-52 from the end before the logit", "certain", certain, calibration, tolerance = 1e-8)
score_vectors("certain", "probabilities of 0 and 1", "certain", certain, "ici")
# --- judged, never choosing: median over draws, distance from the target -----------------------------------------------------------
n <- 84; y <- rep(c(0, 1), 42)
near <- function(C, R, step = 4096) array(sapply(seq_len(C * R), function(i) both_ends(plogis(0.4 + 0.7 * (2 * y - 1) + 1.3 * rnorm(n)), step)), c(n, C, R))
fine <- list(pred = near(4, 1), labels = y, kind = "probability", positive = 1, threshold = 0.5, folds = matrix(rep(rep(0:3, each = 2), length.out = 84), ncol = 1))
fine3 <- fine; fine3$pred <- near(3, 2); fine3$folds <- cbind(fine$folds[, 1], fine$folds[84:1, 1])
heavy <- c(fine, list(weights = grid(runif(n, 0.5, 3), 8)))
sets <- list(fine = fine, fine_repeats = fine3, heavy = heavy); for (name in names(sets)) add_data(name, sets[[name]])
draws <- some_draws(n, 60); enough <- apply(draws, 1, function(w) sum(y[w == 0]) >= 12 && sum(1 - y[w == 0]) >= 12); draws <- draws[enough, ][1:31, ]; draw_sets$thirty <- draws; draw_sets$even <- draws[1:30, ]
targets <- function(label, about, set, metrics, by, o, given = "thirty") {
  d <- sets[[set]]; found <- bbc_of(d, by, metrics, draw_sets[[given]], o)
  vector(paste0("bbc_", label), paste0(about, "; median over draws"), "bbc", set, metrics, by, o, found, draws = given, tolerance = 1e-9)
  o$tied_ok <- FALSE
  vector(paste0("winner_", label), paste0(about, "; naive + median of the differences"), "winner", set, metrics, by, o, anchored_of(d, by, metrics, draw_sets[[given]], o)[c("naive", "win_rate", "selected", "estimate", "bbc_plain", "optimism")],
         draws = given, tolerance = 1e-9, arguments = list(rng = 1))
}
targets("target_slope", "chosen by Brier score, judged by the slope", "fine", "calibration_slope", "brier", opts())
targets("target_even", "an even number of draws: the median is the mean of the two in the middle", "fine", "calibration_slope", "brier", opts(), "even")
targets("target_list", "metrics with a direction have the mean over draws, those with a target the median", "fine", c("auc", "calibration_slope", "calibration_intercept", "observed_expected", "log_loss"), "auc", opts())
targets("target_weighted", "case weights count", "heavy", c("brier", calibration), "brier", opts())
targets("target_ici", "a loss: the mean over draws", "fine", c("brier", "ici"), "brier", opts())
targets("target_fold", "chosen by fold, judged pooled", "fine", c("brier", "observed_expected"), "brier", opts(average = "fold"))
targets("target_intercept_moved", "the intercept is moved first: naive intercept 0, observed / expected 1", "fine", c("brier", calibration), "brier", opts(recalibrate("intercept")))
targets("target_recalibrated", "recalibrated first: naive slope 1, intercept 0; what is left is the optimism of recalibration", "fine", c("brier", calibration), "brier", opts(recalibrate("logistic")))
targets("target_cut", "a threshold does not touch calibration", "fine", c("balanced_accuracy", "calibration_slope"), "auc", opts(cut(criterion = "youden")))
cross <- function(d, by, metrics, draws, o) {             # one repeat decides in the bag, the others judge out of it: mean or median over draws and repeats
  final <- decide(d, by, case_weights(d), o); R <- r_of(d); naive <- unname(sapply(metrics, function(m) judged(final, m, case_weights(d)))); gain <- NULL
  for (b in seq_len(nrow(draws))) for (r in seq_len(R)) { made <- decide(d, by, draws[b, ], o, r); out <- as.numeric(draws[b, ] == 0); others <- setdiff(seq_len(R), r)
    gain <- cbind(gain, sapply(metrics, function(m) judged(made, m, out, others) - judged(final, m, out, others))) }
  list(naive = naive, selected = final$index - 1, estimate = unname(naive + sapply(seq_along(metrics), function(i) middle(metrics[i], gain[i, ]))))
}
m <- c("brier", "observed_expected")
targets("target_repeats", "within each repeat, then averaged; what is fitted is judged on all repeats", "fine_repeats", c("brier", calibration), "brier", opts())
vector("winner_target_cross", "across repeats: the median over draws and repeats", "winner", "fine_repeats", m, "brier", opts(), cross(fine3, "brier", m, draws, opts(tied_ok = FALSE)), draws = "thirty", tolerance = 1e-9, arguments = list(rng = 1))
for (it in list(list("points", c("auc", "partial_auc(low = 0, high = 0.25)", "sensitivity_at(specificity = 0.75)", "specificity_at(sensitivity = 0.9)"), "auc"), list("ratios", c("youden", "recall", "positive_likelihood_ratio", "negative_likelihood_ratio"), "brier")))
  vector(paste0("bbc_", it[[1]]), "mean over draws", "bbc", "fine", it[[2]], it[[3]], opts(), bbc_of(fine, it[[3]], it[[2]], draws, opts()), draws = "thirty")
vector("bbc_by_partial_auc", "chosen by a part of the area", "bbc", "fine", "partial_auc(low = 0, high = 0.25)", "partial_auc(low = 0, high = 0.25)", opts(), bbc_of(fine, "partial_auc(low = 0, high = 0.25)", "partial_auc(low = 0, high = 0.25)", draws, opts()), draws = "thirty")

# --- fewer than ten events (for slope and intercept: or others) among the samples: neither estimate nor limits nor naive -------------------
rare <- function(events, label, undefined, C = 2, m = c("auc", calibration)) {
  size <- 48; truth <- as.numeric(seq_len(size) <= events); d <- list(pred = array(both_ends(0.45 + 0.08 * (2 * truth - 1) + 0.2 * rnorm(size * C), 4096), c(size, C, 1)), labels = truth, kind = "probability", positive = 1, threshold = 0.5)
  usable <- function(w) !inherits(try({ made <- decide(d, "auc", w, opts(tied_ok = FALSE)); stopifnot(!is.nan(sapply(m, function(k) c(judged(made, k, as.numeric(w == 0)), judged(decide(d, "auc", rep(1, size), opts()), k, as.numeric(w == 0)))))) }, silent = TRUE), "try-error")
  kept <- NULL; while (is.null(kept) || nrow(kept) < 15) { w <- tabulate(sample(size, size, TRUE), size); if (sum(truth[w == 0]) > 2 && sum(1 - truth[w == 0]) > 2 && usable(w)) kept <- rbind(kept, w) }
  set <- paste0("events_", label); add_data(set, d); draw_sets[[set]] <<- unname(kept); blank <- function(x) lapply(x, function(v) if (length(v) == length(m)) replace(v, m %in% undefined, NaN) else v)
  vector(paste0("bbc_", set), "too few events or others: NaN for metrics with a target, the rest as ever", "bbc", set, m, "auc", opts(), blank(bbc_of(d, "auc", m, draw_sets[[set]], opts()))[c("estimate", "naive", "conf_low", "conf_high", "optimism")], draws = set, tolerance = 1e-9)
  vector(paste0("winner_", set), "too few events or others: NaN for metrics with a target, the rest as ever", "winner", set, m, "auc", opts(), blank(anchored_of(d, "auc", m, draw_sets[[set]], opts()))[c("estimate", "naive", "optimism")], draws = set, tolerance = 1e-9, arguments = list(rng = 1))
}
rare(9, "nine", calibration); rare(10, "ten", c()); rare(39, "nine_others", c("calibration_slope", "calibration_intercept")); rare(38, "ten_others", c())

# --- one configuration fixed in advance: Wilson's interval of a proportion, of those it is a proportion of ------------------------------
one <- binary; one$pred <- binary$pred[, 3, , drop = FALSE]; add_data("one", one); q <- one$pred[, 1, 1]
of_whom <- list(sensitivity = y60 <- binary$labels == 1, recall = y60, specificity = !y60, ppv = q > 0.5, precision = q > 0.5, npv = q <= 0.5, accuracy = rep(TRUE, 60))
right <- list(sensitivity = q > 0.5, recall = q > 0.5, specificity = q <= 0.5, ppv = y60, precision = y60, npv = !y60, accuracy = (q > 0.5) == y60)
for (m in names(of_whom)) {
  x <- sum(right[[m]] & of_whom[[m]]); of <- sum(of_whom[[m]]); ends <- suppressWarnings(prop.test(x, of, correct = FALSE))$conf.int
  add(paste0("wilson_", m), "prop.test of R without correction, on the samples in the denominator", "winner", list(data = "one", metric = m, arguments = list(interval = "wilson", rng = 1)), list(estimate = x / of, conf_low = ends[1], conf_high = ends[2]))
}
write_vectors("clinical.json", "Calibration, likelihood ratios, parts of the ROC curve, and metrics with a target.", c("pROC", "rms"))

# Conformance vectors of decisions: which metric chooses, thresholds, recalibration, another class ratio, mixtures, several
# metrics of one choice, and the anchored estimate. Run: Rscript tests/conformance/decisions.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
set.seed(16)

# --- data ------------------------------------------------------------------------------------------------------------
n <- 24
y <- rep(c(0, 1, 1, 0, 1, 0), 4)
noisy <- function(C, R, sd, step = 32, signal = 0.2) array(sapply(seq_len(C * R), function(i) pmin(pmax(grid(0.5 + signal * (2 * y - 1) + sd * rnorm(n), step), 1 / step), 1 - 1 / step)), c(n, C, R))
one_fold <- matrix(rep(0:3, each = 6), ncol = 1)
prob <- list(pred = noisy(5, 1, 0.3), labels = y, kind = "probability", positive = 1, threshold = 0.5, folds = one_fold)
fine <- list(pred = noisy(5, 1, 0.3, 4096), labels = y, kind = "probability", positive = 1, threshold = 0.5, folds = one_fold)
fine3 <- list(pred = noisy(4, 3, 0.3, 4096), labels = y, kind = "probability", positive = 1, threshold = 0.5,
              folds = cbind(rep(0:3, each = 6), rep(0:3, 6), rep(c(0, 1, 3, 2), 6)[c(2:24, 1)]))
rough <- fine; rough$pred <- noisy(5, 1, 0.35, 4096, 0.08); rough3 <- fine3; rough3$pred <- noisy(4, 3, 0.35, 4096, 0.08)   # no configuration separates the classes
prob3 <- fine3; prob3$pred <- noisy(4, 3, 0.3)
weighted <- c(prob, list(weights = grid(runif(n, 0.5, 3), 8)))
score <- list(pred = array(grid(0.5 * (2 * y - 1) + rnorm(n * 4), 8), c(n, 4, 1)), labels = y, kind = "score", positive = 1, folds = one_fold)
wrong_way <- rough; wrong_way$pred <- 1 - rough$pred                             # many slopes are negative
gaps <- prob; gaps$pred[c(3, 9), 2, 1] <- NaN; gaps$pred[20, , 1] <- NaN
z <- grid(rnorm(n, 0, 2)); shared <- grid(0.6 * rnorm(n), 1024)
value <- list(pred = as3(sapply(1:6, function(j) z + shared + grid((0.6 + 0.08 * j) * rnorm(n), 1024))), labels = z, kind = "value", folds = one_fold)
value3 <- value; value3$pred <- array(z + shared + grid(0.8 * rnorm(n * 4 * 3), 1024), c(n, 4, 3)); value3$folds <- prob3$folds
uneven <- fine; uneven$folds <- matrix(rep(0:3, c(4, 8, 5, 7)), ncol = 1)
single <- prob; single$pred <- prob$pred[, 2, , drop = FALSE]
backwards <- fine; backwards$pred <- 1 - fine$pred[, 1, , drop = FALSE]
sets <- list(prob = prob, fine = fine, fine_repeats = fine3, rough = rough, rough_repeats = rough3, prob_repeats = prob3, weighted = weighted, score = score, wrong_way = wrong_way,
             gaps = gaps, value = value, value_repeats = value3, uneven = uneven, single = single, backwards = backwards)
for (name in names(sets)) add_data(name, sets[[name]])

draws <- some_draws(n, 40); draws <- draws[rowSums(draws == 0) > 0, ]
fits <- function(w) { o <- w == 0; all(table(factor(y[o], 0:1)) > 1) }
draws <- draws[apply(draws, 1, fits), ]; draw_sets$forty <- draws

keep_draws <- function(name, some) { stopifnot(nrow(some) > 15); if (nrow(some) == nrow(draws)) return("forty"); draw_sets[[name]] <<- some; name }
both <- function(label, about, set, metrics, by, o, tolerance = 1e-10, tied = TRUE) {   # bbc and winner of one decision
  d <- sets[[set]]
  vector(paste0("bbc_", label), paste0(about, "; given draws, ties to the first"), "bbc", set, metrics, by, o, bbc_of(d, by, metrics, draws, o), tolerance = tolerance)
  if (!tied) { o$tied_ok <- FALSE; name <- paste0(label, "_untied"); ok <- apply(draws, 1, function(w) !inherits(try(decide(d, by, w * case_weights(d), o), silent = TRUE), "try-error"))
    name <- keep_draws(name, draws[ok, ])
    vector(paste0("winner_", label), paste0(about, "; anchored; draws without ties; V = 1.3 v + V_s"), "winner", set, metrics, by, o, anchored_of(d, by, metrics, draw_sets[[name]], o), draws = name, tolerance = tolerance,
           calibrated = list(kappa = 1.3, psi = 1, safe_upper = FALSE), arguments = list(rng = 1)) }
}

# --- several metrics of one decision ----------------------------------------------------------------------------------------
both("list_auc", "chosen by AUC, judged by five metrics", "fine", c("auc", "brier", "sensitivity", "accuracy", "log_loss"), "auc", opts(), tied = FALSE)
both("list_by_brier", "the metric that chooses is not among those that judge", "fine", c("accuracy", "auc", "log_loss"), "brier", opts(), tied = FALSE)
both("list_value", "chosen by squared error, judged by four", "value", c("mse", "mae", "r2", "rmse"), "mse", opts(), tied = FALSE)
both("list_value_by_mae", "chosen by absolute error, judged by others", "value", c("mse", "r2", "rmse"), "mae", opts(), tied = FALSE)
both("by_single", "one metric, chosen by another", "fine", "accuracy", "log_loss", opts(), tied = FALSE)
both("list_weighted", "case weights count in choosing and judging", "weighted", c("brier", "accuracy"), "brier", opts(), tied = FALSE)
both("list_gaps", "a configuration with missing predictions cannot be chosen", "gaps", c("brier", "accuracy"), "brier", opts(), tied = FALSE)
vector("bbc_list_of_one", "a list of one metric", "bbc", "fine", "brier", "brier", opts(), bbc_of(fine, "brier", "brier", draws, opts()), listed = TRUE)
for (it in list(list("fine", c("auc", "brier", "accuracy"), "auc", opts()), list("prob", c("accuracy", "sensitivity"), "accuracy", opts(cut(criterion = "youden"))), list("rough_repeats", c("brier", "log_loss"), "brier", opts(recalibrate("logistic"))),
                list("value", c("mse", "mae"), "mse", opts(mix = ensemble(7))))) {
  d <- sets[[it[[1]]]]; made <- decide(d, it[[3]], case_weights(d), it[[4]])
  vector(paste("cvt", it[[1]], paste(it[[2]], collapse = "_"), sep = "_"), "the decision on all samples, judged on the samples that made it", "cvt", it[[1]], it[[2]], it[[3]], it[[4]],
         c(list(estimate = unname(sapply(it[[2]], function(m) judged(made, m, case_weights(d))))), if (is.null(it[[4]]$mix)) list(selected = made$index - 1) else list(share = made$share), made$shown), draws = NULL)
}

# --- chosen by fold: the winner that grid searches name ------------------------------------------------------------------------
for (it in list(list("fine", c("auc", "brier"), "auc"), list("uneven", c("brier", "accuracy"), "brier"), list("value", c("mse", "mae"), "mse"), list("uneven", "auc", "auc"), list("fine_repeats", "brier", "brier")))
  both(paste("fold", it[[1]], it[[3]], length(it[[2]]), sep = "_"), "every fold counts the same in choosing (folds without a class skipped) and in `naive`; judged pooled", it[[1]], it[[2]], it[[3]], opts(average = "fold"), tied = it[[1]] == "fine_repeats")

# --- thresholds -----------------------------------------------------------------------------------------------------------------
rates <- c("balanced_accuracy", "sensitivity", "specificity")
for (it in list(list("youden", cut(criterion = "youden")), list("f1", cut(criterion = "f1")), list("accuracy", cut(criterion = "accuracy")), list("mcc", cut(criterion = "mcc")), list("error_rate", cut(criterion = "error_rate")),
                list("sensitivity", cut(sensitivity = 0.75)), list("specificity", cut(specificity = 0.8)), list("cost", cut(cost = list("1" = 3, "0" = 1)))))
  for (set in c("prob", "score"))
    both(paste("cut", it[[1]], set, sep = "_"), "configuration by balanced accuracy at its own threshold; thresholds midway between scores, ties to the one nearest .5 (scores: the lower median)", set, rates, "balanced_accuracy", opts(it[[2]]))
both("cut_by_auc", "configuration by AUC, then its threshold", "fine", c("auc", "accuracy", "sensitivity", "brier"), "auc", opts(cut(criterion = "youden")), tied = FALSE)
both("cut_single", "one marker: still a decision", "single", rates, "balanced_accuracy", opts(cut(criterion = "youden")))
both("cut_repeats", "one threshold for all repeats, pooled", "prob_repeats", rates, "balanced_accuracy", opts(cut(criterion = "youden")))
both("cut_weighted", "case weights count", "weighted", rates, "balanced_accuracy", opts(cut(criterion = "f1")))
both("cut_gaps", "missing predictions are skipped", "gaps", c("accuracy", "f1"), "accuracy", opts(cut(criterion = "accuracy")))
both("cut_accuracy_alone", "a single metric", "prob", "accuracy", "accuracy", opts(cut(criterion = "accuracy")))

# --- recalibration and another class ratio -----------------------------------------------------------------------------------------
losses <- c("brier", "log_loss", "accuracy")
for (method in c("intercept", "logistic", "isotonic")) {
  both(paste0("recalibrate_", method), "every configuration recalibrated before it is scored", "rough", if (method == "isotonic") c("brier", "accuracy") else losses, "brier", opts(recalibrate(method)), tied = FALSE, tolerance = 1e-9)
  both(paste0("recalibrate_", method, "_repeats"), "one map for all repeats", "rough_repeats", c("brier", "accuracy"), "brier", opts(recalibrate(method)), tolerance = 1e-9)
}
both("recalibrate_slope_zero", "slopes below zero are zero: everybody gets the share of positives", "wrong_way", c("brier", "log_loss"), "brier", opts(recalibrate("logistic")), tolerance = 1e-9)
both("recalibrate_backwards", "a single configuration whose slope is zero in every draw", "backwards", c("brier", "log_loss"), "brier", opts(recalibrate("logistic")), tolerance = 1e-9)
both("recalibrate_by_auc", "AUC does not see a logistic map: only the winner is recalibrated", "rough", c("brier", "log_loss"), "auc", opts(recalibrate("logistic")), tied = FALSE, tolerance = 1e-9)
both("recalibrate_then_cut", "the threshold is learned from recalibrated probabilities", "rough", rates, "balanced_accuracy", opts(recalibrate("logistic"), cut(criterion = "youden")), tolerance = 1e-9)
for (from in list(NULL, 0.4)) {
  o <- opts(shift(0.2, from)); d <- c(fine, list(prior = c(0.8, 0.2))); label <- if (is.null(from)) "shift_prior" else "shift_prior_from"
  vector(paste0("bbc_", label), "probabilities for a population with 20 % positives, error at that ratio", "bbc", "fine", "prior_error", "prior_error", o, bbc_of(d, "prior_error", "prior_error", draws, o), metric_arguments = list(prior = 0.8))
}

# --- mixtures -----------------------------------------------------------------------------------------------------------------------
for (it in list(list("ensemble", ensemble(10), "value", c("mse", "mae")), list("ensemble_once", ensemble(3, replace = FALSE), "value", c("mse", "r2")), list("ensemble_start", ensemble(8, start = 2), "value", "mse"),
                list("ensemble_mae", ensemble(6), "value", c("mae", "mse")), list("ensemble_brier", ensemble(9), "fine", c("brier", "auc", "accuracy")), list("ensemble_log_loss", ensemble(5), "fine", c("log_loss", "brier")),
                list("ensemble_auc", ensemble(4), "fine", c("auc", "brier")), list("ensemble_repeats", ensemble(6), "value_repeats", c("mse", "mae")), list("top_mean", top_mean(3), "value", c("mse", "mae")), list("top_mean_auc", top_mean(2), "fine", c("auc", "brier")),
                list("ensemble_weighted", ensemble(5), "weighted", c("brier", "accuracy")), list("ensemble_gaps", ensemble(5), "gaps", c("brier", "accuracy")))) {
  d <- sets[[it[[3]]]]; o <- opts(mix = it[[2]]); m <- it[[4]]
  vector(paste0("bbc_", it[[1]]), "greedy forward selection, exactly this many steps, ties to the first; or the mean of the k best", "bbc", it[[3]], m, m[1], o, bbc_of(d, m[1], m, draws, o))
  if (r_of(d) == 1) vector(paste0("winner_", it[[1]]), "the same, anchored; V = 1.3 v + V_s", "winner", it[[3]], m, m[1], o, anchored_of(d, m[1], m, draws, o),
                           calibrated = list(kappa = 1.3, psi = 1, safe_upper = FALSE), arguments = list(rng = 1))
}
o <- opts(cut(criterion = "youden"), mix = ensemble(6))
vector("bbc_ensemble_cut", "a mixture by Brier score, then its threshold", "bbc", "fine", c("brier", rates), "brier", o, bbc_of(fine, "brier", c("brier", rates), draws, o))
o <- opts(recalibrate("logistic"), mix = top_mean(3))
vector("bbc_top_mean_recalibrated", "the mean of the three best by AUC, recalibrated", "bbc", "rough", c("brier", "log_loss"), "auc", o, bbc_of(rough, "auc", c("brier", "log_loss"), draws, o), tolerance = 1e-9)

# --- across repeats: one repeat decides in the bag, the others judge ---------------------------------------------------------------------
alone <- function(d, by, o) draws[apply(draws, 1, function(w) all(sapply(seq_len(r_of(d)), function(r) !inherits(try(decide(d, by, w, modifyList(o, list(tied_ok = FALSE)), r), silent = TRUE), "try-error")))), ]
for (it in list(list("list", "fine_repeats", c("brier", "log_loss"), opts()), list("value", "value_repeats", c("mse", "mae"), opts()), list("recalibrate", "rough_repeats", c("brier", "log_loss"), opts(recalibrate("intercept"))),
                list("ensemble", "value_repeats", c("mse", "mae"), opts(mix = ensemble(5))), list("cut", "fine_repeats", c("brier", "accuracy"), opts(cut(criterion = "accuracy"))))) {
  d <- sets[[it[[2]]]]; m <- it[[3]]; o <- it[[4]]; name <- keep_draws(paste0("cross_", it[[1]]), alone(d, m[1], o))
  vector(paste0("winner_cross_", it[[1]]), "naive + mean over draws b and repeats r of [L_br(decision of b, r) - L_br(decision on all)], L_br on the other repeats of the samples left out", "winner", it[[2]], m, m[1], o,
         cross_of(d, m[1], m, draw_sets[[name]], o), draws = name, arguments = list(rng = 1), tolerance = 1e-9)
}

# --- with inner predictions: (anchored + smoothed nested cross-validation) / 2 -------------------------------------------------------------
leader <- c(2, 4, 1, 3); best_of <- array(NaN, c(n, 6, 4))
for (k in 1:4) { train <- which(one_fold[, 1] != k - 1); for (j in 1:6) best_of[train, j, k] <- z[train] + (if (j == leader[k]) 0.25 else 0.5 + j / 4) }
inner_sets$leader <- list(predictions = best_of)
m <- c("mse", "mae"); x <- anchored_of(value, "mse", m, draws, opts()); held <- value$pred[cbind(seq_len(n), leader[one_fold[, 1] + 1], 1)] - z
vector("winner_nested_list", "every draw of a training set chooses the same: the mean of the anchored estimate and of nested cross-validation, pooled", "winner", "value", m, "mse", opts(),
       list(estimate = (x$estimate + c(mean(held^2), mean(abs(held)))) / 2, bbc_plain = x$bbc_plain, naive = x$naive, selected = x$selected), inner = "leader", arguments = list(rng = 1))

# --- what is kept, and percentile limits shifted by estimate - bbc_plain ----------------------------------------------------------------------
for (it in list(list("plain", "fine", "brier", opts()), list("cut", "single", "balanced_accuracy", opts(cut(criterion = "youden"))))) {
  d <- sets[[it[[2]]]]; m <- it[[3]]; o <- it[[4]]; name <- keep_draws(paste0("kept_", it[[1]]), alone(d, m, o)); run <- run_all(d, m, m, draw_sets[[name]], o)
  estimate <- run$naive + mean(run$value - run$anchor); q <- function(p) unname(quantile(run$value, p, type = 7)) + estimate - mean(run$value)
  vector(paste0("winner_kept_", it[[1]]), "draws kept: the plain value and the anchor; percentile limits moved with the estimate", "winner", it[[2]], m, m, o,
         list(estimate = estimate, bbc_plain = mean(run$value), draw_estimate = as.vector(run$value), draw_anchor = as.vector(run$anchor), conf_low = q(0.025), conf_high = q(0.975), bound_low = q(0.05), bound_high = q(0.95)),
         draws = name, arguments = list(rng = 1, keep_draws = TRUE, interval = "percentile"))
}

# --- within the levels of a subgroup: decided on everybody, judged on those of the level who were left out --------------------------------------
levels_of <- rep(c("a", "b"), each = 12); stopifnot(table(levels_of, y) > 4)
site <- fine; add_data("site", fine); data_sets$site$coordinates <- list(site = levels_of)
by_level <- function(d, by, metrics, o, anchored) {
  final <- decide(d, by, case_weights(d), o); at <- function(made, m, some) if (sum(some) == 0) NaN else judged(made, m, some)
  run <- lapply(seq_len(nrow(draws)), function(b) decide(d, by, draws[b, ], o))
  cell <- function(m, inside) {
    naive <- judged(final, m, as.numeric(inside)); out <- lapply(seq_len(nrow(draws)), function(b) (draws[b, ] == 0) * inside)
    value <- sapply(seq_along(run), function(b) at(run[[b]], m, out[[b]])); anchor <- sapply(seq_along(run), function(b) at(final, m, out[[b]])); ok <- !is.nan(value)
    c(if (anchored) clip(naive + mean((value - anchor)[ok]), m) else mean(value[ok]), naive, mean(value[ok]), sum(ok))
  }
  table <- lapply(1:4, function(i) t(sapply(metrics, function(m) sapply(c("a", "b"), function(l) cell(m, levels_of == l)[i]))))
  c(list(estimate = unname(table[[1]]), naive = unname(table[[2]]), difference = unname(table[[1]] - table[[1]][, 2:1]), n_samples = c(12, 12), n_events = unname(c(sum(y[levels_of == "a"]), sum(y[levels_of == "b"])))),
    if (anchored) list(bbc_plain = unname(table[[3]])) else list(n_draws = unname(table[[4]])), list(selected = final$index - 1), final$shown)
}
for (it in list(list("plain", c("brier", "accuracy"), "brier", opts()), list("cut", c("accuracy", "brier"), "brier", opts(cut(criterion = "youden"))))) for (fun in c("bbc", "winner"))
  vector(paste("subgroup", it[[1]], fun, sep = "_"), "metric x level; the difference is that of the level from all others", fun, "site", it[[2]], it[[3]], it[[4]], by_level(site, it[[3]], it[[2]], it[[4]], fun == "winner"),
         arguments = list(subgroup = "site", rng = 1))

# --- is the ensemble worth it? Both sides anchored on the same draws; squared standard error 2.25 v + V_s --------------------------------------------
for (it in list(list("value", "mse", opts(mix = ensemble(8)), opts()), list("fine", "brier", opts(mix = top_mean(3)), opts()), list("value", "mae", opts(mix = ensemble(5)), opts(mix = top_mean(2))))) {
  d <- sets[[it[[1]]]]; m <- it[[2]]; one <- run_all(d, m, m, draws, it[[3]]); two <- run_all(d, m, m, draws, modifyList(it[[4]], list(tied_ok = FALSE)))
  side <- function(run) run$naive + mean(run$value - run$anchor); se <- sqrt(2.25 * var(as.vector(one$kept - two$kept)) + var(as.vector(one$whole - two$whole))); gap <- side(one) - side(two); t <- qt(0.975, n - 1)
  second <- if (is.null(it[[4]]$mix)) list(select_best = none) else it[[4]]$mix$json
  add(paste("contrast_mixture", it[[1]], m, sep = "_"), "a mixture against the best or another mixture, a - b", "contrast", list(data = it[[1]], metric = m, draws = "forty", strategies = list(a = it[[3]]$mix$json, b = second), arguments = list(rng = 1)),
      c(list(estimate = gap, estimate_a = side(one), estimate_b = side(two), naive = one$naive - two$naive, std_error = se, conf_low = gap - t * se, conf_high = gap + t * se, share_a = one$final$share), if (!is.null(it[[4]]$mix)) list(share_b = two$final$share) else list(selected_b = two$final$index - 1)))
}

# --- the kernel -----------------------------------------------------------------------------------------------------------------------------------
chooser <- draws[1:12, ]
for (it in list(list("cut", "prob", c("balanced_accuracy", "sensitivity"), opts(cut(criterion = "youden"))), list("list", "fine", c("auc", "brier"), opts()), list("ensemble", "value", c("mse", "mae"), opts(mix = ensemble(5))))) {
  d <- sets[[it[[2]]]]; m <- it[[3]]; run <- run_all(d, m[1], m, chooser, it[[4]])
  vector(paste0("select_and_judge_", it[[1]]), "decided by weights that choose, judged on the samples left out", "select_and_judge", it[[2]], m, m[1], it[[4]], list(value = run$value, win_rate = run$share), draws = NULL,
         arguments = list(ties = "first"), array_arguments = list(choose = list(values = chooser, dims = c("draw", "sample"))))
}
write_vectors("decisions.json", "Decisions: everything that is chosen by looking at the predictions.")

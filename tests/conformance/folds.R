# Conformance vectors of folds: those in which a metric is undefined are skipped when asked; a criterion computed elsewhere
# chooses in nested cross-validation; scores of folds alone. Run: Rscript tests/conformance/folds.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
set.seed(24)

# --- folds that lack a class --------------------------------------------------------------------------------------------------------
n <- 30; y <- c(rep(0, 18), rep(1, 12)); close <- function(C, R, step = 64) array(pmin(pmax(grid(0.5 + 0.12 * (2 * y - 1) + 0.25 * rnorm(n * C * R), step), 1 / step), 1 - 1 / step), c(n, C, R))
base <- list(labels = y, kind = "probability", positive = 1, threshold = 0.5)
split_of <- function(...) { at <- list(...); f <- rep(length(at), n); for (k in seq_along(at)) f[at[[k]]] <- k - 1; f }
one <- split_of(1:6, c(7:10, 19:21), c(11:13, 22:24), 25:27)                          # the first has no positives, the fourth no others, the last both
two <- split_of(c(1:3, 19:20), c(4:6, 21:22), c(7:9, 23:24), c(10:12, 25:27))         # all have both
three <- split_of(1:4, 5:8, 9:12, 13:16)                                              # only the last has both
lacking <- c(list(pred = close(4, 1), folds = matrix(one, ncol = 1)), base); complete <- c(list(pred = close(4, 1), folds = matrix(two, ncol = 1)), base)
repeats <- c(list(pred = close(4, 2), folds = cbind(one, two)), base); three_repeats <- c(list(pred = close(3, 3), folds = cbind(two, three, one)), base); dimnames(repeats$folds) <- dimnames(three_repeats$folds) <- NULL
weighted <- c(lacking, list(weights = rep(c(1, 2, 4), 10))); single <- c(list(pred = close(3, 1), folds = matrix(three, ncol = 1)), base)
nowhere <- single; nowhere$folds <- matrix(ifelse(y == 1, 1, 0), ncol = 1)             # no fold has both
sets <- list(lacking = lacking, complete = complete, repeats = repeats, three_repeats = three_repeats, weighted = weighted, single = single, nowhere = nowhere)
for (name in names(sets)) add_data(name, sets[[name]])
usable <- function(d, metric, r) { folds <- sort(unique(d$folds[, r])); folds[sapply(folds, function(k) !is.nan(repeat_score(d, metric, 1, r, case_weights(d) * (d$folds[, r] == k))))] }
kept_table <- function(d, metric) { t <- NULL; for (r in seq_len(r_of(d))) for (k in usable(d, metric, r)) t <- cbind(t, sapply(seq_len(c_of(d)), function(j) repeat_score(d, metric, j, r, case_weights(d) * (d$folds[, r] == k)))); t }
skipping <- function(d, metric) {                         # within each repeat over the folds that are left, then over the repeats that have any
  each <- sapply(seq_len(r_of(d)), function(r) { k <- usable(d, metric, r); if (!length(k)) return(rep(NaN, c_of(d))); rowMeans(matrix(sapply(k, function(f) sapply(seq_len(c_of(d)), function(j) repeat_score(d, metric, j, r, case_weights(d) * (d$folds[, r] == f)))), nrow = c_of(d))) })
  m <- rowMeans(matrix(each, nrow = c_of(d)), na.rm = TRUE); ifelse(is.nan(m), NaN, m)
}
for (set in names(sets)) for (m in if (set %in% c("lacking", "three_repeats")) c("auc", "balanced_accuracy", "sensitivity", "specificity", "average_precision", "brier") else c("auc", "sensitivity")) {
  d <- sets[[set]]; input <- function(...) list(data = set, metric = m, arguments = list(...)); scores <- skipping(d, m); name <- paste(set, m, sep = "_")
  add(paste0("skip_score_", name), "the mean over the folds in which the metric is defined, within each repeat, then over repeats", "score", input(average = "fold", undefined = "skip"), list(value = scores))
  if (set == "lacking") add(paste0("skip_cv_", name), "the same as an estimate", "cv", input(average = "fold", undefined = "skip"), list(estimate = scores))
  if (all(is.nan(scores))) next
  best <- first_best(scores, m)
  add(paste0("skip_cvt_", name), "chosen by that mean", "cvt", input(average = "fold", undefined = "skip"), list(estimate = scores[best], selected = best - 1))
  plain <- fold_scores(d, m); add(paste0("nan_score_", name), "not asked to skip: undefined", "score", input(average = "fold"), list(value = plain))
  if (r_of(d) == 1) {
    e <- -sign_of(m) * kept_table(d, m); gain <- 0; for (k in seq_len(ncol(e))) gain <- gain + (e[best, k] - min(e[, k])) / ncol(e); naive <- -sign_of(m) * mean(e[best, ])
    add(paste0("skip_tt_", name), "both means over the folds that are left", "tt", input(undefined = "skip"), list(estimate = naive - sign_of(m) * gain, naive = naive, optimism = gain, selected = best - 1))
  }
}

# --- nested cross-validation: a criterion from elsewhere, folds skipped -----------------------------------------------------------------------
outer_values <- function(d, metric, chosen, r = 1) sapply(seq_along(chosen), function(k) repeat_score(d, metric, chosen[k], r, case_weights(d) * (d$folds[, r] == k - 1)))
for (set in c("lacking", "weighted", "single")) for (m in c("auc", "brier")) for (turned in c("minimize", "maximize")) {
  d <- sets[[set]]; K <- length(unique(d$folds[, 1])); criterion <- array(grid(rnorm(c_of(d) * K), 256), c(c_of(d), K)); chosen <- apply(if (turned == "minimize") criterion else -criterion, 2, which.min); each <- outer_values(d, m, chosen)
  add(paste("ncv_criterion", set, m, turned, sep = "_"), "the configuration with the smallest (or largest) criterion in each outer fold, judged there; folds in which the metric is undefined are skipped", "ncv",
      list(data = set, metric = m, array_arguments = list(criterion = list(values = criterion, dims = c("configuration", "outer_fold"))), arguments = list(undefined = "skip", criterion_direction = turned)),
      list(estimate = mean(each[!is.nan(each)]), fold_estimate = each, selected_fold = chosen - 1))
}
for (set in c("lacking", "complete")) {                   # inner folds that lack a class do not choose
  d <- sets[[set]]; K <- length(unique(d$folds[, 1])); C <- c_of(d); inner <- array(NaN, c(n, C, K)); inner_fold <- array(0, c(n, K)); chosen <- c()
  for (k in seq_len(K)) { train <- which(d$folds[, 1] != k - 1); inner[train, , k] <- pmin(pmax(grid(0.5 + 0.12 * (2 * y[train] - 1) + 0.25 * rnorm(length(train) * C), 64), 1 / 64), 63 / 64); inner_fold[train, k] <- rep(0:3, length.out = length(train))
    inner_fold[train[y[train] == 1], k] <- pmax(inner_fold[train[y[train] == 1], k], 1)           # the first inner fold has no positives
    part <- list(pred = as3(inner[train, , k]), labels = y[train], kind = "probability", positive = 1, threshold = 0.5, folds = matrix(inner_fold[train, k], ncol = 1)); chosen <- c(chosen, first_best(skipping(part, "auc"), "auc", tied_ok = FALSE)) }
  inner_sets[[set]] <- list(predictions = inner, folds = inner_fold); each <- outer_values(d, "auc", chosen)
  add(paste0("ncv_inner_", set), "inner folds that lack a class do not choose, outer ones do not judge", "ncv", list(data = set, metric = "auc", inner = set, arguments = list(undefined = "skip")), list(estimate = mean(each[!is.nan(each)]), fold_estimate = each, selected_fold = chosen - 1))
}

# --- scores of folds alone: all ordered draws of K folds that leave one out are equally likely ----------------------------------------------------
all_draws_of <- function(K) { a <- all_draws(K); a[rowSums(a == 0) > 0, ] }
exact <- function(s, up) {                                # s: configuration x fold; ties equally likely
  s <- if (up) s else -s; allowed <- !apply(is.na(s), 1, any); first <- second <- 0; rate <- rep(0, nrow(s)); d <- all_draws_of(ncol(s))
  for (b in seq_len(nrow(d))) { inside <- as.vector(s %*% d[b, ]); inside[!allowed] <- -Inf; best <- which(max(inside) - inside < 1e-9); left <- rowMeans(s[best, d[b, ] == 0, drop = FALSE]); first <- first + mean(left); second <- second + mean(left^2); rate[best] <- rate[best] + 1 / length(best) }
  m <- first / nrow(d); list(mean = if (up) m else -m, sd = sqrt(max(0, second / nrow(d) - m^2)), rate = rate / nrow(d))
}
times <- 4000
fold_vector <- function(name, about, s, up) {             # s: configuration x fold x repeat
  R <- dim(s)[3]; each <- lapply(seq_len(R), function(r) exact(matrix(s[, , r], nrow = dim(s)[1]), up)); flat <- if (R == 1) s[, , 1] else s; dims <- c("configuration", "fold", if (R > 1) "repeat")
  all_in <- apply(s, 1, mean); best <- which.max(ifelse(is.na(all_in), -Inf, if (up) all_in else -all_in)); estimate <- mean(sapply(each, function(e) e$mean)); se <- sqrt(sum(sapply(each, function(e) e$sd^2))) / R / sqrt(times)
  input <- function(B) list(arrays = list(x = list(values = flat, dims = dims)), arguments = list(direction = if (up) "maximize" else "minimize", times = B, rng = 1))
  add(paste0("bbc_folds_", name), paste0(about, "; the mean over all draws, tolerance five standard errors"), "bbc_folds", input(times), list(estimate = estimate, naive = all_in[best], optimism = (if (up) 1 else -1) * (all_in[best] - estimate)), tolerance = max(5 * se, 1e-12))
  if (name %in% c("tied_up", "equal_up", "missing_down")) add(paste0("bbc_folds_rates_", name), paste0(about, "; how often each wins, tolerance five standard errors"), "bbc_folds", input(times), list(win_rate = rowMeans(sapply(each, function(e) e$rate))), tolerance = 5 * sqrt(0.25 / times / R))
  add(paste0("bbc_folds_exact_", name), "the best mean score", "bbc_folds", input(50), list(naive = all_in[best], selected = best - 1, n_draws = 50 * R), tolerance = 1e-12)
}
four <- array(grid(0.7 + 0.08 * rnorm(5 * 4), 256), c(5, 4, 1)); tied <- array(grid(0.7 + 0.1 * rnorm(4 * 5), 8), c(4, 5, 1)); six <- array(grid(0.7 + 0.05 * rnorm(3 * 6), 256), c(3, 6, 1)); three <- array(grid(0.7 + 0.06 * rnorm(4 * 5 * 3), 256), c(4, 5, 3))
gap <- four; gap[2, 3, 1] <- NaN; lead <- array(c(0.9, 0.5, 0.5), c(3, 4, 1)); same <- array(0.5, c(3, 4, 1))
for (it in list(list("four", four), list("tied", tied), list("six", six), list("repeats", three), list("missing", gap), list("leader", lead), list("equal", same))) for (up in if (it[[1]] %in% c("four", "missing")) c(TRUE, FALSE) else TRUE)
  fold_vector(paste0(it[[1]], if (up) "_up" else "_down"), "folds drawn with replacement, the best of the drawn judged by the others", it[[2]], up)
write_vectors("folds.json", "Folds: undefined ones skipped, criteria from elsewhere, and scores of folds alone.")

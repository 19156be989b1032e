# Straightforward implementations in base R: plain loops, one line per definition, no tricks for speed. They share no
# code with the library. A data set `d` is a list with
#   pred    array sample x configuration x repeat (NaN: not predicted), or prob, sample x configuration x class
#   labels  one per sample;  kind "label", "probability", "score" or "value"
#   positive, threshold, classes, weights, folds (sample x repeat), event, prior: where they apply.
suppressPackageStartupMessages(library(jsonlite))
LOSS <- c("error_rate", "prior_error", "brier", "log_loss", "smoothed_error_rate", "mse", "mae", "rmse", "ici", "negative_likelihood_ratio", "survival_brier")
TARGET <- list(calibration_slope = 1, calibration_intercept = 0, observed_expected = 1, survival_observed_expected = 1)
sign_of <- function(metric) if (name_of(metric) %in% LOSS) -1 else 1
# A metric is a name, or a name with arguments: "partial_auc(low = 0.25, high = 0.5)", in the files {"partial_auc": {"low": 0.25, "high": 0.5}}
arguments_of <- function(metric) if (grepl("(", metric, fixed = TRUE)) lapply(as.list(str2lang(metric))[-1], eval) else list()
name_of <- function(metric) sub("\\(.*", "", metric)
written <- function(metric) if (length(arguments_of(metric))) setNames(list(arguments_of(metric)), name_of(metric)) else metric
middle <- function(metric, x) if (name_of(metric) %in% names(TARGET)) median(x) else mean(x)                       # over draws
too_good <- function(metric, naive, estimate) {                                                                     # how much better naive looks
  target <- TARGET[[name_of(metric)]]
  if (is.null(target)) sign_of(metric) * (naive - estimate) else abs(estimate - target) - abs(naive - target)
}

# --- metrics -------------------------------------------------------------------------------------------------------
pair_share <- function(positive, negative, wp, wn) {     # share of pairs with the positive above; ties count one half
  total <- 0
  for (i in seq_along(positive)) for (j in seq_along(negative)) {
    won <- if (positive[i] > negative[j]) 1 else if (positive[i] == negative[j]) 0.5 else 0
    total <- total + wp[i] * wn[j] * won
  }
  total / (sum(wp) * sum(wn))
}
one_auc <- function(is_positive, s, w) {
  if (sum(w[is_positive]) == 0 || sum(w[!is_positive]) == 0) return(NaN)
  pair_share(s[is_positive], s[!is_positive], w[is_positive], w[!is_positive])
}
one_ap <- function(is_positive, s, w) {                  # mean over positives of the precision at their own score
  if (sum(w[is_positive]) == 0) return(NaN)
  total <- 0
  for (i in which(is_positive)) {
    above <- s >= s[i]
    total <- total + w[i] * sum(w[above & is_positive]) / sum(w[above])
  }
  total / sum(w[is_positive])
}
harrell <- function(time, event, risk, w) {
  won <- 0; pairs <- 0
  for (i in seq_along(time)) for (j in seq_along(time)) {
    if (event[i] == 1 && (time[i] < time[j] || (time[i] == time[j] && event[j] == 0))) {
      pairs <- pairs + w[i] * w[j]
      won <- won + w[i] * w[j] * (if (risk[i] > risk[j]) 1 else if (risk[i] == risk[j]) 0.5 else 0)
    }
  }
  if (pairs == 0) NaN else won / pairs
}
product_limit <- function(time, leaves, stays, w) {       # Kaplan-Meier as a function of t: `leaves` end it, `stays` go first at tied times
  function(t, left = FALSE) {
    value <- 1
    for (u in sort(unique(time[leaves & w > 0]))) if (if (left) u < t else u <= t) {
      at_risk <- sum(w[time > u | (time == u & !stays)]); value <- value * (1 - sum(w[time == u & leaves]) / at_risk)
    }
    value
  }
}
uncensored <- function(time, event, w) product_limit(time, event == 0, event == 1, w)   # G: at tied times events happen before censoring
surviving <- function(time, event, w) product_limit(time, event == 1, rep(FALSE, length(time)), w)
uno <- function(time, event, risk, w, tau) {
  G <- uncensored(time, event, w); won <- 0; pairs <- 0
  for (i in which(event == 1 & time < tau)) { g <- G(time[i], left = TRUE)
    for (j in which(time > time[i] | (time == time[i] & event == 0))) {
      pairs <- pairs + w[i] * w[j] / g^2; won <- won + w[i] * w[j] / g^2 * (if (risk[i] > risk[j]) 1 else if (risk[i] == risk[j]) 0.5 else 0)
    } }
  if (pairs == 0) NaN else won / pairs
}
survival_value <- function(metric, time, event, p, w, kind, t) {
  risk <- if (kind == "score") p else -p; G <- uncensored(time, event, w)
  if (metric == "uno_concordance") return(uno(time, event, risk, w, Inf))
  if (metric == "truncated_concordance") return(uno(time, event, risk, w, t))
  case <- time <= t & event == 1; alive <- time > t; weight <- sapply(time, function(u) 1 / G(u, left = TRUE))
  if (metric == "survival_auc") return(if (!any(case) || !any(alive)) NaN else pair_share(risk[case], risk[alive], (w * weight)[case], w[alive]))
  if (!any(time >= t)) return(NaN)                        # nobody under observation until t
  if (metric == "survival_brier") return(sum(ifelse(case, w * weight * p^2, 0) + ifelse(alive, w * (1 - p)^2 / G(t), 0)) / sum(w))
  (1 - surviving(time, event, w)(t)) / (sum(w * (1 - p)) / sum(w))
}

# The ROC polygon: vertices from (0, 0) to (1, 1), one for each distinct score from the highest on; ties are slanted sides.
roc_polygon <- function(is_positive, s, w) {
  tpr <- fpr <- 0
  for (t in sort(unique(s), decreasing = TRUE)) {
    tpr <- c(tpr, sum(w[is_positive & s >= t]) / sum(w[is_positive])); fpr <- c(fpr, sum(w[!is_positive & s >= t]) / sum(w[!is_positive]))
  }
  list(fpr = fpr, tpr = tpr)
}
height <- function(x, at, up) {                          # the polygon at one place along x; the upper end of an upright side
  on <- abs(x - at) < 1e-12
  if (any(on)) return(max(up[on]))
  i <- max(which(x < at)); up[i] + (up[i + 1] - up[i]) * (at - x[i]) / (x[i + 1] - x[i])
}
area_between <- function(x, up, low, high) {             # trapezes, cut at the two ends
  total <- 0
  for (i in seq_len(length(x) - 1)) {
    from <- max(x[i], low); to <- min(x[i + 1], high)
    if (to > from) { on <- function(at) up[i] + (up[i + 1] - up[i]) * (at - x[i]) / (x[i + 1] - x[i]); total <- total + (to - from) * (on(from) + on(to)) / 2 }
  }
  total
}
logit_of <- function(p) { p <- pmin(pmax(p, 2^-52), 1 - 2^-52); log(p / (1 - p)) }
calibration_line <- function(is_positive, p, w, slope) { # weighted logistic regression; NaN where no finite fit exists
  x <- logit_of(p); tight <- glm.control(epsilon = 1e-15, maxit = 200)
  if (all(is_positive) || !any(is_positive)) return(NaN)
  if (!slope) return(unname(suppressWarnings(coef(glm(is_positive ~ 1 + offset(x), binomial, weights = w, control = tight)))))
  if (length(unique(x)) == 1 || max(x[!is_positive]) <= min(x[is_positive]) || max(x[is_positive]) <= min(x[!is_positive])) return(NaN)
  unname(suppressWarnings(coef(glm(is_positive ~ x, binomial, weights = w, control = tight)))[2])
}
smooth_calibration <- function(is_positive, p, w) {      # lowess: two thirds of the rows, no robustness steps; whole weights are repeated rows
  stopifnot(w == round(w)); rows <- rep(seq_along(p), w); fit <- lowess(p[rows], is_positive[rows], f = 2 / 3, iter = 0, delta = 0)
  keep <- !duplicated(fit$x); list(x = fit$x[keep], y = fit$y[keep])
}

# y, p: truth and prediction of the samples at hand (p a matrix sample x class for class probabilities); w: weights
metric_value <- function(metric, y, p, w, d, event = NULL) {
  given <- arguments_of(metric); metric <- name_of(metric)
  total <- sum(w)
  if (total == 0) return(NaN)
  mean_of <- function(x) sum(w * x) / total
  if (metric == "mse") return(mean_of((p - y)^2))
  if (metric == "rmse") return(sqrt(mean_of((p - y)^2)))
  if (metric == "mae") return(mean_of(abs(p - y)))
  if (metric == "r2") {
    centre <- mean_of(y)
    if (all(y[w > 0] == y[w > 0][1])) return(NaN)
    return(1 - sum(w * (p - y)^2) / sum(w * (y - centre)^2))
  }
  if (metric == "concordance") return(harrell(y, event, if (d$kind == "value") -p else p, w))
  if (metric %in% c("uno_concordance", "truncated_concordance", "survival_auc", "survival_brier", "survival_observed_expected")) return(survival_value(metric, y, event, p, w, d$kind, given$time))
  many <- is.matrix(p)
  classes <- if (!is.null(d$classes)) d$classes else c(setdiff(unique(d$labels), d$positive), d$positive)
  truth <- match(y, classes)                             # 1 .. K; of two classes the second is the positive one
  K <- length(classes)
  if (metric == "brier") {
    if (!many) return(mean_of((p - (truth == 2))^2))
    loss <- 0
    for (k in 1:K) loss <- loss + (p[, k] - (truth == k))^2
    return(mean_of(loss))
  }
  if (metric == "log_loss") {
    of_truth <- if (many) p[cbind(seq_along(truth), truth)] else ifelse(truth == 2, p, 1 - p)
    return(mean_of(-log(pmax(of_truth, 2^-52))))          # clipped at the machine epsilon
  }
  if (metric == "smoothed_error_rate") return(mean_of((1 - ifelse(truth == 2, 1, -1) * tanh(8 * (p - d$threshold))) / 2))
  if (metric %in% c("auc", "auc_ovr", "auc_ovr_weighted", "average_precision")) {
    one <- if (metric == "average_precision") one_ap else one_auc
    if (!many) return(one(truth == 2, p, w))
    if (metric == "auc") {                               # Hand and Till
      values <- c()
      for (a in 1:(K - 1)) for (b in (a + 1):K) {
        in_pair <- truth == a | truth == b
        values <- c(values, (one_auc(truth[in_pair] == a, p[in_pair, a], w[in_pair]) +
                             one_auc(truth[in_pair] == b, p[in_pair, b], w[in_pair])) / 2)
      }
      return(mean(values))
    }
    each <- sapply(1:K, function(k) one(truth == k, p[, k], w))
    share <- sapply(1:K, function(k) sum(w[truth == k]) / total)
    return(if (metric == "auc_ovr_weighted") sum(share * each) else mean(each))
  }
  if (metric %in% c("partial_auc", "sensitivity_at", "specificity_at")) {
    if (all(truth == 2) || all(truth == 1)) return(NaN)
    roc <- roc_polygon(truth == 2, p, w)
    if (metric == "sensitivity_at") return(height(roc$fpr, 1 - given$specificity, roc$tpr))
    if (metric == "specificity_at") return(height(rev(1 - roc$tpr), 1 - given$sensitivity, rev(1 - roc$fpr)))
    return(area_between(roc$fpr, roc$tpr, given$low, given$high))
  }
  if (metric == "calibration_slope") return(calibration_line(truth == 2, p, w, TRUE))
  if (metric == "calibration_intercept") return(calibration_line(truth == 2, p, w, FALSE))
  if (metric == "ici") { fit <- smooth_calibration(truth == 2, p, w); return(mean_of(abs(fit$y[match(p, fit$x)] - p))) }
  if (metric == "observed_expected") return(sum(w * (truth == 2)) / sum(w * p))
  guess <- if (many) apply(p, 1, which.max) else if (d$kind == "label") match(p, classes) else ifelse(p > d$threshold, 2, 1)
  right <- guess == truth
  if (metric == "accuracy") return(mean_of(right))
  if (metric == "error_rate") return(mean_of(!right))
  count <- sapply(1:K, function(k) sum(w[truth == k]))
  called <- sapply(1:K, function(k) sum(w[guess == k]))
  hit <- sapply(1:K, function(k) sum(w[truth == k & guess == k]))
  if (metric == "balanced_accuracy") return(if (any(count == 0)) NaN else mean(hit / count))
  if (metric == "sensitivity") return(hit[2] / count[2])
  if (metric == "specificity") return(hit[1] / count[1])
  if (metric == "prior_error") return(sum(d$prior * (count - hit) / count))
  if (metric == "ppv") return(hit[2] / called[2])
  if (metric == "npv") return(hit[1] / called[1])
  if (metric == "youden") return(hit[2] / count[2] + hit[1] / count[1] - 1)
  if (metric == "recall") return(if (K == 2) hit[2] / count[2] else mean(hit / count))
  false_alarm <- (called[2] - hit[2]) / count[1]; caught <- hit[2] / count[2]
  if (metric == "positive_likelihood_ratio") return(if (false_alarm == 0) NaN else caught / false_alarm)
  if (metric == "negative_likelihood_ratio") return(if (false_alarm == 1) NaN else (1 - caught) / (1 - false_alarm))
  if (metric == "precision") return(if (K == 2) hit[2] / called[2] else mean(ifelse(called > 0, hit / called, 0)))
  if (metric == "kappa") { chance <- sum(count * called) / total^2; return((sum(hit) / total - chance) / (1 - chance)) }
  if (metric == "net_benefit") {
    risk <- if (is.null(d$risk)) given$threshold else d$risk; treated <- p > risk
    return((sum(w[treated & truth == 2]) - sum(w[treated & truth == 1]) * risk / (1 - risk)) / total)
  }
  if (metric == "f1") { each <- 2 * hit / (count + called); return(if (K == 2) each[2] else mean(each)) }
  if (metric == "mcc") {                                 # Gorodkin's R_K; 0/0 is 0
    spread <- (total^2 - sum(count^2)) * (total^2 - sum(called^2))
    return(if (spread == 0) 0 else (sum(hit) * total - sum(count * called)) / sqrt(spread))
  }
  stop("unknown metric ", metric)
}

# --- scores of a configuration -------------------------------------------------------------------------------------
n_of <- function(d) length(d$labels)
c_of <- function(d) if (!is.null(d$prob)) dim(d$prob)[2] else dim(d$pred)[2]
r_of <- function(d) if (!is.null(d$prob)) 1 else dim(d$pred)[3]
case_weights <- function(d) if (is.null(d$weights)) rep(1, n_of(d)) else d$weights

repeat_score <- function(d, metric, j, r, weight) {      # configuration j in repeat r, samples weighted
  if (!is.null(d$prob)) {
    p <- d$prob[, j, ]; use <- weight > 0 & !is.na(p[, 1])
    return(metric_value(metric, d$labels[use], p[use, , drop = FALSE], weight[use], d))
  }
  p <- d$pred[, j, r]; use <- weight > 0 & !is.na(p)
  metric_value(metric, d$labels[use], p[use], weight[use], d, d$event[use])
}
pooled_score <- function(d, metric, j, weight = case_weights(d), repeats = seq_len(r_of(d))) {
  mean(sapply(repeats, function(r) repeat_score(d, metric, j, r, weight)))
}
pooled_scores <- function(d, metric, ...) sapply(seq_len(c_of(d)), function(j) pooled_score(d, metric, j, ...))
fold_table <- function(d, metric, repeats = seq_len(r_of(d))) {   # configuration x (repeat, fold)
  table <- NULL
  for (r in repeats) for (k in sort(unique(d$folds[, r])))
    table <- cbind(table, sapply(seq_len(c_of(d)), function(j) repeat_score(d, metric, j, r, case_weights(d) * (d$folds[, r] == k))))
  table
}
fold_scores <- function(d, metric, ...) rowMeans(fold_table(d, metric, ...))

# --- selection: the first of the best. Two scores are equal or clearly different; anything between is an error ------
eligible <- function(d) {                                # predicted everything that anybody predicted
  if (!is.null(d$prob)) return(rep(TRUE, c_of(d)))
  someone <- apply(!is.na(d$pred), c(1, 3), any)
  sapply(seq_len(c_of(d)), function(j) all(!is.na(d$pred[, j, ]) | !someone))
}
first_best <- function(scores, metric, allowed = rep(TRUE, length(scores)), tied_ok = TRUE) {
  value <- ifelse(allowed, sign_of(metric) * scores, -Inf)
  gap <- max(value) - value
  stopifnot(all(gap < 1e-12 | gap > 1e-9))
  if (!tied_ok) stopifnot(sum(gap < 1e-12) == 1)
  which(gap < 1e-12)[1]
}

# --- select in the bag, judge out of it -----------------------------------------------------------------------------
# draws: draw x sample counts. A draw without samples left out, or in which the metric is undefined, is not used.
run_bbc <- function(d, metric, draws, tied_ok = TRUE) {
  allowed <- eligible(d); case <- case_weights(d)
  known <- if (is.null(d$prob)) apply(!is.na(d$pred), 1, any) else rep(TRUE, n_of(d))
  value <- c(); chosen <- c(); inside <- NULL; used <- c()
  for (b in seq_len(nrow(draws))) {
    bag <- draws[b, ] * case; out <- (draws[b, ] == 0 & known) * case
    if (sum(out) == 0 || sum(bag[known]) == 0) { used <- c(used, FALSE); next }
    scores <- pooled_scores(d, metric, weight = bag)
    j <- if (any(is.nan(scores[allowed]))) NA else first_best(scores, metric, allowed, tied_ok)
    judged <- if (is.na(j)) NaN else pooled_score(d, metric, j, out)
    if (is.nan(judged)) { used <- c(used, FALSE); next }
    used <- c(used, TRUE); value <- c(value, judged); chosen <- c(chosen, j); inside <- cbind(inside, scores)
  }
  list(value = value, chosen = chosen, inside = inside, used = used, allowed = allowed)
}
bbc_expected <- function(d, metric, draws, level = 0.95) {
  run <- run_bbc(d, metric, draws)
  scores <- pooled_scores(d, metric); best <- first_best(scores, metric, run$allowed)
  q <- function(p) unname(quantile(run$value, p, type = 7))
  list(estimate = mean(run$value), std_error = sd(run$value), conf_low = q((1 - level) / 2), conf_high = q((1 + level) / 2),
       bound_low = q(1 - level), bound_high = q(level), naive = scores[best],
       optimism = sign_of(metric) * (scores[best] - mean(run$value)), selected = best - 1,
       win_rate = sapply(seq_len(c_of(d)), function(j) if (run$allowed[j]) mean(run$chosen == j) else 0), n_draws = length(run$value))
}
all_draws <- function(n) unname(t(apply(as.matrix(expand.grid(rep(list(1:n), n))), 1, tabulate, nbins = n)))
some_draws <- function(n, times) unname(t(sapply(seq_len(times), function(b) tabulate(sample(n, n, TRUE), n))))

# --- output ---------------------------------------------------------------------------------------------------------
grid <- function(x, step = 64) round(x * step) / step    # exact in binary and short in decimal
as_input <- function(d) {                                # the data as they stand in the JSON file
  out <- d[setdiff(names(d), c("pred", "prob", "prior"))]
  p <- if (!is.null(d$prob)) d$prob else if (dim(d$pred)[3] == 1) matrix(d$pred[, , 1], dim(d$pred)[1]) else d$pred
  if (!is.null(out$folds) && ncol(out$folds) == 1) out$folds <- out$folds[, 1]
  c(list(predictions = p), out)
}
vectors <- list(); data_sets <- list(); draw_sets <- list(); inner_sets <- list()
add_data <- function(name, d) data_sets[[name]] <<- as_input(d)
add <- function(name, about, fun, input, expected, ..., tolerance = 1e-10) {
  stopifnot(!(name %in% sapply(vectors, function(v) v$name)))
  vectors[[length(vectors) + 1]] <<- c(list(name = name, about = about, "function" = fun), input, list(...),
                                       list(expected = expected, tolerance = tolerance))
}
write_vectors <- function(file, about, packages = c()) {
  made <- list(script = sub("json$", "R", file), R = as.character(getRversion()))
  for (p in packages) made[[p]] <- as.character(packageVersion(p))
  out <- list(format = 1, about = about, made_by = made, data = data_sets, draws = draw_sets, inner = inner_sets, vectors = vectors)
  here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
  text <- toJSON(out, digits = NA, auto_unbox = TRUE, na = "string", null = "null")
  text <- gsub('{"name":', '\n  {"name":', text, fixed = TRUE)
  text <- gsub('("data":\\{|\\]\\},)("[a-z0-9_]+":\\{"predictions")', "\\1\n  \\2", text, perl = TRUE)
  writeLines(text, file.path(here, file))
  cat(length(vectors), "vectors,", length(data_sets), "data sets ->", file, "\n")
}

# Decisions in base R, for several vector files: what is learned from samples with weight (a configuration or a mixture, then
# adjustments), and how it is judged on others. Needs common.R.
as3 <- function(m) array(m, c(dim(m), 1))
none <- structure(list(), names = character(0))

# --- adjustments: learned from samples with weight, applied to any prediction -------------------------------------------
# y01, s, w: truth (1 = positive), prediction and weight of the rows that teach, all repeats pooled
cut_at <- function(how, y01, s, w, kind) {
  if (sum(w[y01 == 1]) == 0 || sum(w[y01 == 0]) == 0) return(NaN)
  v <- sort(unique(s)); candidate <- c(-Inf, (v[-1] + v[-length(v)]) / 2, Inf)
  worth <- sapply(candidate, function(t) {
    P <- sum(w[y01 == 1]); N <- sum(w[y01 == 0]); tp <- sum(w[y01 == 1 & s > t]); fp <- sum(w[y01 == 0 & s > t])
    sens <- tp / P; spec <- (N - fp) / N
    if (!is.null(how$sensitivity)) return(if (sens >= how$sensitivity - 1e-12) spec else -Inf)
    if (!is.null(how$specificity)) return(if (spec >= how$specificity - 1e-12) sens else -Inf)
    if (!is.null(how$cost)) return(-(how$cost[["1"]] * (P - tp) + how$cost[["0"]] * fp) / (P + N))
    switch(how$criterion, youden = sens + spec - 1, balanced_accuracy = (sens + spec) / 2, accuracy = (tp + N - fp) / (P + N), error_rate = -(P - tp + fp) / (P + N), f1 = 2 * tp / (P + tp + fp),
           mcc = { spread <- (tp + fp) * (P + N - tp - fp) * P * N; if (spread == 0) 0 else (tp * (N - fp) - fp * (P - tp)) / sqrt(spread) })
  })
  gap <- max(worth) - worth; stopifnot(all(gap < 1e-12 | gap > 1e-9))
  tied <- sort(candidate[gap < 1e-12])
  if (kind == "probability") tied[order(abs(tied - 0.5), tied)[1]] else tied[(length(tied) + 1) %/% 2]
}
line_of <- function(method, y01, s, w) {
  x <- logit_of(s); tight <- glm.control(epsilon = 1e-15, maxit = 200)
  if (method == "intercept") return(c(suppressWarnings(coef(glm(y01 ~ 1 + offset(x), binomial, weights = w, control = tight))), 1))
  line <- suppressWarnings(coef(glm(y01 ~ x, binomial, weights = w, control = tight)))
  stopifnot(max(x[y01 == 0]) > min(x[y01 == 1]))                               # not separated
  if (line[2] > 0) line else { share <- sum(w * y01) / sum(w); c(log(share / (1 - share)), 0) }
}
learn <- function(step, y01, s, w, kind) {                                     # returns map(prediction) and what is reported
  use <- w > 0 & !is.na(s); y01 <- y01[use]; s <- s[use]; w <- w[use]
  if (step$name == "cut") { t <- cut_at(step$how, y01, s, w, kind); return(list(map = function(p) ifelse(is.na(p), NaN, p > t), kind = "label", shown = list(threshold = t))) }
  if (step$name == "shift") {
    factor <- c(step$to[1] / sum(w[y01 == 0]), step$to[2] / sum(w[y01 == 1]))
    if (!is.null(step$from)) factor <- step$to / step$from
    return(list(map = function(p) p * factor[2] / (p * factor[2] + (1 - p) * factor[1]), kind = kind, shown = list()))
  }
  if (step$method == "isotonic") {
    rows <- rep(seq_along(s), w); fit <- isoreg(s[rows], y01[rows]); x <- s[rows][order(s[rows], -y01[rows])]
    knot <- !duplicated(x)
    return(list(map = function(p) approx(x[knot], fit$yf[knot], p, rule = 2, ties = "ordered")$y, kind = kind, shown = list()))
  }
  line <- unname(line_of(step$method, y01, s, w))
  shown <- if (step$method == "logistic") list(intercept = line[1], slope = line[2]) else list(intercept = line[1])
  list(map = function(p) 1 / (1 + exp(-line[1] - line[2] * logit_of(p))), kind = kind, shown = shown)
}
adjusted <- function(d, column, steps, weight, repeats) {                       # column: sample x repeat; steps learned on `repeats`
  kind <- d$kind; shown <- list()
  for (step in steps) {
    rows <- as.vector(column[, repeats]); k <- length(repeats)
    learned <- learn(step, rep(as.numeric(d$labels == d$positive), k), rows, rep(weight, k), kind)
    column <- apply(column, 2, learned$map); kind <- learned$kind; shown <- c(shown, learned$shown)
  }
  list(column = column, kind = kind, shown = shown)
}
as_data <- function(d, done) { own <- d; own$pred <- array(done$column, c(nrow(done$column), 1, ncol(done$column))); own$kind <- done$kind; if (done$kind == "label") own$pred <- ifelse(own$pred, d$positive, setdiff(d$labels, d$positive)); own }

# --- a decision: learned under weights, on some repeats -----------------------------------------------------------------
OF_LABELS <- c("accuracy", "error_rate", "balanced_accuracy", "sensitivity", "specificity", "f1", "mcc", "prior_error", "youden", "ppv", "npv", "precision", "recall", "kappa", "positive_likelihood_ratio", "negative_likelihood_ratio")
OF_RANKS <- c("auc", "average_precision", "partial_auc", "sensitivity_at", "specificity_at", "concordance")
touches <- function(steps, metric) {                                            # does the metric see what the steps change?
  metric <- name_of(metric)
  any(sapply(steps, function(s) metric %in% OF_LABELS || (s$name != "cut" && (!(metric %in% OF_RANKS) || identical(s$method, "isotonic")))))
}
scores_under <- function(d, by, weight, repeats, average) {
  if (average == "pooled") return(pooled_scores(d, by, weight = weight, repeats = repeats))
  sapply(seq_len(c_of(d)), function(j) {
    each <- c(); for (r in repeats) { one <- c(); for (k in sort(unique(d$folds[, r]))) one <- c(one, repeat_score(d, by, j, r, weight * (d$folds[, r] == k))); each <- c(each, mean(one[!is.nan(one)])) }
    mean(each)
  })
}
mixture <- function(d, share) { used <- share > 0; apply(sweep(d$pred[, used, , drop = FALSE], 2, share[used], "*"), c(1, 3), sum) }
decide <- function(d, by, weight, o, repeats = seq_len(r_of(d))) {              # o: steps, mix, average, tied_ok
  allowed <- eligible(d); s <- sign_of(by); C <- c_of(d)
  if (is.null(o$mix)) {
    scores <- if (!touches(o$steps, by)) scores_under(d, by, weight, repeats, o$average) else sapply(seq_len(C), function(j) {
      if (!allowed[j]) return(NaN)
      scores_under(as_data(d, adjusted(d, matrix(d$pred[, j, ], n_of(d)), o$steps, weight, repeats)), by, weight, repeats, o$average)
    })
    j <- first_best(scores, by, allowed, o$tied_ok); share <- as.numeric(seq_len(C) == j)
  } else {
    j <- NA; count <- rep(0, C); alone <- pooled_scores(d, by, weight = weight, repeats = repeats)
    for (step in seq_len(o$mix$size)) {
      value <- sapply(seq_len(C), function(i) { own <- d; own$pred <- array(mixture(d, (count + (seq_len(C) == i)) / step), c(n_of(d), 1, r_of(d))); pooled_score(own, by, 1, weight, repeats) })
      first <- step <= o$mix$start; open <- if (first || !o$mix$replace) count == 0 else rep(TRUE, C)
      i <- first_best(if (first) alone else value, by, allowed & open); count[i] <- count[i] + 1
    }
    share <- count / sum(count)
  }
  column <- if (is.null(o$mix)) matrix(d$pred[, j, ], n_of(d)) else mixture(d, share)
  done <- adjusted(d, column, o$steps, weight, repeats)
  list(data = as_data(d, done), raw = as_data(d, list(column = column, kind = d$kind)), index = j, share = share, shown = done$shown)
}
judged <- function(made, metric, weight, repeats = seq_len(r_of(made$data))) {  # a metric of probabilities or scores ignores a cut
  d <- if (made$data$kind == "label" && !(name_of(metric) %in% OF_LABELS)) made$raw else made$data
  pooled_score(d, metric, 1, weight, repeats)
}

# --- choose in the bag, judge out of it, and judge what all samples chose there too (the anchor) ---------------------------
run_all <- function(d, by, metrics, draws, o) {
  case <- case_weights(d); known <- apply(!is.na(d$pred), 1, any); final <- decide(d, by, case, modifyList(o, list(tied_ok = TRUE)))
  value <- anchor <- whole <- kept <- NULL; share <- 0; B <- nrow(draws)
  for (b in seq_len(B)) {
    bag <- draws[b, ] * case; out <- (draws[b, ] == 0 & known) * case
    made <- decide(d, by, bag, o); share <- share + made$share / B
    value <- cbind(value, sapply(metrics, function(m) judged(made, m, out))); anchor <- cbind(anchor, sapply(metrics, function(m) judged(final, m, out)))
    whole <- cbind(whole, sapply(metrics, function(m) judged(made, m, case))); kept <- cbind(kept, sapply(metrics, function(m) judged(final, m, bag)))
  }
  stopifnot(!is.nan(value), !is.nan(anchor))
  naive <- sapply(metrics, function(m) judged(final, m, case))
  list(final = final, value = unname(value), anchor = unname(anchor), whole = unname(whole), kept = unname(kept), share = unname(share), pooled = unname(naive),
       naive = unname(if (o$average == "fold") sapply(metrics, function(m) scores_under(d, m, case, seq_len(r_of(d)), "fold")[final$index]) else naive))
}
optimisms <- function(metrics, naive, estimate) unname(mapply(too_good, metrics, naive, estimate))
common <- function(run, o) c(list(naive = run$naive, win_rate = run$share), if (is.null(o$mix)) list(selected = run$final$index - 1) else list(share = run$final$share), run$final$shown)
bbc_of <- function(d, by, metrics, draws, o, level = 0.95) {
  run <- run_all(d, by, metrics, draws, o); estimate <- sapply(seq_along(metrics), function(i) middle(metrics[i], run$value[i, ])); q <- function(p) apply(run$value, 1, quantile, p, type = 7, names = FALSE)
  c(common(run, o), list(estimate = estimate, std_error = apply(run$value, 1, sd), conf_low = q((1 - level) / 2), conf_high = q((1 + level) / 2), bound_low = q(1 - level), bound_high = q(level),
    optimism = optimisms(metrics, run$pooled, estimate), n_draws = rep(nrow(draws), length(metrics))))
}
span <- function(metric) {
  given <- arguments_of(metric)
  switch(name_of(metric), brier = c(0, 2), mcc = , youden = c(-1, 1), calibration_slope = , calibration_intercept = c(-Inf, Inf), r2 = c(-Inf, 1), partial_auc = c(0, given$high - given$low),
         mse = , rmse = , mae = , log_loss = , observed_expected = , survival_observed_expected = , positive_likelihood_ratio = , negative_likelihood_ratio = c(0, Inf), c(0, 1))
}
WHOLE <- c("accuracy", "error_rate", "f1", "mcc", "ppv", "npv", "precision", "kappa", "smoothed_error_rate", "brier", "prior_error", "net_benefit")  # metrics that any labels allow
clip <- function(x, metric) min(max(x, span(metric)[1]), span(metric)[2])
anchored_of <- function(d, by, metrics, draws, o, kappa = 1.3, psi = 1, level = 0.95) {
  run <- run_all(d, by, metrics, draws, o); N <- sum(apply(!is.na(d$pred), 1, any))
  estimate <- sapply(seq_along(metrics), function(i) clip(run$naive[i] + middle(metrics[i], run$value[i, ] - run$anchor[i, ]), metrics[i]))
  ends <- sapply(seq_along(metrics), function(i) {                              # one recipe for any decision
    v <- var(run$kept[i, ]); vs <- var(run$whole[i, ]); t <- qt((1 + level) / 2, N - 1); r <- span(metrics[i]); c <- estimate[i]
    if (metrics[i] %in% c("mse", "rmse", "mae", "log_loss", "brier", "r2")) {   # the log of the distance from perfection
      far <- function(x) abs(x - (metrics[i] == "r2")); se <- sqrt(kappa * v / far(run$naive[i])^2 + psi * vs / far(c)^2); both <- far(c) * exp(c(-t, t) * se)
      return(c(if (metrics[i] == "r2") rev(1 - both) else both, far(c) * se))
    }
    wide <- r[2] - r[1]; u <- (c - r[1]) / wide; inside <- function(x, n) min(max(x, 1 / (2 * n)), 1 - 1 / (2 * n))
    few <- if (name_of(metrics[i]) %in% WHOLE) N else min(table(d$labels[apply(!is.na(d$pred), 1, any)]))  # what a perfect decision is judged on
    far <- inside((run$naive[i] - r[1]) / wide, N); size <- if (is.na(v)) NA else if (v == 0) few else max(far * (1 - far) / (v / wide^2), 1)
    w <- inside(u, size); m <- w * (1 - w) / (kappa * w * (1 - w) / size + psi * vs / wide^2)
    mid <- (u + t^2 / (2 * m)) / (1 + t^2 / m); half <- t / (1 + t^2 / m) * sqrt(u * (1 - u) / m + t^2 / (4 * m^2))
    c(r[1] + wide * max(0, if (isTRUE(u * size < 1)) 0 else mid - half), r[1] + wide * min(1, mid + half), wide * sqrt(u * (1 - u) / m))
  })
  plain <- by %in% metrics && !length(o$steps) && is.null(o$mix) && o$average == "pooled"  # that row has the limits of the plain call
  c(common(run, o), list(estimate = estimate, bbc_plain = sapply(seq_along(metrics), function(i) middle(metrics[i], run$value[i, ])), optimism = optimisms(metrics, run$naive, estimate)), if (!plain) list(conf_low = ends[1, ], conf_high = ends[2, ], std_error = ends[3, ]))
}
cross_of <- function(d, by, metrics, draws, o) {                               # one repeat decides in the bag, the others judge out of it
  case <- case_weights(d); R <- r_of(d); final <- decide(d, by, case, o); gain <- NULL; plain <- run_all(d, by, metrics, draws, o)
  for (b in seq_len(nrow(draws))) for (r in seq_len(R)) {
    others <- setdiff(seq_len(R), r); out <- (draws[b, ] == 0) * case; made <- decide(d, by, draws[b, ] * case, o, r)
    gain <- cbind(gain, sapply(metrics, function(m) judged(made, m, out, others) - judged(final, m, out, others)))
  }
  estimate <- unname(sapply(seq_along(metrics), function(i) clip(plain$naive[i] + mean(gain[i, ]), metrics[i])))
  c(common(plain, o)[c("naive", if (is.null(o$mix)) "selected" else "share")], final$shown, list(estimate = estimate, bbc_plain = rowMeans(plain$value), optimism = optimisms(metrics, plain$naive, estimate)))
}

# --- how the steps are written in the file --------------------------------------------------------------------------------
cut <- function(...) list(name = "cut", how = list(...), json = list(cut = list(...)))
recalibrate <- function(method) list(name = "recalibrate", method = method, json = list(recalibrate = list(method = method)))
shift <- function(to, from = NULL) list(name = "shift", to = c(1 - to, to), from = if (!is.null(from)) c(1 - from, from),
  json = list(shift_prior = c(list(to = list("1" = to)), if (!is.null(from)) list(from_prior = list("1" = from)))))
ensemble <- function(size, replace = TRUE, start = 0) list(size = size, replace = replace, start = start, json = list(ensemble = list(size = size, replace = replace, start = start)))
top_mean <- function(k) list(size = k, replace = FALSE, start = k, json = list(top_mean = list(k = k)))
opts <- function(..., mix = NULL, average = "pooled", tied_ok = TRUE) list(steps = list(...), mix = mix, average = average, tied_ok = tied_ok)
vector <- function(name, about, fun, set, metrics, by, o, expected, arguments = none, draws = "forty", tolerance = 1e-10, listed = length(metrics) > 1, ...) {
  extra <- list(); if (length(o$steps)) extra$adjust <- lapply(o$steps, function(s) s$json); if (!is.null(o$mix)) extra$mixture <- o$mix$json
  given <- c(arguments, if (by != metrics[1]) list(by = by), if (o$average == "fold") list(average = "fold"))
  input <- c(list(data = set, metric = if (listed) lapply(metrics, written) else written(metrics)), if (!is.null(draws)) list(draws = draws), extra, if (length(given)) list(arguments = given))
  add(name, about, fun, input, expected, ..., tolerance = tolerance)
}

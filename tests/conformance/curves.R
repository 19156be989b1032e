# Conformance vectors of curves: ROC, precision against recall, decision curve; naive, and anchored under given draws.
# Run: Rscript tests/conformance/curves.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
suppressPackageStartupMessages(library(pROC))
set.seed(21)
rate <- (0:100) / 100; risk <- (1:99) / 100

# --- the curve of one column of predictions, on its grid -----------------------------------------------------------------------
roc_at <- function(pos, p, w) { if (all(pos) || !any(pos)) return(rep(NaN, 101)); curve <- roc_polygon(pos, p, w); sapply(rate, function(x) height(curve$fpr, x, curve$tpr)) }
precision_at <- function(pos, p, w) {                     # precision of the highest threshold that finds this share of the positives
  if (!any(pos)) return(rep(NaN, 101))
  cuts <- sort(unique(p), decreasing = TRUE); found <- sapply(cuts, function(t) sum(w[pos & p >= t]) / sum(w[pos])); right <- sapply(cuts, function(t) sum(w[pos & p >= t]) / sum(w[p >= t]))
  sapply(rate, function(r) right[which(found >= r - 1e-12)[1]])
}
benefit_at <- function(pos, p, w) sapply(risk, function(t) (sum(w[p > t & pos]) - sum(w[p > t & !pos]) * t / (1 - t)) / sum(w))
local_line <- function(x, pos, p, w) {                    # lowess at any place: the nearest two thirds of the rows, tricube weights, a line
  far <- abs(p - x); h <- min(far[sapply(far, function(r) sum(w[far <= r]) >= floor(2 / 3 * sum(w) + 1e-7))])
  v <- w * ifelse(far <= 0.001 * h, 1, ifelse(far <= 0.999 * h, (1 - (far / h)^3)^3, 0)); if (sum(v) == 0) return(NaN); v <- v / sum(v)
  centre <- sum(v * p); spread <- sum(v * (p - centre)^2)
  if (sqrt(spread) > 0.001 * (max(p) - min(p))) v <- v * (1 + (x - centre) / spread * (p - centre))
  min(max(sum(v * pos), 0), 1)
}
observed_at <- function(pos, p, w) { w <- w[order(p)]; pos <- pos[order(p)]; p <- sort(p); sapply(rate, local_line, pos, p, w) }
CURVES <- list(calibration_curve = observed_at, roc_curve = roc_at, precision_recall_curve = precision_at, decision_curve = benefit_at)
one_curve <- function(fun, made, weight, repeats = seq_len(r_of(made$data))) {   # within each repeat, then averaged
  d <- if (made$data$kind == "label") made$raw else made$data
  rowMeans(sapply(repeats, function(r) { p <- d$pred[, 1, r]; use <- weight > 0 & !is.na(p); CURVES[[fun]]((d$labels == d$positive)[use], p[use], weight[use]) }))
}
curve_of <- function(fun, d, by, draws, o, cross = FALSE) {
  case <- case_weights(d); known <- apply(!is.na(d$pred), 1, any); final <- decide(d, by, case, o); naive <- one_curve(fun, final, case); R <- r_of(d)
  change <- sapply(seq_len(nrow(draws)), function(b) {
    out <- (draws[b, ] == 0 & known) * case
    if (!cross) return(one_curve(fun, decide(d, by, draws[b, ] * case, o), out) - one_curve(fun, final, out))
    rowMeans(sapply(seq_len(R), function(r) { others <- setdiff(seq_len(R), r); one_curve(fun, decide(d, by, draws[b, ] * case, o, r), out, others) - one_curve(fun, final, out, others) }))
  })
  if (fun == "calibration_curve") change[is.nan(naive) | rate < min(final$data$pred, na.rm = TRUE) | rate > max(final$data$pred, na.rm = TRUE), ] <- 0   # not shown
  stopifnot(!is.nan(change))
  estimate <- naive + rowMeans(change)
  if (fun == "calibration_curve") { range_of <- range(final$data$pred, na.rm = TRUE); beyond <- rate < range_of[1] - 1e-12 | rate > range_of[2] + 1e-12; naive[beyond] <- estimate[beyond] <- NaN }
  if (fun != "decision_curve") estimate <- pmin(pmax(estimate, 0), 1)
  if (fun == "roc_curve") {                               # where fewer than two of the negatives left out (one in e of all) lie beyond, the correction goes to 0 as 1 - rate does
    left <- sum(known & d$labels != d$positive) / exp(1); estimate <- isoreg(naive + pmin(1, (1 - rate) * left / 2) * (estimate - naive))$yf
  }
  share <- sum((case * known)[d$labels == d$positive]) / sum(case * known)
  c(list(naive = naive, estimate = estimate), if (is.null(o$mix)) list(selected = final$index - 1) else list(share = final$share),
    if (fun == "decision_curve") list(treat_all = share - (1 - share) * risk / (1 - risk), treat_none = rep(0, 99), interventions_avoided = (estimate - share) * (1 - risk) / risk + 1 - share))
}

# Limits at each point, one recipe for any decision (less than one hit, c n < 1, may as well be none): n = naive (1 - naive) / v, V = kappa c (1 - c) / n + V_s, Wilson's on the
# range mapped to [0, 1], Student t on N - 1; the upper limit is at least Wilson's of n / 1.2 samples at the naive value
limits_of <- function(fun, d, by, draws, o, kappa) {
  case <- case_weights(d); N <- n_of(d); final <- decide(d, by, case, o); found <- curve_of(fun, d, by, draws, o)
  raw <- one_curve(fun, final, case) + rowMeans(sapply(seq_len(nrow(draws)), function(b) { out <- (draws[b, ] == 0) * case; one_curve(fun, decide(d, by, draws[b, ] * case, o), out) - one_curve(fun, final, out) }))
  low <- if (fun == "decision_curve") -risk / (1 - risk) else 0; wide <- 1 - low
  v <- apply(sapply(seq_len(nrow(draws)), function(b) one_curve(fun, final, draws[b, ] * case)), 1, var) / wide^2; vs <- apply(sapply(seq_len(nrow(draws)), function(b) one_curve(fun, decide(d, by, draws[b, ] * case, o), case)), 1, var) / wide^2
  u <- (pmin(pmax(raw, low), 1) - low) / wide; at <- (one_curve(fun, final, case) - low) / wide; far <- pmin(pmax(at, 1 / (2 * N)), 1 - 1 / (2 * N)); size <- pmax(far * (1 - far) / v, 1)
  m <- u * (1 - u) / (kappa * u * (1 - u) / size + vs); t <- qt(0.975, N - 1); known <- v > 0 & u > pmax(0.08, 0.6 / m, 0.6 / size) & 1 - u > pmax(0.08, 0.6 / m, 0.6 / size)
  if (fun == "calibration_curve") known <- known & !is.nan(found$estimate)
  known[is.na(known)] <- FALSE
  wilson <- function(u, m, side) { mid <- (u + t^2 / (2 * m)) / (1 + t^2 / m); half <- t / (1 + t^2 / m) * sqrt(u * (1 - u) / m + t^2 / (4 * m^2)); low + wide * pmin(1, pmax(0, mid + side * half)) }
  ends <- list(ifelse(u * size < 1, low, wilson(u, m, -1)), pmax(wilson(u, m, 1), wilson(at, size / 1.2, 1)))
  if (fun == "roc_curve") {                               # monotone; only points that no point near 0 or 1 can move
    both <- lapply(ends, function(e) lapply(list(c(0, 1), c(1, 1)), function(fill) isoreg(ifelse(known, e, ifelse(u < 0.5, fill[1] * u, fill[2] * e[which(known)[sum(known)]])))$yf))
    tail_up <- lapply(ends, function(e) isoreg(ifelse(known, e, ifelse(u < 0.5, 0, 1)))$yf)
    for (i in 1:2) known <- known & abs(both[[i]][[1]] - tail_up[[i]]) < 1e-12 & abs(both[[i]][[2]] - tail_up[[i]]) < 1e-12
    ends <- tail_up
  }
  stopifnot(sum(known) > 15)
  list(known = which(known), expected = list(estimate = found$estimate[known], conf_low = ends[[1]][known], conf_high = ends[[2]][known]))
}

# --- data -----------------------------------------------------------------------------------------------------------------------
n <- 40; y <- rep(c(0, 1, 1, 0, 0), 8)
noisy <- function(C, R, step, signal = 0.12) array(sapply(seq_len(C * R), function(i) pmin(pmax(grid(0.45 + signal * (2 * y - 1) + 0.22 * rnorm(n), step), 1 / step), 1 - 1 / step)), c(n, C, R))
base <- list(labels = y, kind = "probability", positive = 1, threshold = 0.5)
fine <- c(list(pred = noisy(4, 1, 4096)), base); tied <- c(list(pred = noisy(4, 1, 8)), base)
decimal <- fine; decimal$pred <- round(fine$pred, 2)      # predictions printed with two digits meet the grid of thresholds
weighted <- c(fine, list(weights = grid(runif(n, 0.5, 3), 8))); counted <- c(fine, list(weights = rep(c(1, 2, 1, 3, 1), 8)[c(3:40, 1:2)]))
gaps <- fine; gaps$pred[c(3, 9), 2, 1] <- NaN; gaps$pred[20, , 1] <- NaN
score <- fine; score$pred <- 8 * fine$pred - 4; score$kind <- "score"; score$threshold <- NULL
named <- fine; named$labels <- ifelse(y == 1, "case", "healthy"); named$positive <- "case"
single <- fine; single$pred <- fine$pred[, 2, , drop = FALSE]
even <- fine; even$pred <- fine$pred[1:36, , , drop = FALSE]; even$labels <- rep(c(0, 1, 0), 12)   # of 24 and 12: rates that meet the grid but for rounding
twenty <- fine; twenty$pred <- noisy(3, 1, 4096, 0.05); twenty$labels <- rep(c(0, 1), 20)           # rates of k / 20 are on the grid
repeats <- fine; repeats$pred <- noisy(3, 2, 4096)
sets <- list(fine = fine, tied = tied, decimal = decimal, weighted = weighted, counted = counted, gaps = gaps, score = score, named = named, single = single, even = even, twenty = twenty, repeats = repeats)
for (name in names(sets)) add_data(name, sets[[name]])
use <- curve_of("roc_curve", fine, "auc", matrix(rep(c(2, 0), 20), 1), opts())$selected + 1   # other software on the same numbers
other <- roc(y, fine$pred[, use, 1], levels = c(0, 1), direction = "<", quiet = TRUE)
at <- rate[abs(rate * 24 - round(rate * 24)) > 1e-6]; stopifnot(abs(sapply(at, function(x) roc_at(y == 1, fine$pred[, use, 1], rep(1, n))[1 + round(100 * x)]) - sapply(at, function(x) coords(other, 1 - x, "specificity", "sensitivity")[1, 1])) < 1e-12)
for (j in 1:4) { p <- fine$pred[, j, 1]; fit <- lowess(p, y, f = 2 / 3, iter = 0, delta = 0); stopifnot(abs(pmin(pmax(fit$y, 0), 1) - sapply(fit$x, local_line, y == 1, p, rep(1, n))) < 1e-12) }
steps <- sort(unique(cumsum(rep(1 / 16, 16)))); stopifnot(abs(mean(sapply(steps, function(r) { p <- fine$pred[, use, 1]; t <- sort(p[y == 1], decreasing = TRUE)[round(16 * r)]; mean(y[p >= t]) })) - pooled_score(fine, "average_precision", use)) < 1e-12)

# --- vectors ----------------------------------------------------------------------------------------------------------------------
some <- function(d, by, o, want = 20, cross = FALSE) {     # draws that choose without ties and leave both classes out
  m <- n_of(d); pos <- d$labels == d$positive; kept <- NULL; seen <- apply(!is.na(d$pred), 1, any)
  while (is.null(kept) || nrow(kept) < want) {
    w <- tabulate(sample(m, m, TRUE), m); out <- w == 0 & seen
    if (min(sum(out & pos), sum(out & !pos)) < 2 || min(sum(w[pos & seen] > 0), sum(w[!pos & seen] > 0)) < 2) next
    plain <- modifyList(o, list(tied_ok = FALSE)); which_repeats <- if (cross) seq_len(r_of(d)) else list(seq_len(r_of(d)))
    if (all(sapply(which_repeats, function(r) !inherits(try(decide(d, by, w * case_weights(d), plain, r), silent = TRUE), "try-error")))) kept <- rbind(kept, w)
  }
  unname(kept)
}
plain <- lapply(setdiff(names(sets), "repeats"), function(set) list(name = set, set = set, by = "auc", o = opts()))
others <- list(list(name = "by_brier", set = "fine", by = "brier", o = opts()), list(name = "ensemble", set = "fine", by = "brier", o = opts(mix = ensemble(4))),
               list(name = "recalibrated", set = "fine", by = "brier", o = opts(recalibrate("logistic"))), list(name = "isotonic", set = "fine", by = "brier", o = opts(recalibrate("isotonic"))))
WHICH <- list(roc_curve = c(sapply(c(plain, others), function(it) it$name)), precision_recall_curve = c("fine", "tied", "counted", "gaps", "score", "twenty", "ensemble"), decision_curve = c("fine", "decimal", "counted", "weighted", "gaps", "named", "recalibrated", "isotonic"),
              calibration_curve = c("fine", "counted", "weighted", "gaps", "even", "recalibrated"))
for (fun in names(CURVES)) for (it in c(plain, others)) {
  set <- it$set; by <- it$by; o <- it$o; d <- sets[[set]]; label <- paste(fun, it$name, sep = "_")
  if (!(it$name %in% unlist(WHICH[[fun]]))) next
  draw_sets[[label]] <- some(d, by, o)
  extra <- list(); if (length(o$steps)) extra$adjust <- lapply(o$steps, function(s) s$json); if (!is.null(o$mix)) extra$mixture <- o$mix$json
  add(label, "curve of the decision on all samples, and anchored: plus the mean over draws of [the draw's decision - the decision on all samples], both on the samples left out; clipped; ROC: less next to 1, made monotone by isotonic regression", fun,
      c(list(data = set, draws = label), extra, list(arguments = list(by = by, rng = 1))), curve_of(fun, d, by, draw_sets[[label]], o), tolerance = if (length(o$steps)) 1e-9 else 1e-10)
}
for (fun in setdiff(names(CURVES), "calibration_curve")) {
  label <- paste0(fun, "_repeats"); draw_sets[[label]] <- some(repeats, "auc", opts())
  add(label, "within each repeat, then averaged", fun, list(data = "repeats", draws = label, arguments = list(by = "auc", rng = 1)), curve_of(fun, repeats, "auc", draw_sets[[label]], opts()))
}
for (fun in names(CURVES)) for (set in c("fine", "counted")) {
  by <- "auc"; draws <- draw_sets[[paste(fun, set, sep = "_")]]; found <- limits_of(fun, sets[[set]], by, draws, opts(), 1.2)
  axis <- switch(fun, roc_curve = "false_positive_rate", precision_recall_curve = "recall", decision_curve = "threshold", "predicted"); place <- (if (fun == "decision_curve") risk else rate)[found$known]
  add(paste0(fun, "_limits_", set), "limits at each point: V = 1.2 c (1 - c) / n + V_s with n = naive (1 - naive) / v, Wilson's on the range mapped to [0, 1] (net benefit: [-t / (1 - t), 1]), the upper at least that of n / 1.2 samples at the naive value; points next to 0 and 1 left out", fun,
      list(data = set, draws = paste(fun, set, sep = "_"), arguments = list(by = by, rng = 1), order = setNames(list(place), axis)), found$expected)
}

# --- ten groups of equal size ---------------------------------------------------------------------------------------------------------
binned <- function(d, by) {
  made <- decide(d, by, case_weights(d), opts()); p <- made$data$pred[, 1, 1]; use <- !is.na(p); p <- p[use]; pos <- (d$labels == d$positive)[use]; rows <- rep(seq_along(p), case_weights(d)[use])
  q <- quantile(p[rows], (0:10) / 10, type = 7, names = FALSE); bin <- sapply(p, function(x) max(1, which(x <= q[-1] + 1e-12)[1])); w <- case_weights(d)[use]
  of <- function(x) sapply(1:10, function(k) if (any(bin == k)) sum((w * x)[bin == k]) / sum(w[bin == k]) else NaN)
  list(predicted = of(p), observed = of(pos), n = sapply(1:10, function(k) sum(w[bin == k])), naive = of(pos), selected = made$index - 1)
}
draw_sets$binned <- some(fine, "log_loss", opts(), 16)
for (set in c("fine", "tied", "counted", "gaps", "even", "twenty")) { m <- n_of(sets[[set]]); draw_sets[[paste0("binned_", set)]] <- some(sets[[set]], "log_loss", opts(), 16)
  add(paste0("calibration_binned_", set), "groups bounded by the deciles (type 7) of the winner's probabilities, upper bounds belong to a group; an empty group is NaN", "calibration_curve",
      list(data = set, draws = paste0("binned_", set), arguments = list(binned = TRUE, rng = 1)), binned(sets[[set]], "log_loss")) }
draw_sets$binned <- NULL
draw_sets$cross <- some(repeats, "brier", opts(), cross = TRUE)
add("decision_curve_cross", "one repeat decides in the bag, the other judges out of it", "decision_curve", list(data = "repeats", draws = "cross", arguments = list(by = "brier", rng = 1)), curve_of("decision_curve", repeats, "brier", draw_sets$cross, opts(), cross = TRUE))
# --- ten groups at a horizon: Kaplan-Meier's estimate of the events by then in each ------------------------------------------------------
suppressPackageStartupMessages(library(survival)); set.seed(24)
bins_at <- function(d, p, w, t) {                         # p: probabilities to survive t; weights are rows; NaN for an empty group, or when its last one was lost from sight before t
  use <- w > 0 & !is.na(p); risk <- 1 - p[use]; rows <- rep(seq_along(risk), w[use]); time <- d$labels[use][rows]; event <- d$event[use][rows]; risk <- risk[rows]
  q <- quantile(risk, (0:10) / 10, type = 7, names = FALSE); bin <- sapply(risk, function(x) which(x <= q[-1] + 1e-12)[1])
  observed <- sapply(1:10, function(k) { mine <- bin == k
    if (!any(mine)) return(NaN)
    last <- max(time[mine]); if (last < t && any(event[mine & time == last] == 0)) return(NaN)
    1 - summary(survfit(Surv(time[mine], event[mine]) ~ 1), times = t, extend = TRUE)$surv })
  list(observed = observed, predicted = sapply(1:10, function(k) if (any(bin == k)) mean(risk[bin == k]) else NaN), n = sapply(1:10, function(k) sum(bin == k)))
}
m <- 160; late <- rexp(m, 0.15); lost <- rexp(m, 0.05) + 1; time <- round(4 * pmin(late, lost)) / 4 + 0.25; event <- as.numeric(late <= lost); time[event == 0][1:2] <- 5   # lost from sight at the horizon
seen <- array(pmin(pmax(grid(exp(-0.15 * 5 * exp(sapply(1:3, function(j) 0.5 * (1.5 - log(late)) * c(0.6, 1, 1.4)[j] + 0.5 * rnorm(m)))), 4096), 1 / 4096), 4095 / 4096), c(m, 3, 1))
timed <- list(pred = seen, labels = time, kind = "probability", event = event); coarse <- timed; coarse$pred <- grid(seen, 16); holes <- timed; holes$pred[7, , ] <- NaN; holes$pred[c(3, 50), 2, ] <- NaN
timed_sets <- list(timed = timed, timed_tied = coarse, timed_counted = c(timed, list(weights = rep(c(1, 2, 1, 3), 40))), timed_gaps = holes)
stopifnot(any(event[time == 5] == 1), mean(event[time < 5] == 0) > 0.1)
for (set in names(timed_sets)) {
  d <- timed_sets[[set]]; by <- "survival_brier(time = 5)"; case <- case_weights(d); known <- apply(!is.na(d$pred), 1, any); final <- decide(d, by, case, opts()); found <- bins_at(d, final$data$pred[, 1, 1], case, 5)
  data_sets[[set]] <- c(list(predictions = d$pred, horizon = I(5)), d[setdiff(names(d), "pred")]); kept <- change <- NULL
  while (is.null(kept) || nrow(kept) < 12) {              # draws that choose without ties, and leave somebody in every group
    w <- tabulate(sample(m, m, TRUE), m); made <- try(decide(d, by, w * case, opts(tied_ok = FALSE)), silent = TRUE); if (inherits(made, "try-error")) next
    out <- (w == 0 & known) * case; gap <- bins_at(d, made$data$pred[, 1, 1], out, 5)$observed - bins_at(d, final$data$pred[, 1, 1], out, 5)$observed
    if (!any(is.nan(gap[!is.nan(found$observed)]))) { kept <- rbind(kept, w); change <- cbind(change, gap) }
  }
  draw_sets[[paste0("binned_", set)]] <- unname(kept)
  add(paste0("calibration_binned_", set), "at the horizon 5: groups bounded by the deciles of the predicted risk, Kaplan-Meier's estimate in each (survival's survfit); anchored", "calibration_curve",
      list(data = set, draws = paste0("binned_", set), arguments = list(binned = TRUE, horizon = 5, rng = 1)),
      c(found, list(naive = found$observed, estimate = pmin(pmax(found$observed + rowMeans(change), 0), 1), selected = final$index - 1)))
}
write_vectors("curves.json", "Curves of the winner: naive and anchored.", c("pROC", "survival"))

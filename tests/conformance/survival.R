# Conformance vectors of survival: Uno's concordance, time-dependent AUC, Brier score and observed / expected at a horizon.
# Run: Rscript tests/conformance/survival.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
suppressPackageStartupMessages({ library(survival); library(riskRegression) })
set.seed(22)
at <- function(metric, time) sprintf("%s(time = %g)", metric, time)
ranked <- function(times) c("uno_concordance", at("truncated_concordance", times), at("survival_auc", times))
told <- function(times) c(at("survival_brier", times), at("survival_observed_expected", times))
label_of <- function(m) gsub("[^a-z0-9_]+", "_", sub("\\)", "", sub("time = ", "", m)))

# --- risks: one number per sample --------------------------------------------------------------------------------------------------
n <- 36; time <- pmin(round(rexp(n, 0.12)) + 1, 16); event <- rep(c(1, 1, 0, 1, 0, 1), 6); time[event == 0][1:4] <- time[event == 1][1:4]   # censorings at the time of an event
stopifnot(sum(table(time) > 1) > 4, any(time[event == 1] == 5))
risk <- array(sapply(1:3, function(j) grid(-time / 8 + rnorm(n), 2)), c(n, 3, 1))
risks <- list(pred = risk, labels = time, kind = "score", event = event)
for (j in 1:3) {                                          # other software on the same numbers
  r <- risk[, j, 1]; stopifnot(abs(pooled_score(risks, "uno_concordance", j) - concordance(Surv(time, event) ~ r, reverse = TRUE, timewt = "n/G2")$concordance) < 1e-12)
  stopifnot(abs(pooled_score(risks, at("truncated_concordance", 6.5), j) - concordance(Surv(time, event) ~ r, reverse = TRUE, timewt = "n/G2", ymax = 6.5)$concordance) < 1e-12)
}
score_all <- function(label, about, set, d, metrics, input = as_input(d), average = "pooled") {
  data_sets[[set]] <<- input
  for (m in metrics) { own <- if (is.null(d$at)) d else d$at(m)
    add(paste(label_of(m), label, sep = "_"), about, "score", list(data = set, metric = written(m), arguments = list(average = average)), list(value = if (average == "pooled") pooled_scores(own, m) else fold_scores(own, m))) }
}
times <- c(3, 5, 8)
score_all("risk", "tied times and risks, censored at the time of events; 5 is the time of an event", "risk", risks, ranked(times))
weights <- rep(c(1, 3, 0, 2), 9); whole <- c(risks, list(weights = weights)); real <- c(risks, list(weights = grid(runif(n, 0.2, 4), 8)))
score_all("whole_weights", "whole case weights: rows repeated so often, also for the censoring distribution", "risk_whole_weights", whole, ranked(times))
score_all("real_weights", "case weights that are not whole", "risk_real_weights", real, ranked(times))
rows <- rep(seq_len(n), weights); repeated <- list(pred = risk[rows, , , drop = FALSE], labels = time[rows], kind = "score", event = event[rows])
for (m in ranked(times)) stopifnot(abs(pooled_scores(repeated, m) - pooled_scores(whole, m)) < 1e-12)
late <- risks; late$pred <- -risk; late$kind <- "value"
score_all("predicted_time", "predicted times: the earlier, the higher the risk", "predicted_time", late, ranked(5))
gaps <- risks; gaps$pred[c(4, 11, 17), 2, 1] <- NaN; gaps$pred[8, , 1] <- NaN
score_all("missing", "who was not predicted is in no pair, and not in the censoring distribution of that configuration", "risk_missing", gaps, ranked(5))
twice <- risks; twice$pred <- array(c(risk, grid(risk + rnorm(length(risk)), 2)), c(n, 3, 2)); twice$folds <- cbind(rep(0:1, 18), rep(0:1, each = 18))
score_all("repeats", "within each repeat, then averaged", "risk_repeats", twice, ranked(5))
score_all("folds", "within each fold, its own censoring distribution, then averaged", "risk_repeats", twice, ranked(5), average = "fold")
everyone <- risks; everyone$event <- rep(1, n)
score_all("no_censoring", "nobody censored: Harrell's concordance, and the plain AUC of having had the event", "no_censoring", everyone, ranked(5))
stopifnot(abs(pooled_scores(everyone, "uno_concordance") - pooled_scores(everyone, "concordance")) < 1e-12, abs(pooled_scores(everyone, at("survival_auc", 5))[1] - one_auc(time <= 5, risk[, 1, 1], rep(1, n))) < 1e-12)
nobody <- risks; nobody$event <- rep(0, n)
score_all("no_events", "no events: undefined", "no_events", nobody, ranked(5))
score_all("early", "before the first event, after the last time, at the last time: no cases or no controls", "risk", risks, c(at("truncated_concordance", c(0.5, 1, 40)), at("survival_auc", c(0.5, 16, 40))))
few <- list(pred = array(c(3, 2, 2, 1, 1, 3, 2, 2), c(4, 2, 1)), labels = c(1, 2, 2, 3), kind = "score", event = c(0, 1, 0, 0))
score_all("one_event", "a single event, tied with a censoring", "one_event", few, ranked(2))

# --- probabilities to survive each of several horizons ------------------------------------------------------------------------------------
level <- array(0, c(n, 3, 3)); hard <- rep(c(0.75, 1, 1.5), 3)
for (j in 1:3) { z <- rnorm(n); for (h in 1:3) level[, j, h] <- pmin(pmax(grid(exp(-0.1 * hard[j] * times[h] * exp(0.6 * (risk[, j, 1] - mean(risk[, j, 1])) + 0.3 * z)), 64), 1 / 64), 63 / 64) }
with_horizons <- function(level, ...) { d <- list(labels = time, kind = "probability", event = event, ...); d$pred <- level[, , 1, drop = FALSE]
  d$at <- function(m) { own <- d; t <- arguments_of(m)$time; own$pred <- array(level[, , match(t, times)], c(dim(level)[1:2], 1)); own$at <- NULL; own }; d }
written_out <- function(level, d) c(list(predictions = level, horizon = times), d[setdiff(names(d), c("pred", "at"))])
probs <- with_horizons(level); at_time <- c(told(times), at("survival_auc", times))
for (h in 1:3) {                                          # other software on the same numbers
  frame <- data.frame(time = time, event = event); one <- lapply(1:3, function(j) matrix(1 - level[, j, h], ncol = 1)); names(one) <- c("a", "b", "c")
  found <- suppressWarnings(suppressMessages(Score(one, formula = Surv(time, event) ~ 1, data = frame, times = times[h], metrics = c("auc", "brier"), null.model = FALSE, se.fit = FALSE, cens.method = "ipcw", cens.model = "km")))
  stopifnot(max(abs(found$Brier$score$Brier - pooled_scores(probs$at(at("survival_brier", times[h])), at("survival_brier", times[h]))) ) < 1e-12, max(abs(found$AUC$score$AUC - pooled_scores(probs$at(at("survival_auc", times[h])), at("survival_auc", times[h])))) < 1e-12)
  km <- 1 - summary(survfit(Surv(time, event) ~ 1), times = times[h])$surv; stopifnot(abs(km / colMeans(1 - level[, , h]) - pooled_scores(probs$at(at("survival_observed_expected", times[h])), at("survival_observed_expected", times[h]))) < 1e-12)
}
score_all("horizon", "probabilities to survive 3, 5 and 8", "horizon", probs, at_time, written_out(level, probs))
for (it in list(list("horizon_whole_weights", weights), list("horizon_real_weights", real$weights))) { d <- with_horizons(level, weights = it[[2]]); score_all(it[[1]], "with case weights", it[[1]], d, at_time, written_out(level, d)) }
holes <- level; holes[c(4, 11), 2, ] <- NaN; holes[8, , ] <- NaN; d <- with_horizons(holes); score_all("horizon_missing", "missing predictions", "horizon_missing", d, at_time, written_out(holes, d))
all_seen <- probs; all_seen$event <- rep(1, n); all_seen$at <- function(m) { own <- probs$at(m); own$event <- rep(1, n); own }
score_all("horizon_no_censoring", "nobody censored: the plain Brier score", "horizon_no_censoring", all_seen, at_time, { w <- written_out(level, probs); w$event <- rep(1, n); w })
stopifnot(abs(pooled_scores(all_seen$at(at("survival_brier", 5)), at("survival_brier", 5)) - colMeans((level[, , 2] - (time > 5))^2)) < 1e-12)

# --- chosen and judged ------------------------------------------------------------------------------------------------------------------------
big <- 60; y <- pmin(round(4 * rexp(big, 0.12)) / 4 + 1, 16); e <- rep(c(1, 1, 0, 1, 0, 1), 10)
more <- list(pred = array(sapply(1:4, function(j) grid(-y / 6 + rnorm(big), 1024)), c(big, 4, 1)), labels = y, kind = "score", event = e); more2 <- more; more2$pred <- array(grid(-y / 6 + rnorm(big * 6), 1024), c(big, 3, 2))
heavy <- c(more, list(weights = rep(c(1, 2, 1, 3), 15)))
sets <- list(chosen = more, chosen_repeats = more2, chosen_weighted = heavy); for (name in names(sets)) add_data(name, sets[[name]])
ok <- function(d, by, metrics, w) !inherits(try({ made <- decide(d, by, w * case_weights(d), opts(tied_ok = FALSE)); out <- (w == 0) * case_weights(d); stopifnot(!is.nan(sapply(metrics, function(m) judged(made, m, out)))) }, silent = TRUE), "try-error")
some <- function(d, by, metrics, want = 15) { kept <- NULL; tries <- 0; while (is.null(kept) || nrow(kept) < want) { tries <- tries + 1; stopifnot(tries < 300); w <- tabulate(sample(n_of(d), n_of(d), TRUE), n_of(d)); if (ok(d, by, metrics, w)) kept <- rbind(kept, w) }; unname(kept) }
for (set in names(sets)) for (by in c("uno_concordance", at("truncated_concordance", 6), at("survival_auc", 5))) {
  d <- sets[[set]]; m <- unique(c(by, "concordance", at("survival_auc", 5))); name <- paste(set, label_of(by), sep = "_"); draw_sets[[name]] <- some(d, by, m)
  vector(paste0("bbc_", name), "censoring weights estimated again from what is drawn, and from what is left out", "bbc", set, m, by, opts(), bbc_of(d, by, m, draw_sets[[name]], opts()), draws = name)
  x <- anchored_of(d, by, m, draw_sets[[name]], opts())
  vector(paste0("winner_", name), "the same, anchored", "winner", set, m, by, opts(), x[c("estimate", "naive", "bbc_plain", "selected", "optimism")], draws = name, arguments = list(rng = 1))
}
levels2 <- array(pmin(pmax(grid(exp(-0.1 * 5 * exp(0.5 * (array(sapply(1:3, function(j) -y / 6 + rnorm(big)), c(big, 3, 1)) + 1))), 1024), 1 / 1024), 1023 / 1024), c(big, 3, 1))
scored <- list(pred = levels2, labels = y, kind = "probability", event = e); data_sets$chosen_horizon <- list(predictions = levels2, horizon = I(5), labels = y, event = e, kind = "probability")
by <- at("survival_brier", 5); m <- c(by, at("survival_auc", 5), at("survival_observed_expected", 5)); draw_sets$chosen_horizon <- some(scored, by, m)
vector("bbc_chosen_horizon", "chosen by the Brier score at 5; observed / expected has a target: the median over draws", "bbc", "chosen_horizon", m, by, opts(), bbc_of(scored, by, m, draw_sets$chosen_horizon, opts()), draws = "chosen_horizon")
write_vectors("survival.json", "Survival with censoring weights.", c("survival", "riskRegression"))

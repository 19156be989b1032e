# Conformance vectors of separate sampling: AUC within the same model, metrics at a prior. Run: Rscript tests/conformance/separate.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")); source(file.path(here, "decide.R")) })
set.seed(23)
# d: pred sample x configuration x partner x repeat, labels 0 / 1, folds sample x repeat (numbered from 0 within each class). A sample
# of class 0 in fold i has its prediction under the model without (i, j) at partner j; one of class 1 in fold j at partner i.
same_model <- function(d, j, weight, repeats = seq_len(dim(d$pred)[4])) mean(sapply(repeats, function(r) {
  won <- 0; pairs <- 0
  for (x in which(d$labels == 0 & weight > 0)) for (z in which(d$labels == 1 & weight > 0)) {
    low <- d$pred[x, j, d$folds[z, r] + 1, r]; high <- d$pred[z, j, d$folds[x, r] + 1, r]
    if (is.na(low) || is.na(high)) next
    w <- weight[x] * weight[z]; pairs <- pairs + w; won <- won + w * (if (high > low) 1 else if (high == low) 0.5 else 0)
  }
  if (pairs == 0) NaN else won / pairs
}))
by_model <- function(d, j, weight) mean(sapply(seq_len(dim(d$pred)[4]), function(r) {
  each <- c()
  for (i in unique(d$folds[d$labels == 0, r])) for (k in unique(d$folds[d$labels == 1, r])) { own <- weight * ifelse(d$labels == 0, d$folds[, r] == i, d$folds[, r] == k); each <- c(each, same_model(d, j, own, r)) }
  mean(each)
}))
case_of <- function(d) if (is.null(d$weights)) rep(1, length(d$labels)) else d$weights
complete <- function(d) sapply(seq_len(dim(d$pred)[2]), function(j) !any(as.vector(is.na(d$pred[, j, , ])) & !as.vector(apply(is.na(d$pred), c(1, 3, 4), all))))
aucs <- function(d, weight = case_of(d)) sapply(seq_len(dim(d$pred)[2]), function(j) same_model(d, j, weight))
run <- function(d, draws, tied_ok = TRUE) {
  case <- case_of(d); scores <- aucs(d); best <- first_best(scores, "auc", complete(d)); C <- length(scores)
  one <- sapply(seq_len(nrow(draws)), function(b) { j <- first_best(aucs(d, draws[b, ] * case), "auc", complete(d), tied_ok); out <- (draws[b, ] == 0) * case; c(same_model(d, j, out), same_model(d, best, out), j) })
  stopifnot(!is.nan(one)); q <- function(p) unname(quantile(one[1, ], p, type = 7))
  list(bbc = list(estimate = mean(one[1, ]), std_error = sd(one[1, ]), conf_low = q(0.025), conf_high = q(0.975), naive = scores[best], optimism = scores[best] - mean(one[1, ]), selected = best - 1, win_rate = sapply(seq_len(C), function(j) mean(one[3, ] == j)), n_draws = nrow(draws)),
       winner = list(estimate = min(max(scores[best] + mean(one[1, ] - one[2, ]), 0), 1), bbc_plain = mean(one[1, ]), naive = scores[best], selected = best - 1))
}
inside <- function(d, times, untied) {                    # draws within each class that leave some of both out
  kept <- NULL; zero <- which(d$labels == 0); one <- which(d$labels == 1)
  while (is.null(kept) || nrow(kept) < times) {
    w <- tabulate(c(sample(zero, length(zero), TRUE), sample(one, length(one), TRUE)), length(d$labels)); out <- (w == 0) * case_of(d)
    if (is.nan(same_model(d, 1, out)) || any(is.nan(aucs(d, w * case_of(d))))) next
    if (untied && inherits(try(first_best(aucs(d, w * case_of(d)), "auc", complete(d), FALSE), silent = TRUE), "try-error")) next
    kept <- rbind(kept, w)
  }
  unname(kept)
}
fill <- function(folds, y, k0, k1, C, R, step, signal = 0.15) {
  pred <- array(NaN, c(length(y), C, max(k0, k1), R))
  for (i in seq_along(y)) for (j in seq_len(C)) for (r in seq_len(R)) { base <- 0.5 + signal * (2 * y[i] - 1) * (1 + j / 4) + 0.15 * rnorm(1)
    for (q in seq_len(if (y[i] == 0) k1 else k0)) pred[i, j, q, r] <- min(max(grid(base + 0.12 * rnorm(1), step), 1 / step), 1 - 1 / step) }
  pred
}
as_json <- function(d) c(list(predictions = if (dim(d$pred)[4] == 1) array(d$pred, dim(d$pred)[1:3]) else d$pred, folds = if (ncol(d$folds) == 1) d$folds[, 1] else d$folds, partner = TRUE), d[setdiff(names(d), c("pred", "folds"))])
y <- c(rep(0, 11), rep(1, 13)); uneven <- matrix(c(rep(0:1, c(4, 7)), rep(0:2, c(3, 6, 4))), ncol = 1)
base <- list(labels = y, kind = "probability", positive = 1, threshold = 0.5)
k23 <- c(list(pred = fill(uneven, y, 2, 3, 3, 1, 4096), folds = uneven), base)
tied <- c(list(pred = fill(uneven, y, 2, 3, 3, 1, 8), folds = uneven), base)
square <- matrix(c(rep(0:2, length.out = 11), rep(0:2, length.out = 13)), ncol = 1); k33 <- c(list(pred = fill(square, y, 3, 3, 3, 1, 4096), folds = square), base)
twofold <- cbind(uneven, uneven[c(11:1, 24:12), 1]); repeats <- c(list(pred = fill(twofold, y, 2, 3, 3, 2, 4096), folds = twofold), base)
weighted <- c(k23, list(weights = grid(runif(24, 0.5, 3), 8))); counted <- c(k23, list(weights = rep(c(1, 2, 3, 1), 6)))
gaps <- k23; gaps$pred[5, 2, 1, 1] <- NaN; gaps$pred[20, 2, , 1] <- NaN; gaps$pred[9, , , 1] <- NaN
renumbered <- k23; renumbered$folds[, 1] <- ifelse(y == 0, 1 - uneven[, 1], c(2, 0, 1)[uneven[, 1] + 1])   # other numbers for the same folds
for (i in 1:24) { own <- k23$pred[i, , , 1]; if (y[i] == 0) renumbered$pred[i, , c(3, 1, 2), 1] <- own else renumbered$pred[i, , c(2, 1), 1] <- own[, 1:2] }
stopifnot(abs(aucs(renumbered) - aucs(k23)) < 1e-15)
many <- matrix(c(0:10, 0:12), ncol = 1); alone <- c(list(pred = fill(many, y, 11, 13, 2, 1, 64), folds = many), base)             # leave one out of each class
score <- k23; score$pred <- 4 * k23$pred - 2; score$kind <- "score"; score$threshold <- NULL
sets <- list(k23 = k23, tied = tied, k33 = k33, repeats = repeats, weighted = weighted, counted = counted, gaps = gaps, renumbered = renumbered, alone = alone, score = score)
for (set in names(sets)) {
  d <- sets[[set]]; data_sets[[set]] <- as_json(d); input <- list(data = set, metric = "auc"); full <- !any(apply(is.na(d$pred), 2, sum) > min(apply(is.na(d$pred), 2, sum)))
  add(paste0("same_model_score_", set), "class-0 samples of U_i against class-1 samples of V_j under the model without (i, j), over all pairs of samples", "score", input, list(value = aucs(d)))
  best <- first_best(aucs(d), "auc", complete(d)); add(paste0("same_model_cvt_", set), "the best of them", "cvt", input, list(estimate = aucs(d)[best], selected = best - 1))
  if (full) add(paste0("same_model_fold_", set), "the mean over models (i, j) of their AUC", "score", c(input, list(arguments = list(average = "fold"))), list(value = sapply(seq_len(dim(d$pred)[2]), function(j) by_model(d, j, case_of(d)))))
  draw_sets[[set]] <- if (set %in% c("renumbered", "score")) draw_sets$k23 else inside(d, 20, TRUE); found <- run(d, draw_sets[[set]], FALSE)
  add(paste0("same_model_bbc_", set), "chosen in the bag, judged out of it", "bbc", c(input, list(draws = set)), found$bbc)
  if (set != "alone") add(paste0("same_model_winner_", set), "anchored", "winner", c(input, list(draws = set, arguments = list(rng = 1))), if (set == "repeats") found$winner[c("naive", "selected", "bbc_plain")] else found$winner)
  if (!(set %in% c("gaps", "alone"))) { case <- case_of(d); all_of <- seq_len(dim(d$pred)[4])
    spread <- function(repeats) var(sapply(seq_len(nrow(draw_sets[[set]])), function(b) same_model(d, 1, draw_sets[[set]][b, ] * case, repeats) - same_model(d, 2, draw_sets[[set]][b, ] * case, repeats)))
    add(paste0("same_model_contrast_", set), "two configurations fixed in advance, a - b", "contrast", c(input, list(draws = set, arguments = list(a = 0, b = 1))), list(estimate = aucs(d)[1] - aucs(d)[2], std_error = sqrt((spread(all_of) + 1.25 * mean(sapply(all_of, spread))) * 24 / 23))) }
}

# --- metrics at a prior: every class counts by its share in the population; a sample by the mean over its partners ------------------------------
at_prior <- function(metric, d, j, share, given = NULL) mean(sapply(seq_len(dim(d$pred)[4]), function(r) {
  case <- case_of(d); p <- d$pred[, j, , r, drop = FALSE]; p <- matrix(p, nrow = length(d$labels)); known <- apply(!is.na(p), 1, any)
  total <- function(value) { s <- apply(value, 1, mean, na.rm = TRUE); sum(sapply(0:1, function(k) { own <- d$labels == k & known; c(1 - share, share)[k + 1] * sum(case[own] * s[own]) / sum(case[own]) })) }   # mean in the population
  one <- matrix(d$labels == 1, nrow(p), ncol(p)); of_truth <- ifelse(one, p, 1 - p); called <- ifelse(is.na(p), NaN, p > 0.5); tp <- total(called * one); fp <- total(called * !one)
  switch(metric, accuracy = tp + 1 - share - fp, error_rate = 1 - (tp + 1 - share - fp), brier = total((p - one)^2), log_loss = total(-log(pmax(of_truth, 2^-52))), ppv = tp / (tp + fp), precision = tp / (tp + fp), npv = (1 - share - fp) / (1 - tp - fp), f1 = 2 * tp / (share + tp + fp),
         net_benefit = { t <- given; up <- ifelse(is.na(p), NaN, p > t); total(up * one) - total(up * !one) * t / (1 - t) }, kappa = { right <- tp + 1 - share - fp; chance <- share * (tp + fp) + (1 - share) * (1 - tp - fp); (right - chance) / (1 - chance) },
         mcc = (tp * (1 - share - fp) - fp * (share - tp)) / sqrt((tp + fp) * share * (1 - share) * (1 - tp - fp)), sensitivity = tp / share, balanced_accuracy = (tp / share + 1 - fp / (1 - share)) / 2)
}))
priors <- c("accuracy", "error_rate", "brier", "log_loss", "ppv", "precision", "npv", "f1", "kappa", "mcc", "sensitivity", "balanced_accuracy", "net_benefit")
ordinary <- list(pred = array(k23$pred[, , 1, 1], c(24, 3, 1, 1)), labels = y, kind = "probability", positive = 1, threshold = 0.5, folds = matrix(rep(0:3, 6), ncol = 1)); heavy <- c(ordinary, list(weights = weighted$weights))
plain_json <- function(d) c(list(predictions = d$pred[, , 1, 1], folds = d$folds[, 1]), d[setdiff(names(d), c("pred", "folds"))]); data_sets$ordinary <- plain_json(ordinary); data_sets$heavy <- plain_json(heavy)
all_sets <- c(sets[c("k23", "weighted", "repeats", "tied")], list(ordinary = ordinary, heavy = heavy))
written_prior <- function(m, share) list(at_prior = list(metric = if (m == "net_benefit") list(net_benefit = list(threshold = 0.25)) else m, prior = list("1" = share)))
for (set in names(all_sets)) for (m in priors) for (share in if (set %in% c("k23", "ordinary")) c(0.02, 0.5, 0.999) else 0.125) { d <- all_sets[[set]]
  add(gsub("[^a-z0-9_]", "_", paste("at_prior", m, share, set, sep = "_")), "every class by its share in the population; a sample by the mean over its partners", "score", list(data = set, metric = written_prior(m, share)), list(value = sapply(seq_len(dim(d$pred)[2]), function(j) at_prior(m, d, j, share, 0.25)))) }
whole <- ordinary; whole$weights <- ifelse(y == 1, 0.125 / 13, 0.875 / 11) * 24; plain <- list(pred = array(whole$pred[, , , 1], c(24, 3, 1)), labels = y, kind = "probability", positive = 1, threshold = 0.5, weights = whole$weights, risk = 0.25)
for (m in priors) stopifnot(abs(pooled_scores(plain, m) - sapply(1:3, function(j) at_prior(m, ordinary, j, 0.125, 0.25))) < 1e-12)     # the plain metric under weights
for (m in c("brier", "accuracy", "ppv")) for (set in c("k23", "ordinary")) {
  d <- all_sets[[set]]; s <- sign_of(m); value <- function(w, j) { own <- d; use <- w > 0; own$pred <- d$pred[use, , , , drop = FALSE]; own$labels <- y[use]; own$folds <- d$folds[use, , drop = FALSE]; own$weights <- w[use]; at_prior(m, own, j, 0.125) }
  w1 <- draw_sets$k23; keep <- c(); result <- NULL
  for (b in seq_len(nrow(w1))) { inside_value <- sapply(1:3, function(j) value(w1[b, ], j)); best <- s * inside_value; if (any(is.nan(best)) || sum(max(best) - best < 1e-9) != 1) next
    v <- value(as.numeric(w1[b, ] == 0), which.max(best)); if (is.nan(v)) next; keep <- c(keep, b); result <- c(result, v) }
  all_in <- sapply(1:3, function(j) value(rep(1, 24), j)); best <- which.max(s * all_in); stopifnot(length(keep) > 5); name <- paste("prior", m, set, sep = "_"); draw_sets[[name]] <- w1[keep, ]
  add(paste0("bbc_at_", name), "chosen and judged at the prior", "bbc", list(data = set, metric = written_prior(m, 0.125), draws = name), list(estimate = mean(result), naive = all_in[best], selected = best - 1, optimism = s * (all_in[best] - mean(result))))
}
write_vectors("separate.json", "Separate sampling: AUC of the same model, metrics at a prior.")

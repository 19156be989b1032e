# Conformance vectors of selection, comparison and pitfalls. Run: Rscript tests/conformance/choices.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")) })
set.seed(11)
as3 <- function(m) array(m, c(dim(m), 1))
case <- function(set, metric, ...) list(data = set, metric = metric, ...)
n <- 24
y <- rep(c(0, 1, 1, 0, 1, 0), 4)
noisy <- function(C, sd = 0.35) as3(sapply(seq_len(C), function(i) pmin(pmax(grid(0.5 + 0.22 * (2 * y - 1) + sd * rnorm(n), 32), 1 / 32), 31 / 32)))
prob <- list(pred = noisy(5), labels = y, kind = "probability", positive = 1, threshold = 0.5, folds = matrix(rep(0:3, c(3, 9, 5, 7)), ncol = 1))
z <- grid(rnorm(n, 0, 2))
value <- list(pred = as3(sapply(1:6, function(j) grid(z + (0.7 + 0.15 * j) * rnorm(n)))), labels = z, kind = "value", folds = prob$folds)
sets <- list(uneven = prob, uneven_values = value)
draws <- some_draws(n, 40); draw_sets$forty <- draws
for (name in names(sets)) add_data(name, sets[[name]])

# --- folds of unequal sizes: every fold counts the same --------------------------------------------------------------
for (it in list(c("uneven", "error_rate"), c("uneven", "accuracy"), c("uneven", "brier"), c("uneven_values", "mse"), c("uneven_values", "mae"))) {
  d <- sets[[it[1]]]; s <- sign_of(it[2]); e <- -s * fold_table(d, it[2])
  best <- first_best(-s * rowMeans(e), it[2]); naive <- -s * mean(e[best, ])
  bias <- mean(sapply(seq_len(ncol(e)), function(k) e[best, k] - min(e[, k])))
  add(paste0("tt_", it[1], "_", it[2]), "folds of 3, 9, 5 and 7 samples: the mean over folds of fold losses, not the pooled loss", "tt", case(it[1], it[2]),
      list(estimate = naive - s * bias, naive = naive, optimism = bias, selected = best - 1))
  by_fold <- fold_scores(d, it[2]); one <- first_best(by_fold, it[2])
  add(paste0("cvt_", it[1], "_", it[2]), "the best mean over folds of unequal sizes", "cvt", case(it[1], it[2], arguments = list(average = "fold")),
      list(estimate = by_fold[one], selected = one - 1))
}

# --- selection within one standard error -----------------------------------------------------------------------------
one_se <- function(scores, se, cost, s) { best <- which.max(s * scores)[1]; good <- which(s * scores >= s * scores[best] - se[best]); good[order(cost[good], good)[1]] }
table <- rbind(c(0.8, 0.79, 0.7, 0.81), c(0.5, 0.6, 0.7, 0.8), c(0.9, 0.9, 0.9, 0.9), c(0.2, 0.9, 0.89, 0.3))
errors <- rbind(c(0.05, 0.01, 0.2, 0.015), c(0.1, 0.1, 0.1, 0.15), rep(0.01, 4), c(0.5, 0.005, 0.02, 0.5)); cost <- c(3, 1, 2, 4)
for (direction in c("maximize", "minimize")) {
  s <- if (direction == "maximize") 1 else -1
  picked <- sapply(1:4, function(i) one_se(table[i, ], errors[i, ], cost, s) - 1)
  add(paste0("one_se_", direction), "rows of scores: the least complex within one standard error of the best", "select_one_se",
      list(plain = list(scores = table, std_error = errors, complexity = cost), arguments = list(direction = direction)), list(value = picked))
}
costly <- c(value, list(complexity = c(6, 5, 4, 3, 2, 1))); add_data("costly", costly)
run <- run_bbc(value, "mse", draws); spread <- apply(run$inside, 1, sd)
chosen <- sapply(seq_len(nrow(draws)), function(b) one_se(run$inside[, b], spread, costly$complexity, -1)); stopifnot(all(run$used))
judged <- sapply(seq_len(nrow(draws)), function(b) pooled_score(value, "mse", chosen[b], as.numeric(draws[b, ] == 0)))
add("bbc_one_se", "in each draw the least complex within one standard error (over draws) of the draw's best", "bbc",
    case("costly", "mse", draws = "forty", select = "select_one_se"), list(estimate = mean(judged), std_error = sd(judged), win_rate = sapply(1:6, function(j) mean(chosen == j))))

# --- families, groups and the best set over given draws --------------------------------------------------------------
side <- function(columns) {
  part <- value; part$pred <- value$pred[, columns, , drop = FALSE]; run <- run_bbc(part, "mse", draws, tied_ok = FALSE); stopifnot(all(run$used))
  scores <- pooled_scores(part, "mse"); list(value = run$value, standing = scores[run$chosen], best = columns[first_best(scores, "mse")], naive = min(scores))
}
A <- side(1:3); B <- side(4:6); diff <- A$value - B$value; vs <- var(A$standing - B$standing)
se <- sqrt(2.25 * max(var(diff) - vs, 0) / (exp(1) - 1) + vs); est <- mean(diff); t <- qt(0.975, n - 1)
add("contrast_families", "each family's winner in the bag, judged out of it; variance 2.25 (V - V_s) / (e - 1) + V_s", "contrast",
    case("uneven_values", "mse", draws = "forty", arguments = list(a = 0:2, b = 3:5)), list(estimate = est, std_error = se, conf_low = est - t * se, conf_high = est + t * se,
    statistic = est / se, df = n - 1, p_value = 2 * pt(-abs(est / se), n - 1), estimate_a = mean(A$value), estimate_b = mean(B$value), naive = A$naive - B$naive, selected_a = A$best - 1, selected_b = B$best - 1))
group <- rep(0:7, each = 3); G <- 8; grouped <- c(value, list(groups = group)); add_data("grouped", grouped)
gdraws <- some_draws(G, 50)[, group + 1]; draw_sets$groups <- gdraws
diff <- apply(gdraws, 1, function(w) pooled_score(value, "mse", 1, w) - pooled_score(value, "mse", 4, w)); est <- pooled_score(value, "mse", 1) - pooled_score(value, "mse", 4)
se <- sqrt(2.25 * var(diff) * G / (G - 1)); t <- qt(0.975, G - 1)
add("contrast_groups", "groups drawn whole: N and the degrees of freedom count groups", "contrast", case("grouped", "mse", draws = "groups", arguments = list(a = 0, b = 3)),
    list(estimate = est, std_error = se, df = G - 1, conf_low = est - t * se, conf_high = est + t * se, p_value = 2 * pt(-abs(est / se), G - 1)))
add("bbc_groups", "groups drawn whole: a group is in the bag or judges", "bbc", case("grouped", "mse", draws = "groups"), bbc_expected(value, "mse", gdraws))

best_set <- function(d, metric, draws, units, level = 0.95) {
  s <- sign_of(metric); score <- s * pooled_scores(d, metric); C <- length(score)
  over <- t(apply(draws, 1, function(w) s * pooled_scores(d, metric, weight = w)))      # draw x configuration
  X <- sweep(over, 2, colMeans(over)) * sqrt(units / (units - 1)); top <- which.max(score); gap <- score[top] - score
  se <- function(i, j) sqrt(mean((X[, i] - X[, j])^2))
  error <- sapply(1:C, function(j) se(top, j)); T <- ifelse(gap == 0, 0, gap / sqrt(error^2 + gap^2 / units))
  p <- rep(1, C); inside <- 1:C; floor <- 0
  repeat {
    step <- sapply(inside, function(j) {                 # how often the largest distance among those no farther is as large
      near <- inside[T[inside] <= T[j]]; hits <- 0
      for (b in seq_len(nrow(X))) {
        lead <- inside[which.max(X[b, inside])]
        hits <- hits + (max(sapply(near, function(k) if (k == lead) 0 else (X[b, lead] - X[b, k]) / se(lead, k))) >= T[j] - 1e-12)
      }
      (1 + hits) / (1 + nrow(X))
    })
    step <- sapply(seq_along(inside), function(i) max(step[T[inside] >= T[inside[i]]]))  # no nearer one may look worse
    p[inside] <- pmax(step, floor); stay <- p[inside] > 1 - level
    if (all(stay) || !any(stay)) break
    floor <- max(p[inside[!stay]]); inside <- inside[stay]
  }
  list(estimate = s * score, difference = -s * gap, std_error = error, statistic = T, p_value = p, in_set = p > 1 - level, selected = top - 1, n_set = sum(p > 1 - level))
}
add("best_set_values", "Romano and Wolf's steps: distances to the best against the largest distance over centred draws", "best_set", case("uneven_values", "mse", draws = "forty"), best_set(value, "mse", draws, n))
add("best_set_groups", "groups drawn whole", "best_set", case("grouped", "mse", draws = "groups"), best_set(value, "mse", gdraws, G))
far <- value; far$pred <- as3(cbind(value$pred[, 1:3, 1], z + 9, value$pred[, 5:6, 1] - 7)); add_data("far", far)
add("best_set_far", "configurations far behind leave", "best_set", case("far", "mse", draws = "forty"), best_set(far, "mse", draws, n))

# --- dropping whose outcome no draw can change -----------------------------------------------------------------------
truth <- rep(c(0, 1), 12); wrong <- rep(0, n); wrong[c(2, 9)] <- 1; sure <- list(labels = truth, kind = "label", positive = 1, folds = matrix(rep(0:3, each = 6), ncol = 1))
sure$pred <- as3(cbind(abs(truth - wrong), 1 - truth, truth, 1 - truth)); add_data("sure", sure)
for (least in c(6, 12, 50)) {
  after <- if (least <= 6) 1 else if (least <= 12) 2 else NaN; last <- if (is.nan(after)) 4 else after
  add(paste0("bbcd_sure_", least), "two configurations are wrong everywhere and leave at the first decision (after each fold but the last, from the given number of predictions on)",
      "bbcd", case("sure", "accuracy", draws = "forty", arguments = list(min_predictions = least, threshold = 0.99, times = 200, rng = 1)),
      list(dropped_after = c(NaN, after, NaN, after), models_trained = 8 + 2 * last, speed_up = 16 / (8 + 2 * last), selected = 2, naive = 1))
}

# --- the implementations of cross-validation with a tuning value ------------------------------------------------------
K <- 3; fold <- rep(0:2, c(5, 9, 10)); V <- 4; flip <- function(m) abs(y - m)            # 1 = wrong
bad <- function(p) matrix(as.numeric(runif(n * V) < p), n)
pi1 <- bad(0.35); pi2 <- bad(0.3); full <- bad(0.25)
inside <- function(p) { a <- array(NaN, c(n, V, K)); for (k in 1:K) for (v in 1:V) { i <- fold != k - 1; a[i, v, k] <- as.numeric(runif(sum(i)) < p) }; a }
tr1 <- inside(0.25); tr2 <- inside(0.2); inn <- inside(0.35)
labels_of <- function(m) list(labels = y, kind = "label", positive = 1, folds = matrix(fold, ncol = 1), pred = as3(flip(m)))
add_data("pi1", labels_of(pi1)); add_data("pi2", labels_of(pi2)); resub <- labels_of(full); resub$folds <- NULL; add_data("resubstitution", resub)
for (name in c("tr1", "tr2", "inn")) inner_sets[[name]] <- list(predictions = array(apply(get(name), 3, flip), c(n, V, K)))
least <- function(e) which(e == min(e))[1]                                              # ties to the smallest tuning value
per_fold <- function(a) sapply(1:K, function(k) least(colSums(a[, , k], na.rm = TRUE)))
mixed <- function(m, v) mean(sapply(1:n, function(i) m[i, v[fold[i] + 1]]))
own <- function(m) sapply(1:K, function(k) least(colSums(m[fold == k - 1, , drop = FALSE])))
true_error <- c(0.31, 0.27, 0.33, 0.29)
rows <- list("[Pi1]-[CV1]" = list(min(colMeans(pi1)), rep(least(colMeans(pi1)), K), least(colMeans(pi1))), "[Pi1]-[CV2]" = list(mixed(pi1, per_fold(tr1)), per_fold(tr1), least(colMeans(full))),
             "[Pi1]-[CV3]" = list(mixed(pi1, per_fold(inn)), per_fold(inn), least(colMeans(pi1))), "[Pi2]-[CV1]" = list(min(colMeans(pi2)), rep(least(colMeans(pi2)), K), least(colMeans(pi2))),
             "[Pi2]-[CV2]" = list(mixed(pi2, per_fold(tr2)), per_fold(tr2), least(colMeans(full))), "[Pi1]-(9)" = list(mixed(pi1, own(pi1)), own(pi1), least(colMeans(pi1))),
             "[Pi2]-(9)" = list(mixed(pi2, own(pi2)), own(pi2), least(colMeans(pi2))))
pick <- function(i) sapply(rows, function(r) r[[i]][1])
add("implementations", "sums of errors: the best of all folds [CV1], of each training set [CV2], of inner predictions [CV3], of the fold itself (9); with and without leaky preprocessing",
    "implementations", c(case("pi1", "error_rate"), list(order = list(implementation = names(rows)), data_arguments = list(leaky = "pi2", resubstitution = "resubstitution"),
    inner_arguments = list(training = "tr1", leaky_training = "tr2", inner = "inn"), array_arguments = list(truth = list(values = true_error, dims = I("configuration"))))),
    list(estimate = unname(pick(1)), chosen = unname(t(sapply(rows, function(r) r[[2]] - 1))), selected = unname(pick(3)) - 1, truth = true_error[pick(3)], difference = unname(pick(1)) - true_error[pick(3)]))

# --- protocols of evaluating a tuned classifier -----------------------------------------------------------------------
R <- 7; judge <- lapply(1:R, function(r) bad(0.35)); choose <- lapply(1:R, function(r) bad(0.35)); outside <- lapply(1:R, function(r) bad(0.3))
for (r in 1:R) for (what in c("judge", "choose", "outside")) { d <- labels_of(get(what)[[r]]); d$folds <- NULL; add_data(paste0(what, r), d) }
pickr <- sapply(choose, function(m) least(colMeans(m))); mid <- median(pickr[1:5]); out <- sapply(outside, function(m) least(colMeans(m))); stopifnot(mid %in% 1:V)
err <- rbind(sapply(1:R, function(r) mean(judge[[r]][, pickr[r]])), sapply(1:R, function(r) mean(judge[[r]][, mid])), sapply(1:R, function(r) mean(judge[[r]][, out[r]])))
gain <- sweep(-err, 2, -err[1, ]); ranks <- apply(err, 2, rank)
add("evaluation_protocols", "seven realisations: chosen in each (internal), the median of the first five choices, chosen on other predictions (external)", "evaluation_protocols",
    list(data = I(paste0("judge", 1:R)), metric = "error_rate", order = list(protocol = c("internal", "median", "external")), arguments = list(first = 5),
    data_arguments = list(selection = I(paste0("choose", 1:R)), external = I(paste0("outside", 1:R)))),
    list(value = err, estimate = rowMeans(err), std_error = apply(err, 1, sd) / sqrt(R), bias = c(NaN, rowMeans(gain)[-1]), bias_std_error = c(NaN, apply(gain[-1, ], 1, sd) / sqrt(R)), mean_rank = rowMeans(ranks), selected = rbind(pickr, mid, out) - 1))
write_vectors("choices.json", "Selection, comparison of configurations, and what goes wrong.")

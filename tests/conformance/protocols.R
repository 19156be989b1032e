# Conformance vectors of the protocols. Run: Rscript tests/conformance/protocols.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")) })
set.seed(5)
as3 <- function(m) array(m, c(dim(m), 1))

# --- data ------------------------------------------------------------------------------------------------------------
n <- 24
y <- rep(c(0, 1, 1, 0, 1, 0), 4)
noisy <- function(C, R, sd) array(sapply(seq_len(C * R), function(i) pmin(pmax(grid(0.5 + 0.22 * (2 * y - 1) + sd * rnorm(n), 32), 1 / 32), 31 / 32)), c(n, C, R))
prob <- list(pred = noisy(5, 1, 0.35), labels = y, kind = "probability", positive = 1, threshold = 0.5,
             folds = matrix(rep(0:3, each = 6), ncol = 1))
prob3 <- list(pred = noisy(4, 3, 0.35), labels = y, kind = "probability", positive = 1, threshold = 0.5,
              folds = cbind(rep(0:3, each = 6), rep(0:3, 6), rep(c(0, 1, 3, 2), 6)[c(2:24, 1)]))
loo <- prob; loo$folds <- matrix(seq_len(n) - 1, ncol = 1)
z <- grid(rnorm(n, 0, 2))
value <- list(pred = as3(sapply(1:4, function(j) grid(z + rnorm(n)))), labels = z, kind = "value", folds = matrix(rep(0:3, 6), ncol = 1))
value3 <- value; value3$pred <- array(grid(z + rnorm(n * 4 * 3)), c(n, 4, 3)); value3$folds <- prob3$folds
weighted <- c(prob, list(weights = grid(runif(n, 0.5, 3), 8)))
gaps <- prob; gaps$pred[c(3, 9), 2, 1] <- NaN; gaps$pred[20, , 1] <- NaN
simple <- c(prob, list(complexity = c(5, 4, 3, 2, 1)))
time <- round(rexp(n, 0.1)) + 1
survival <- list(pred = as3(sapply(1:3, function(j) grid(-time / 8 + rnorm(n), 8))), labels = time, kind = "score", event = rep(c(1, 1, 0, 1), 6))
sets <- list(prob = prob, prob_repeats = prob3, prob_loo = loo, value = value, value_repeats = value3, prob_weights = weighted,
             prob_gaps = gaps, prob_complexity = simple, survival = survival)
for (name in names(sets)) add_data(name, sets[[name]])
case <- function(set, metric, ...) list(data = set, metric = metric, ...)

# --- cv, cvt, cvm_cv ---------------------------------------------------------------------------------------------------
for (set in c("prob", "prob_repeats", "value", "value_repeats", "prob_weights")) {
  d <- sets[[set]]
  for (metric in if (d$kind == "value") c("mse", "rmse") else c("accuracy", "auc", "brier")) for (average in c("pooled", "fold")) {
    scores <- if (average == "pooled") pooled_scores(d, metric) else fold_scores(d, metric)
    se <- rowMeans(sapply(seq_len(r_of(d)), function(r) { t <- fold_table(d, metric, r); apply(t, 1, sd) / sqrt(ncol(t)) }))
    best <- first_best(scores, metric); label <- paste(set, metric, average, sep = "_")
    add(paste0("cv_", label), "score of every configuration; standard error over folds as if they were independent", "cv",
        case(set, metric, arguments = list(average = average)), list(estimate = scores, std_error = se))
    add(paste0("cvt_", label), "score of the best configuration on the samples that chose it; ties to the first", "cvt",
        case(set, metric, arguments = list(average = average)), list(estimate = scores[best], selected = best - 1, optimism = 0))
    if (r_of(d) > 1) {
      table <- function(r) if (average == "pooled") pooled_scores(d, metric, repeats = r) else fold_scores(d, metric, repeats = r)
      one <- first_best(table(1), metric)
      add(paste0("cvm_cv_", label), "the first repeat chooses, the others judge", "cvm_cv", case(set, metric, arguments = list(average = average)),
          list(estimate = table(2:r_of(d))[one], selected_first = one - 1, naive = scores[best], selected = best - 1,
               optimism = sign_of(metric) * (scores[best] - table(2:r_of(d))[one])))
    }
  }
}
within <- pooled_scores(simple, "accuracy"); good <- which(within >= max(within) - 0.1); pick <- good[which.min(simple$complexity[good])]
stopifnot(all(abs(within - max(within) + 0.1) > 1e-9), pick != which.max(within))
add("cvt_within", "the least complex configuration within 0.1 of the best score", "cvt", case("prob_complexity", "accuracy", select_within = 0.1),
    list(estimate = within[pick], selected = pick - 1))
some <- eligible(gaps)
add("cvt_gaps", "a configuration that lacks predictions others have cannot be chosen; samples nobody predicted are left out", "cvt",
    case("prob_gaps", "brier"), list(estimate = pooled_scores(gaps, "brier")[first_best(pooled_scores(gaps, "brier"), "brier", some)],
                                        selected = first_best(pooled_scores(gaps, "brier"), "brier", some) - 1))

# --- tt ---------------------------------------------------------------------------------------------------------------
for (it in list(c("prob", "accuracy"), c("prob", "error_rate"), c("prob", "auc"), c("prob_repeats", "accuracy"), c("prob_repeats", "brier"),
                c("value", "mse"), c("value", "rmse"), c("prob_loo", "error_rate"), c("prob_weights", "accuracy"))) {
  d <- sets[[it[1]]]; e <- -sign_of(it[2]) * fold_table(d, it[2])           # losses, configuration x fold
  best <- first_best(rowMeans(-sign_of(it[2]) * e), it[2])
  bias <- 0
  for (k in seq_len(ncol(e))) bias <- bias + (e[best, k] - min(e[, k])) / ncol(e)
  naive <- -sign_of(it[2]) * mean(e[best, ])
  add(paste0("tt_", it[1], "_", it[2]), "mean fold loss of the winner plus the mean over folds of its excess over the fold's best", "tt", case(it[1], it[2]),
      list(estimate = naive - sign_of(it[2]) * bias, naive = naive, optimism = bias, selected = best - 1))
}

# --- ncv --------------------------------------------------------------------------------------------------------------
# inner: sample x configuration x outer fold x repeat, NaN on the outer fold's own samples; inner folds likewise
make_inner <- function(d, K, R) {
  inner <- array(NaN, c(n, c_of(d), K, R)); folds <- array(0, c(n, K, R))
  for (r in 1:R) for (k in 1:K) {
    train <- which(d$folds[, r] != k - 1)
    for (j in seq_len(c_of(d))) inner[train, j, k, r] <- if (d$kind == "value") grid(d$labels[train] + rnorm(length(train))) else
      pmin(pmax(grid(0.5 + 0.22 * (2 * y[train] - 1) + 0.35 * rnorm(length(train)), 32), 1 / 32), 31 / 32)
    folds[train, k, r] <- sample(rep(0:2, length.out = length(train)))
  }
  list(pred = inner, folds = folds)
}
run_ncv <- function(d, metric, inner, by_fold, average) {
  R <- r_of(d); K <- dim(inner$pred)[3]; chosen <- matrix(0, K, R); each <- chosen; pooled <- c()
  for (r in 1:R) {
    mixed <- rep(NaN, n)
    for (k in 1:K) {
      train <- which(d$folds[, r] != k - 1); test <- which(d$folds[, r] == k - 1)
      part <- d; part$labels <- d$labels[train]; part$pred <- as3(inner$pred[train, , k, r]); part$folds <- matrix(inner$folds[train, k, r], ncol = 1)
      if (!is.null(d$weights)) part$weights <- d$weights[train]
      scores <- if (by_fold) fold_scores(part, metric) else pooled_scores(part, metric)
      chosen[k, r] <- first_best(scores, metric)
      each[k, r] <- repeat_score(d, metric, chosen[k, r], r, case_weights(d) * (d$folds[, r] == k - 1))
      mixed[test] <- d$pred[test, chosen[k, r], r]
    }
    own <- d; own$pred <- array(mixed, c(n, 1, 1)); pooled <- c(pooled, pooled_score(own, metric, 1))
  }
  estimate <- if (average == "fold") mean(each) else mean(pooled)
  final <- if (average == "fold") fold_scores(d, metric) else pooled_scores(d, metric)
  best <- first_best(final, metric)
  drop1 <- function(m) if (R == 1) m[, 1] else m
  list(estimate = estimate, fold_estimate = drop1(each), selected_fold = drop1(chosen - 1), naive = final[best], selected = best - 1,
       win_rate = sapply(seq_len(c_of(d)), function(j) mean(chosen == j)), optimism = sign_of(metric) * (final[best] - estimate))
}
for (set in c("prob", "prob_repeats", "value", "prob_weights")) {
  d <- sets[[set]]; R <- r_of(d); inner <- make_inner(d, 4, R)
  flat <- function(a) if (R == 1) array(a, dim(a)[-length(dim(a))]) else a
  for (metric in if (d$kind == "value") "mse" else c("accuracy", "brier")) for (average in c("fold", "pooled")) for (by_fold in c(TRUE, FALSE)) {
    given <- paste0(set, if (by_fold) "_folds" else "")
    inner_sets[[given]] <- list(predictions = flat(inner$pred)); if (by_fold) inner_sets[[given]]$folds <- flat(inner$folds)
    label <- paste(set, metric, average, if (by_fold) "inner_folds" else "inner_pooled", sep = "_")
    add(paste0("ncv_", label), "each outer fold judges what the inner predictions of its training set chose", "ncv",
        case(set, metric, arguments = list(average = average), inner = given), run_ncv(d, metric, inner, by_fold, average))
  }
}
training <- make_inner(prob, 4, 1); inner_sets$training <- list(predictions = training$pred[, , , 1])
add("ncv_training", "choice by each fold's own training predictions ([CV2]): the same arithmetic under another name", "ncv",
    case("prob", "error_rate", arguments = list(inner_kind = "training"), inner = "training"),
    run_ncv(prob, "error_rate", training, FALSE, "fold")[c("estimate", "fold_estimate", "selected_fold")])

# --- bbc with given draws -----------------------------------------------------------------------------------------------
draws <- some_draws(n, 40); draw_sets$forty <- draws
for (it in list(c("prob", "accuracy"), c("prob", "auc"), c("prob", "f1"), c("prob", "mcc"), c("prob", "balanced_accuracy"), c("prob", "average_precision"),
                c("prob", "log_loss"), c("prob_repeats", "accuracy"), c("prob_repeats", "auc"), c("value", "mse"), c("value", "r2"), c("value_repeats", "rmse"),
                c("prob_weights", "accuracy"), c("prob_weights", "auc"), c("prob_gaps", "brier"), c("survival", "concordance")))
  add(paste("bbc", it[1], it[2], sep = "_"), "40 given draws: choose in the bag (ties to the first), judge out of it; percentiles of type 7", "bbc",
      case(it[1], it[2], draws = "forty"), bbc_expected(sets[[it[1]]], it[2], draws))
prior <- c(prob, list(prior = c(0.9, 0.1)))
add("bbc_prior_error", "40 given draws; class errors weighted by P(Y = 0) = 0.9 choose and judge", "bbc",
    c(case("prob", "prior_error", draws = "forty"), list(metric_arguments = list(prior = 0.9))), bbc_expected(prior, "prior_error", draws))

# --- bbc over all n^n ordered draws ---------------------------------------------------------------------------------------
few <- list(pred = as3(cbind(c(0.75, 0.25, 0.5, 0.875), c(0.25, 0.625, 0.75, 0.625), c(0.875, 0.75, 0.125, 0.25))), labels = c(1, 0, 1, 0),
            kind = "probability", positive = 1, threshold = 0.5)
five <- list(pred = as3(cbind(c(1, 2, 4, 4, 7), c(2, 2, 3, 5, 5), c(0, 3, 3, 4, 6))), labels = c(1.5, 2, 3, 5, 6), kind = "value")
five2 <- five; five2$pred <- array(c(five$pred, five$pred[, c(2, 3, 1), 1] + c(0.5, -0.25, 0, 0.75, -1)), c(5, 3, 2))
hard <- list(pred = as3(cbind(c(1, 0, 1, 1, 0), c(0, 0, 1, 0, 1), c(1, 1, 1, 0, 0), c(1, 0, 0, 0, 0))), labels = c(1, 0, 1, 0, 0), kind = "label", positive = 1)
tiny <- list(tiny4 = few, tiny5 = five, tiny5_repeats = five2, tiny5_labels = hard)
for (name in names(tiny)) add_data(name, tiny[[name]])
for (it in list(c("tiny4", "brier"), c("tiny4", "accuracy"), c("tiny4", "auc"), c("tiny5", "mse"), c("tiny5", "mae"), c("tiny5_repeats", "mse"), c("tiny5_labels", "accuracy"), c("tiny5_labels", "error_rate"))) {
  d <- tiny[[it[1]]]
  found <- bbc_expected(d, it[2], all_draws(n_of(d)))
  add(paste("bbc_enumerated", it[1], it[2], sep = "_"), "the exact value: all n^n ordered draws; those with nothing left out, or undefined, are skipped", "bbc",
      case(it[1], it[2], draws = list(enumerate = n_of(d))), found[c("estimate", if (n_of(d) > 4) "std_error", "win_rate", "n_draws", "selected", "naive", "optimism")])
}

# --- early dropping -------------------------------------------------------------------------------------------------------
for (it in list(c("prob", "accuracy"), c("prob", "auc"), c("value", "mse"), c("prob_repeats", "brier"))) {
  d <- sets[[it[1]]]; best <- first_best(pooled_scores(d, it[2]), it[2]); worse <- rep(0, c_of(d)); used <- 0
  for (b in seq_len(nrow(draws))) {
    s <- -sign_of(it[2]) * pooled_scores(d, it[2], weight = draws[b, ])
    stopifnot(!any(is.nan(s)))
    used <- used + 1; worse <- worse + (s > s[best] + 1e-12)
  }
  add(paste("drop", it[1], it[2], sep = "_"), "share of draws in which a configuration's loss exceeds that of the current best; dropped when above 0.9",
      "drop_configurations", case(it[1], it[2], draws = "forty", arguments = list(threshold = 0.9)),
      list(p_worse = worse / used, keep = !(worse / used > 0.9), best = best - 1))
}
never <- bbc_expected(prob, "accuracy", draws)
add("bbcd_never_drops", "threshold 1 never drops: the BBC estimate, and as many models as the whole cube", "bbcd",
    case("prob", "accuracy", draws = "forty", arguments = list(threshold = 1)),
    c(never[c("estimate", "conf_low", "conf_high", "naive", "selected", "win_rate")], list(models_trained = 20, speed_up = 1, cost = 0)))

# --- separate sampling: sample x configuration x partner ---------------------------------------------------------------------
sep_y <- c(rep(0, 10), rep(1, 15)); k0 <- 2; k1 <- 3
wrong <- array(NaN, c(25, 2, 3))
for (i in 1:25) for (j in 1:2) for (q in seq_len(if (sep_y[i] == 0) k1 else k0)) wrong[i, j, q] <- if (runif(1) < 0.3 * j) 1 - sep_y[i] else sep_y[i]
class_error <- function(j, class, cube) { total <- 0; members <- which(sep_y == class); for (i in members) total <- total + mean(cube[i, j, ][!is.na(cube[i, j, ])] != class); total / length(members) }
errors <- function(cube) t(sapply(1:2, function(j) c(class_error(j, 0, cube), class_error(j, 1, cube))))
sep_fold <- c(rep(0:1, 5), rep(0:2, 5))
data_sets$separate <- list(predictions = wrong, labels = sep_y, folds = sep_fold, kind = "label", positive = 1, partner = TRUE)
add("separate_class_errors", "class errors: a sample's mean over the partner folds left out with it (2 folds of class 0, 3 of class 1)", "separate_cv",
    list(data = "separate", arguments = list(rng = 1)), list(class_error = errors(wrong)))
for (c0 in c(0.1, 0.5, 0.97)) add(paste0("separate_prior_", c0), "c * error of class 0 + (1 - c) * error of class 1", "separate_cv",
    list(data = "separate", arguments = list(prior = c0, rng = 1)), list(estimate = as.vector(errors(wrong) %*% c(c0, 1 - c0)), class_error = errors(wrong)))
same_fold <- c(rep(0:1, 5), rep(0:1, length.out = 15)); both <- wrong[, , 1:2]
both[sep_y == 0, , ] <- wrong[sep_y == 0, , 1:2]
data_sets$separate_equal <- list(predictions = both, labels = sep_y, folds = same_fold, kind = "label", positive = 1, partner = TRUE)
own <- array(0, c(25, 2, 1)); for (i in 1:25) own[i, , 1] <- both[i, , same_fold[i] + 1]
data_sets$ordinary <- list(predictions = own[, , 1], labels = sep_y, folds = same_fold, kind = "label", positive = 1)
classical <- apply(own[, , 1] != sep_y, 2, mean)
for (set in c("separate_equal", "ordinary")) add(paste0("classical_", set), "classical cross-validation: every sample with the partner of its own fold number, weighted by class counts", "classical_cv",
    list(data = set, arguments = list(rng = 1)), list(estimate = classical, class_error = errors(own)))
add("prior_reweighted", "class errors of ordinary folds weighted by the prior", "prior_reweighted_cv",
    list(data = "ordinary", arguments = list(prior = 0.2, rng = 1)), list(estimate = as.vector(errors(own) %*% c(0.2, 0.8))))

# --- the recommended estimators with given draws, on data without ties inside draws ------------------------------------------
bbc_x <- function(metric, scores, naive, bbc) {
  s <- sign_of(metric); m <- s * mean(scores); naive <- s * naive; bbc <- s * bbc
  if (length(scores) == 1 || m >= naive) return(s * naive)
  D <- max(bbc - m, 0); rho <- min(D / (naive - m), 1)
  s * (m + 4 * D / (rho + sqrt(rho^2 + 8)))
}
cross_repeat <- function(d, metric, draws) {
  values <- c(); best <- first_best(pooled_scores(d, metric), metric)
  for (b in seq_len(nrow(draws))) for (r in seq_len(r_of(d))) {
    bag <- draws[b, ]; out <- as.numeric(bag == 0)
    j <- first_best(pooled_scores(d, metric, weight = bag, repeats = r), metric, tied_ok = FALSE); others <- setdiff(seq_len(r_of(d)), r)
    values <- c(values, pooled_score(d, metric, j, out, repeats = others) - pooled_score(d, metric, best, out, repeats = others))
  }
  pooled_scores(d, metric)[best] + mean(values)
}
# what the choice of each draw scores on the samples left out, minus what the choice on all samples scores there
anchored <- function(d, metric, draws, run) {
  scores <- pooled_scores(d, metric); best <- first_best(scores, metric, eligible(d)); stopifnot(all(run$used))
  scores[best] + mean(run$value - sapply(seq_len(nrow(draws)), function(b) pooled_score(d, metric, best, (draws[b, ] == 0) * case_weights(d))))
}
wilson <- function(c, n, t) { mid <- (c + t^2 / (2 * n)) / (1 + t^2 / n); half <- t / (1 + t^2 / n) * sqrt(c * (1 - c) / n + t^2 / (4 * n^2)); c(max(0, mid - half), min(1, mid + half)) }
# kappa, psi and whether the upper limit heeds the naive score, by estimator
winner_expected <- function(d, metric, draws, regime, kappa, psi, safe, level = 0.95) {
  run <- run_bbc(d, metric, draws, tied_ok = FALSE); s <- sign_of(metric); N <- n_of(d)
  scores <- pooled_scores(d, metric); best <- first_best(scores, metric); naive <- scores[best]; bbc <- mean(run$value)
  x <- bbc_x(metric, scores, naive, bbc)
  estimate <- if (regime == "holdout") x else if (r_of(d) > 1 && metric != "auc") cross_repeat(d, metric, draws) else anchored(d, metric, draws, run)
  v <- apply(run$inside, 1, var)                                   # of each configuration's score over draws
  vs <- var(scores[run$chosen])                                    # of the all-data score of the draw's winner
  win <- sapply(seq_along(scores), function(j) mean(run$chosen == j))
  loss <- metric %in% c("mse", "rmse", "log_loss")
  share <- if (is.logical(safe)) as.numeric(safe) else if (loss || metric == "auc") 1 else { p <- win[best] / (win[best] + max(win[-best])); if (win[best] == 0) 0 else min(max((p - 0.5) / 0.3, 0), 1) }
  inflate <- 1 + (if (loss) if (metric == "log_loss") 0.35 else 1.25 else 0.2) * share  # of the limit at the naive score
  within <- if (metric != "auc" || is.null(d$folds)) NaN else {    # pairs of the same fold
    up <- d$labels == d$positive; same <- outer(d$folds[, 1], d$folds[, 1], "==") & outer(up, !up); p <- d$pred[, best, 1]
    sum((outer(p, p, ">") + 0.5 * outer(p, p, "=="))[same]) / sum(same)
  }
  counts <- !loss && metric != "auc" && regime == "cv"
  lift <- if (is.nan(within)) 0 else max((within - naive) / (1 - naive), 0)
  seen <- if (is.null(d$folds)) 0.8 else mean(sapply(seq_len(N), function(i) mean(d$folds[, 1] != d$folds[i, 1])))  # by models, of all samples; five folds if unknown
  fall <- if (regime == "cv" && !isFALSE(safe)) seen^(0.5 * min(1, sqrt(100 / N))) else 1  # of errors, when models see all samples
  limits <- function(level) {
    t <- qt((1 + level) / 2, N - 1)
    if (loss) {                                                    # the log of the loss
      own <- sum(win * v / scores^2) / sum(win)
      se <- sqrt(kappa * own + psi * vs / estimate^2)
      lower <- function(centre, se) log(centre) - t * se
      low <- lower(estimate, se)
      if (share > 0) low <- min(low, lower(bbc + share * (naive - bbc), sqrt(inflate * own)))
      return(c(fall * exp(min(low, log(estimate))), exp(log(estimate) + t * se), estimate * se))
    }
    up <- function(value) if (s > 0) value else 1 - value          # performance in [0, 1]
    theta <- up(scores); most <- if (metric == "auc") 3 * N else N
    n_eff <- min(most, max(sum(theta * (1 - theta)) / sum(v), 1), max(sum(win * theta * (1 - theta)) / sum(win * v), 1))
    size <- function(c, kappa, psi) { c <- min(max(c, 1 / (2 * n_eff)), 1 - 1 / (2 * n_eff)); c * (1 - c) / (kappa * c * (1 - c) / n_eff + psi * vs) }
    centre <- up(estimate)
    below <- if (counts) max(centre, up(x)) else centre             # the centre of the lower limit
    both <- c(min(wilson(below, size(below, kappa, psi), t)[1], centre), wilson(centre, size(centre, kappa, psi), t)[2])
    if (below * n_eff < 1) both[1] <- 0                            # less than one hit may as well be none
    if (share > 0) { c2 <- up(bbc + share * (naive - bbc)); both[2] <- max(both[2], wilson(c2, n_eff / inflate, t)[2]) }
    errors <- (1 - up(naive)) * n_eff                              # few of them have Poisson's limit
    if (!isFALSE(safe) && regime == "cv" && errors <= 3) both[2] <- max(both[2], 1 - qgamma((1 - level) / 2, errors) / n_eff)
    both[2] <- 1 - (1 - both[2]) * (1 - lift) * fall
    ends <- sort(up(both))
    c(ends, sqrt(centre * (1 - centre) / size(centre, kappa, psi)))
  }
  ends <- limits(level); bound <- limits(2 * level - 1)
  list(estimate = estimate, bbc_plain = bbc, std_error = ends[3], conf_low = ends[1], conf_high = ends[2], bound_low = bound[1], bound_high = bound[2],
       naive = naive, optimism = s * (naive - estimate), selected = best - 1, win_rate = win)
}
m <- 30; wy <- rep(c(0, 1), m / 2)
margin <- list(pred = array(grid(0.12 * (2 * wy - 1) + 0.2 * rnorm(m * 4), 1024), c(m, 4, 1)), labels = wy, kind = "score", positive = 1, threshold = 0)
margin3 <- margin; margin3$pred <- array(grid(0.12 * (2 * wy - 1) + 0.2 * rnorm(m * 4 * 3), 1024), c(m, 4, 3))
clear <- margin; clear$pred[, 3, 1] <- grid(0.3 * (2 * wy - 1) + 0.2 * rnorm(m), 1024)
wz <- grid(rnorm(m, 0, 2)); loss <- list(pred = as3(sapply(1:4, function(j) grid(wz + rnorm(m)))), labels = wz, kind = "value")
loss3 <- loss; loss3$pred <- array(grid(wz + rnorm(m * 4 * 3)), c(m, 4, 3))
few <- margin; few$pred <- margin$pred[, 1:2, , drop = FALSE]
folded <- margin; folded$folds <- matrix(rep(0:2, each = m / 3), ncol = 1); folded$pred <- folded$pred + c(-0.5, 0, 0.5)[folded$folds[, 1] + 1]
chosen <- list(margin = margin, margin_repeats = margin3, margin_clear = clear, loss = loss, loss_repeats = loss3, margin_few = few, margin_folds = folded)
for (name in names(chosen)) add_data(name, chosen[[name]])
wdraws <- some_draws(m, 60); draw_sets$sixty <- wdraws; stopifnot(all(rowSums(wdraws == 0) > 0))
about <- "60 given draws without ties inside them; calibrated interval (Student t on N - 1)"
win_vector <- function(set, metric, regime, kappa, psi, safe, given = "sixty", suffix = "") {
  settings <- if (is.logical(safe)) list(safe_upper = safe) else structure(list(), names = character(0))
  add(paste0("winner_", set, "_", metric, "_", regime, suffix), about, "winner",
      list(data = set, metric = metric, draws = given, arguments = list(regime = regime), calibrated = settings),
      winner_expected(chosen[[set]], metric, draw_sets[[given]], regime, kappa, psi, if (is.logical(safe)) safe else "auto"))
}
for (set in c("margin", "margin_clear")) {
  win_vector(set, "smoothed_error_rate", "cv", 1.2, 1, FALSE, suffix = "_unsafe")
  win_vector(set, "smoothed_error_rate", "cv", 1.2, 1, TRUE, suffix = "_safe")
  win_vector(set, "smoothed_error_rate", "cv", 1.2, 1, "auto")
  win_vector(set, "smoothed_error_rate", "holdout", 1, 0.5, FALSE)
}
win_vector("margin_repeats", "smoothed_error_rate", "cv", 0.9 * 1.2, 1, "auto"); win_vector("margin_few", "smoothed_error_rate", "cv", 1.75, 1, "auto")
win_vector("loss", "mse", "cv", 2.25, 1, FALSE, suffix = "_unsafe"); win_vector("loss", "mse", "holdout", 1.35, 0.5, FALSE)
win_vector("loss", "mse", "cv", 2.25, 1, "auto"); win_vector("loss_repeats", "mse", "cv", 0.9 * 2.25, 1, "auto")
alone <- function(d, metric, given) { keep <- c(); for (b in seq_len(nrow(given))) { s <- pooled_scores(d, metric, weight = given[b, ]); keep <- c(keep, sum(abs(s - max(s)) < 1e-9) == 1) }; given[keep, ] }
draw_sets$untied <- alone(margin, "auc", wdraws)
win_vector("margin", "auc", "cv", 1.2, 1, "auto", given = "untied")
draw_sets$untied_folds <- alone(folded, "auc", wdraws); win_vector("margin_folds", "auc", "cv", 1.2, 1, "auto", given = "untied_folds")
win_vector("margin", "auc", "holdout", 1, 0.5, FALSE, given = "untied")

# --- contrast: differences a - b over given draws ----------------------------------------------------------------------------
over_draws <- function(d, metric) var(sapply(seq_len(nrow(draws)), function(b) { w <- pooled_scores(d, metric, weight = draws[b, ]); w[1] - w[3] }))
one_repeat <- function(d, r) { d$pred <- d$pred[, , r, drop = FALSE]; d }
for (it in list(c("prob", "accuracy"), c("value", "mse"), c("prob_repeats", "brier"), c("prob_repeats", "auc"), c("value_repeats", "rmse"))) for (regime in c("cv", "holdout")) {
  d <- sets[[it[1]]]; s <- pooled_scores(d, it[2]); V <- over_draws(d, it[2]); V1 <- mean(sapply(seq_len(r_of(d)), function(r) over_draws(one_repeat(d, r), it[2])))
  se <- sqrt((V + if (regime == "cv") 1.25 * V1 else 0) * n / (n - 1)); est <- s[1] - s[3]; t <- qt(0.975, n - 1)
  add(paste(c("contrast", it, if (regime == "holdout") regime), collapse = "_"), "difference of two configurations fixed in advance; variance over draws times N / (N - 1), for refitted models plus 1.25 times that of one repeat (mean)", "contrast",
      case(it[1], it[2], draws = "forty", arguments = c(list(a = 0, b = 2), if (regime == "holdout") list(regime = regime))), list(estimate = est, std_error = se, conf_low = est - t * se, conf_high = est + t * se,
      statistic = est / se, df = n - 1, p_value = 2 * pt(-abs(est / se), n - 1)))
}

# --- the best of many equally good configurations ----------------------------------------------------------------------------
for (it in list(c(0.85, 100, 10), c(0.85, 20, 5), c(0.85, 40, 20), c(0.6, 30, 200))) {
  k <- 0:it[2]; F <- pbinom(k, it[2], it[1])^it[3]; expected <- sum(k / it[2] * diff(c(0, F)))
  add(paste("expected_maximum", it[1], it[2], it[3], sep = "_"), "mean of the maximum of m independent Binomial(n, p) / n, by summation", "expected_maximum",
      list(arguments = list(probability = it[1], n_samples = it[2], n_configurations = it[3])), list(mean = expected, optimism = expected - it[1]))
}
# --- the kernel: choose with some weights, judge with others ---------------------------------------------------------------
chooser <- some_draws(n, 12); judges <- matrix(grid(runif(12 * n, 0, 2), 4), 12)
for (it in list(c("prob", "brier"), c("value", "mse"), c("prob_weights", "accuracy"))) for (given in c(FALSE, TRUE)) {
  d <- sets[[it[1]]]; picked <- c(); judged <- c(); inside <- NULL
  for (b in 1:12) {
    scores <- pooled_scores(d, it[2], weight = chooser[b, ] * case_weights(d)); j <- first_best(scores, it[2])
    picked <- c(picked, j); inside <- cbind(inside, scores)
    judged <- c(judged, pooled_score(d, it[2], j, (if (given) judges[b, ] else as.numeric(chooser[b, ] == 0)) * case_weights(d)))
  }
  weights <- list(choose = list(values = chooser, dims = c("draw", "sample"))); if (given) weights$judge <- list(values = judges, dims = c("draw", "sample"))
  add(paste("select_and_judge", it[1], it[2], if (given) "weights" else "left_out", sep = "_"), "the first of the best by weights that choose, scored by weights that judge (by default the samples left out)",
      "select_and_judge", case(it[1], it[2], arguments = list(ties = "first"), array_arguments = weights),
      list(selected = picked - 1, value = judged, win_rate = sapply(seq_len(c_of(d)), function(j) mean(picked == j)), score = pooled_scores(d, it[2]), score_variance = apply(inside, 1, var), n_draws = 12))
}
add_data("three", list(pred = as3(cbind(c(1, 0, 1))), labels = c(1, 0, 0), kind = "label", positive = 1))
add("jackknife", "every sample left out once", "jackknife", list(data = "three"), list(value = 1 - diag(3)))

# --- draws within classes: all of them, and drawn at random ------------------------------------------------------------------
both_classes <- list(pred = as3(cbind(c(0.75, 0.25, 0.5, 0.875, 0.375), c(0.25, 0.625, 0.75, 0.625, 0.25), c(0.875, 0.75, 0.125, 0.25, 0.5))), labels = c(1, 0, 1, 0, 0),
                     kind = "probability", positive = 1, threshold = 0.5)
add_data("classes5", both_classes)
zeros <- all_draws(3); ones <- all_draws(2); within_class <- NULL
for (i in seq_len(nrow(zeros))) for (j in seq_len(nrow(ones))) { row <- rep(0, 5); row[both_classes$labels == 0] <- zeros[i, ]; row[both_classes$labels == 1] <- ones[j, ]; within_class <- rbind(within_class, row) }
draw_sets$within_class <- unname(within_class)
for (metric in c("brier", "log_loss", "auc")) {
  found <- bbc_expected(both_classes, metric, within_class); spread <- found$std_error; times <- 20000
  add(paste0("bbc_strata_all_", metric), "all 3^3 x 2^2 ordered draws within the classes", "bbc", case("classes5", metric, draws = "within_class"), found[c("estimate", if (metric != "auc") "std_error", "win_rate", "n_draws", "naive", "optimism")])
  add(paste0("bbc_strata_drawn_", metric), "20000 draws within the classes come as near to all of them as chance allows: five standard errors", "bbc",
      case("classes5", metric, arguments = list(strata = "label", times = times, rng = 1)), list(estimate = found$estimate, win_rate = found$win_rate), tolerance = 5 * max(spread, 0.5) / sqrt(times))
}

# --- half BBC, half nested cross-validation smoothed over draws --------------------------------------------------------------
# in every inner training set one configuration is better on each single sample, so that every draw chooses it
leader <- c(2, 4, 1, 3); best_of <- array(NaN, c(n, 4, 4))
for (k in 1:4) { train <- which(value$folds[, 1] != k - 1); for (j in 1:4) best_of[train, j, k] <- z[train] + (if (j == leader[k]) 0.25 else 0.5 + j / 4) }
inner_sets$leader <- list(predictions = best_of)
plain <- run_bbc(value, "mse", draws, tied_ok = FALSE); nested <- mean(sapply(1:n, function(i) (value$pred[i, leader[value$folds[i, 1] + 1], 1] - z[i])^2))
scores <- pooled_scores(value, "mse")
add("winner_nested", "inner predictions given, in which every draw of a training set chooses the same: the mean of the anchored estimate and nested cross-validation (pooled)", "winner",
    case("value", "mse", draws = "forty", inner = "leader", arguments = list(rng = 1)), list(estimate = (anchored(value, "mse", draws, plain) + nested) / 2, bbc_plain = mean(plain$value), naive = min(scores), selected = which.min(scores) - 1))
# two configurations and a training set of three or four samples: win rates over all ordered draws of it
off <- function(rows) grid(matrix(rnorm(2 * rows), rows), 1024); truth7 <- c(1.5, 2, 3, 5, 6, 2, 4.5)
duel <- list(pred = as3(truth7 + off(7)), labels = truth7, kind = "value", folds = matrix(c(0, 0, 0, 0, 1, 1, 1), ncol = 1)); add_data("duel", duel)
duel_inner <- array(NaN, c(7, 2, 2)); duel_inner[5:7, , 1] <- truth7[5:7] + cbind(c(33, 62, 17), c(47, 21, 58)) / 64
duel_inner[1:4, , 2] <- truth7[1:4] + cbind(c(35, 60, 19, 41), c(52, 22, 45, 37)) / 64; inner_sets$duel <- list(predictions = duel_inner)
rate <- function(k) { train <- which(duel$folds[, 1] != k - 1); part <- list(pred = as3(duel_inner[train, , k]), labels = duel$labels[train], kind = "value"); mean(run_bbc(part, "mse", all_draws(length(train)), tied_ok = FALSE)$chosen == 1) }
share <- sapply(1:2, rate); stopifnot(share > 0.05, share < 0.95)
loss_of <- (duel$pred[, , 1] - duel$labels)^2; mix <- share[duel$folds[, 1] + 1]; smooth <- mean(mix * loss_of[, 1] + (1 - mix) * loss_of[, 2])
sevens <- some_draws(7, 1500); sevens <- sevens[rowSums(sevens == 0) > 0, ]; draw_sets$sevens <- sevens
seven <- run_bbc(duel, "mse", sevens, tied_ok = FALSE); half <- anchored(duel, "mse", sevens, seven); chance <- 5 * sqrt(sum((c(4, 3) / 7 * (max(abs(loss_of[, 1] - loss_of[, 2]))))^2) * 0.25 / nrow(sevens)) / 2
add("winner_nested_drawn", "inner predictions given: win rates over draws of each training set weigh the configurations; as near as chance allows (five standard errors)", "winner",
    case("duel", "mse", draws = "sevens", inner = "duel", arguments = list(rng = 1)), list(estimate = (half + smooth) / 2), tolerance = chance / max(1, (half + smooth) / 2))
add("winner_nested_bbc", "its BBC half, exactly", "winner", case("duel", "mse", draws = "sevens", inner = "duel", arguments = list(rng = 1)), list(bbc_plain = mean(seven$value)))

# --- the score claimed had fewer configurations been tried -------------------------------------------------------------------
for (it in list(c("prob", "auc"), c("value", "mse"), c("prob_repeats", "accuracy"))) {
  scores <- pooled_scores(sets[[it[1]]], it[2]); s <- sign_of(it[2]); C <- length(scores)
  claim <- sapply(1:C, function(m) mean(combn(C, m, function(subset) s * max(s * scores[subset]))))
  add(paste("optimism_curve", it[1], it[2], sep = "_"), "mean over all subsets of m configurations of the score of the best of them", "optimism_curve",
      case(it[1], it[2], arguments = list(sizes = 1:C, times = 20, rng = 1)), list(naive = claim))
}

# --- the error at every prior ------------------------------------------------------------------------------------------------
steps <- c(0, 0.1, 0.5, 1)
for (it in list(list("separate", errors(wrong), c(NaN, NaN)), list("separate_equal", errors(both), classical), list("ordinary", errors(own), classical)))
  add(paste0("prior_curve_", it[[1]]), "c * error of class 0 + (1 - c) * error of class 1 at each c; and the classical estimate where every sample has a partner of its own fold number", "prior_curve",
      list(data = it[[1]], arguments = list(prior = steps, rng = 1, times = 100)), list(estimate = it[[2]] %*% rbind(steps, 1 - steps), classical = it[[3]]))

# --- one configuration fixed in advance: Wilson and DeLong -------------------------------------------------------------------
single <- prob; single$pred <- prob$pred[, 1, , drop = FALSE]; add_data("single", single)
right <- sum((single$pred[, 1, 1] > 0.5) == (y == 1)); interval <- prop.test(right, n, correct = FALSE)$conf.int
add("winner_wilson", "prop.test of R, without correction", "winner", case("single", "accuracy", arguments = list(interval = "wilson", rng = 1)), list(estimate = right / n, conf_low = interval[1], conf_high = interval[2]))
up <- single$pred[y == 1, 1, 1]; down <- single$pred[y == 0, 1, 1]; beats <- outer(up, down, function(a, b) (a > b) + (a == b) / 2)
se <- sqrt(var(rowMeans(beats)) / length(up) + var(colMeans(beats)) / length(down)); area <- mean(beats)
add("winner_delong", "variances of the placements", "winner", case("single", "auc", arguments = list(interval = "delong", rng = 1)),
    list(estimate = area, std_error = se, conf_low = max(0, area - qnorm(0.975) * se), conf_high = min(1, area + qnorm(0.975) * se)))
write_vectors("protocols.json", "Protocols: what is estimated from saved predictions, and how.")

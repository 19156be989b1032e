# Conformance vectors of the tests. Each is computed from its formula and checked here against R's own function.
# Run: Rscript tests/conformance/tests.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")) })
suppressPackageStartupMessages({ library(car); library(pROC) })
set.seed(7)
array_of <- function(values, ...) list(values = values, dims = if (length(c(...)) == 1) I(c(...)) else c(...))
same <- function(a, b, tol = 1e-10) stopifnot(all(abs(unlist(a) - unlist(b)) <= tol * pmax(1, abs(unlist(b)))))
tails <- function(stat, df, alternative) switch(alternative, "two-sided" = 2 * pt(-abs(stat), df), less = pt(stat, df), greater = pt(stat, df, lower.tail = FALSE))

# --- Student's t -------------------------------------------------------------------------------------------------------
a <- grid(rnorm(12, 0.4)); b <- grid(rnorm(12)); u <- grid(rnorm(7, 1, 3))
for (alternative in c("two-sided", "less", "greater")) {
  r_name <- sub("-", ".", alternative)
  se <- sd(a) / sqrt(12); stat <- (mean(a) - 0.125) / se
  p <- tails(stat, 11, alternative); same(p, t.test(a, mu = 0.125, alternative = r_name)$p.value)
  add(paste0("t_one_sample_", alternative), "one sample against 0.125", "t_test", list(arrays = list(x = array_of(a, "trial")), dim = "trial",
      arguments = list(mu = 0.125, alternative = alternative)), list(estimate = mean(a), std_error = se, statistic = stat, df = 11, p_value = p))
  d <- a - b; se <- sd(d) / sqrt(12); stat <- mean(d) / se; p <- tails(stat, 11, alternative)
  same(p, t.test(a, b, paired = TRUE, alternative = r_name)$p.value)
  add(paste0("t_paired_", alternative), "paired", "t_test", list(arrays = list(x = array_of(a, "trial"), other = array_of(b, "trial")), dim = "trial",
      arguments = list(alternative = alternative)), list(estimate = mean(d), std_error = se, statistic = stat, df = 11, p_value = p))
  va <- var(a) / 12; vu <- var(u) / 7; df <- (va + vu)^2 / (va^2 / 11 + vu^2 / 6); stat <- (mean(a) - mean(u)) / sqrt(va + vu)
  p <- tails(stat, df, alternative); same(p, t.test(a, u, alternative = r_name)$p.value)
  add(paste0("t_welch_", alternative), "two independent samples, Welch", "t_test", list(arrays = list(x = array_of(a, "trial"), other = array_of(u, "trial")), dim = "trial",
      arguments = list(paired = FALSE, alternative = alternative)), list(estimate = mean(a) - mean(u), std_error = sqrt(va + vu), statistic = stat, df = df, p_value = p))
}
far <- 2^30; step <- grid(rnorm(12), 32); se <- sd(step) / sqrt(12)
add("t_far", "the sample shifted by 2^30 and tested against 2^30: the unshifted statistic", "t_test", list(arrays = list(x = array_of(step + far, "trial")), dim = "trial",
    arguments = list(mu = far)), list(statistic = mean(step) / se, std_error = se, p_value = tails(mean(step) / se, 11, "two-sided")))
q <- qt(0.975, 11) * sd(a - b) / sqrt(12)
add("t_interval", "95 % limits of the paired difference", "t_test", list(arrays = list(x = array_of(a, "trial"), other = array_of(b, "trial")), dim = "trial"),
    list(conf_low = mean(a - b) - q, conf_high = mean(a - b) + q))
for (rho in c(0.1, 0.2)) {
  d <- a - b; se <- sqrt((1 / 12 + rho / (1 - rho)) * var(d)); q <- qt(0.975, 11) * se
  add(paste0("corrected_t_", rho), "Nadeau and Bengio: variance (1 / J + n_test / n_train) s^2", "corrected_t_test",
      list(arrays = list(x = array_of(a, "fold"), other = array_of(b, "fold")), dim = "fold", arguments = list(test_fraction = rho)),
      list(estimate = mean(d), std_error = se, statistic = mean(d) / se, df = 11, p_value = tails(mean(d) / se, 11, "two-sided"), conf_low = mean(d) - q, conf_high = mean(d) + q))
}

# --- spread --------------------------------------------------------------------------------------------------------------
one_way <- function(groups) {
  all <- unlist(groups); N <- length(all); k <- length(groups); between <- 0; within <- 0
  for (g in groups) { between <- between + length(g) * (mean(g) - mean(all))^2; within <- within + sum((g - mean(g))^2) }
  stat <- (between / (k - 1)) / (within / (N - k))
  list(statistic = stat, df = k - 1, df_residual = N - k, p_value = pf(stat, k - 1, N - k, lower.tail = FALSE))
}
obrien <- function(groups) one_way(lapply(groups, function(y) { n <- length(y); ((n - 1.5) * n * (y - mean(y))^2 - 0.5 * var(y) * (n - 1)) / ((n - 1) * (n - 2)) }))
padded <- function(groups) t(sapply(groups, function(g) c(g, rep(NaN, max(lengths(groups)) - length(g)))))
plain <- list(grid(rnorm(9), 32), grid(rnorm(14, 0, 2), 32), grid(rexp(6), 32)); tied <- list(c(1, 1, 1, 2, 2), c(1, 3, 3, 3, 5), c(0, 0, 4, 4, 4))
long <- function(g) data.frame(y = unlist(g), f = factor(rep(seq_along(g), lengths(g))))
for (name in c("plain", "tied")) {
  g <- get(name); input <- function(...) list(arrays = list(x = array_of(padded(g), "method", "trial")), dim = "trial", arguments = list(by = "method", ...))
  for (center in c("median", "mean", "trimmed")) {
    f <- switch(center, median = median, mean = mean, trimmed = function(y) mean(y, trim = 0.1))
    found <- one_way(lapply(g, function(y) abs(y - f(y))))
    same(found$p_value, leveneTest(y ~ f, long(g), center = f)[1, 3])
    add(paste("levene", name, center, sep = "_"), "F of the distances from the group's centre", "levene_test", input(center = center), found)
  }
  add(paste0("obrien_", name), "F of O'Brien's transformed values", "obrien_test", input(), obrien(g))
  against <- lapply(2:3, function(k) obrien(g[c(1, k)]))
  add(paste0("obrien_against_", name), "each group against the first", "obrien_test", input(against = 0),
      list(statistic = c(NaN, against[[1]]$statistic, against[[2]]$statistic), p_value = c(NaN, against[[1]]$p_value, against[[2]]$p_value)))
}
big <- lapply(plain, function(y) y * 2^20 )
add("obrien_large_scale", "values of the order of a million: the statistic does not depend on the unit", "obrien_test",
    list(arrays = list(x = array_of(padded(big), "method", "trial")), dim = "trial", arguments = list(by = "method")), obrien(plain))
shifted <- lapply(plain, function(y) y + 2^30)
add("obrien_far", "values shifted by 2^30", "obrien_test", list(arrays = list(x = array_of(padded(shifted), "method", "trial")), dim = "trial", arguments = list(by = "method")), obrien(plain))
r <- cor(a + b, a - b); stat <- r * sqrt(10 / (1 - r^2))
add("pitman_morgan", "equal variances of paired samples: correlation of sum and difference", "pitman_morgan_test",
    list(arrays = list(x = array_of(a, "trial"), other = array_of(b, "trial")), dim = "trial"), list(statistic = stat, df = 10, p_value = tails(stat, 10, "two-sided")))

# --- signed ranks: the exact distribution over all 2^n signs, mid-ranks for ties, zeros dropped -------------------------
signed_rank <- function(d) {
  d <- d[d != 0]; n <- length(d); r <- rank(abs(d)); v <- sum(r[d > 0])
  if (n <= 50) {
    counts <- c(1, rep(0, n * (n + 1)))                                     # of twice the sum of ranks
    for (x in 2 * r) { moved <- c(rep(0, x), counts)[seq_along(counts)]; counts <- counts + moved }
    lower <- sum(counts[seq_len(2 * v + 1)]) / 2^n; upper <- sum(counts[seq(2 * v + 1, length(counts))]) / 2^n
  } else {
    s <- sqrt(sum(r^2) / 4); centre <- sum(r) / 2
    lower <- pnorm((v - centre + 0.5) / s); upper <- pnorm((v - centre - 0.5) / s, lower.tail = FALSE)
    both <- 2 * min(pnorm((v - centre - sign(v - centre) * 0.5) / s), pnorm((v - centre - sign(v - centre) * 0.5) / s, lower.tail = FALSE))
  }
  list(v = v, less = lower, greater = upper, "two-sided" = if (n <= 50) min(1, 2 * min(lower, upper)) else min(1, both))
}
cases <- list(clean = grid(rnorm(15, 0.3)), ties = c(1, 1, 1, -1, 2, 2, -2, 3, 0, 0, 3, 3), few = c(1, 2, -3, 4, 5), forty_nine = sample(c(-1, 1, 1), 49, TRUE) * sample(1:400, 49) / 8,
              many = grid(rnorm(120, 0.1)), many_ties = round(rnorm(80, 0.15) * 2) / 2)
for (name in names(cases)) {
  d <- cases[[name]]; found <- signed_rank(d)
  if (!(name %in% c("ties"))) for (alternative in c("two-sided", "less", "greater"))
    same(found[[alternative]], suppressWarnings(wilcox.test(d, alternative = sub("-", ".", alternative), exact = sum(d != 0) < 50))$p.value)
  for (alternative in c("two-sided", "less", "greater"))
    add(paste("wilcoxon", name, alternative, sep = "_"), "V, the rank sum of positive differences; zeros dropped; exact given the mid-ranks up to 50, then normal with tie and continuity correction",
        "wilcoxon_test", list(arrays = list(x = array_of(d, "dataset")), dim = "dataset", arguments = list(alternative = alternative)), list(statistic = found$v, p_value = found[[alternative]]))
}

# --- Friedman, Iman-Davenport, Nemenyi, critical difference ----------------------------------------------------------------
smooth <- matrix(grid(rnorm(13 * 4) + rep(c(0, 0.3, 0.6, 0.2), each = 13)), 13); coarse <- round(smooth * 2) / 2
for (name in c("untied", "tied")) {
  m <- if (name == "tied") coarse else smooth; N <- nrow(m); k <- ncol(m); ranks <- t(apply(m, 1, rank))
  chi2 <- (k - 1) * sum((colSums(ranks) - N * (k + 1) / 2)^2) / sum((ranks - (k + 1) / 2)^2)
  same(chi2, friedman.test(m)$statistic)
  f <- (N - 1) * chi2 / (N * (k - 1) - chi2); mean_rank <- colMeans(ranks)
  input <- list(arrays = list(x = array_of(m, "dataset", "method")), dim = "dataset", arguments = list(by = "method", direction = "minimize"))
  if (name == "tied") without <- 12 * N / (k * (k + 1)) * (sum(mean_rank^2) - k * (k + 1)^2 / 4) else without <- chi2
  add(paste0("friedman_", name), paste0("corrected for ties; the formula without the correction gives ", format(without, digits = 8)), "friedman_test", input,
      list(statistic = chi2, df = k - 1, p_value = pchisq(chi2, k - 1, lower.tail = FALSE), f_statistic = f, f_p_value = pf(f, k - 1, (k - 1) * (N - 1), lower.tail = FALSE), mean_rank = mean_rank))
  gap <- abs(outer(mean_rank, mean_rank, "-")); q <- gap / sqrt(k * (k + 1) / (12 * N))
  add(paste0("nemenyi_", name), "studentized range on infinite degrees of freedom", "nemenyi_test", input,
      list(statistic = q, p_value = ifelse(q == 0, 1, ptukey(q, k, Inf, lower.tail = FALSE)), mean_rank = mean_rank), tolerance = 1e-8)
  add(paste0("critical_difference_", name), "q sqrt(k (k + 1) / (6 N))", "critical_difference", input, list(cd = qtukey(0.95, k, Inf) / sqrt(2) * sqrt(k * (k + 1) / (6 * N))), tolerance = 1e-6)
}

# --- McNemar ---------------------------------------------------------------------------------------------------------------
for (it in list(c(12, 3), c(5, 5), c(0, 1), c(0, 0), c(40, 61))) {
  na <- it[1]; nb <- it[2]; off <- na + nb; right_a <- c(rep(1, na), rep(0, nb), rep(1, 6), rep(0, 4)); right_b <- c(rep(0, na), rep(1, nb), rep(1, 6), rep(0, 4))
  label <- rep(0:1, length.out = length(right_a)); d <- list(pred = array(cbind(ifelse(right_a == 1, label, 1 - label), ifelse(right_b == 1, label, 1 - label)), c(length(label), 2, 1)), labels = label, kind = "label", positive = 1)
  set <- paste0("mcnemar_", na, "_", nb); add_data(set, d)
  exact <- if (off) binom.test(na, off)$p.value else 1
  chi2 <- if (off) (na - nb)^2 / off else 0; corrected <- if (off) max(abs(na - nb) - 1, 0)^2 / off else 0
  if (off) same(chi2, mcnemar.test(matrix(c(6, na, nb, 4), 2), correct = FALSE)$statistic)
  values <- list(exact = list(p_value = exact, n_a = na, n_b = nb, estimate = (na - nb) / length(label)),
                 chi2 = list(statistic = chi2, p_value = pchisq(chi2, 1, lower.tail = FALSE)), corrected = list(statistic = corrected, p_value = pchisq(corrected, 1, lower.tail = FALSE)))
  for (kind in names(values)) add(paste(set, kind, sep = "_"), "a right and b wrong against a wrong and b right; no discordant pair means p = 1", "mcnemar_test",
      list(data = set, arguments = list(a = 0, b = 1, distribution = kind)), values[[kind]])
}

# --- DeLong ----------------------------------------------------------------------------------------------------------------
parts <- function(y, s) { up <- s[y == 1]; down <- s[y == 0]
  ten <- sapply(up, function(v) mean((v > down) + 0.5 * (v == down))); one <- sapply(down, function(v) mean((up > v) + 0.5 * (up == v))); list(ten = ten, one = one, auc = mean(ten)) }
y <- rep(0:1, c(35, 25)); s1 <- grid(rnorm(60) + y); s2 <- round(4 * (0.5 * s1 + rnorm(60) + 0.4 * y)) / 4; y3 <- rep(0:1, c(20, 30)); s3 <- grid(rnorm(50) + 0.3 * y3)
A <- parts(y, s1); B <- parts(y, s2); C <- parts(y3, s3)
variance <- function(p, q) cov(p$ten, q$ten) / length(p$ten) + cov(p$one, q$one) / length(p$one)
va <- variance(A, A); vb <- variance(B, B); vc <- variance(C, C); se <- sqrt(va + vb - 2 * variance(A, B)); z <- (A$auc - B$auc) / se
r1 <- roc(y, s1, direction = "<", quiet = TRUE); r2 <- roc(y, s2, direction = "<", quiet = TRUE); r3 <- roc(y3, s3, direction = "<", quiet = TRUE)
same(2 * pnorm(-abs(z)), roc.test(r1, r2, method = "delong", paired = TRUE)$p.value)
two <- list(pred = array(cbind(s1, s2), c(60, 2, 1)), labels = y, kind = "score", positive = 1); other <- list(pred = array(s3, c(50, 1, 1)), labels = y3, kind = "score", positive = 1)
add_data("delong_pair", two); add_data("delong_other", other)
add("delong_paired", "same samples, one set of scores with many ties", "delong_test", list(data = "delong_pair", arguments = list(a = 0, b = 1)),
    list(estimate = A$auc - B$auc, std_error = se, statistic = z, p_value = 2 * pnorm(-abs(z)), conf_low = A$auc - B$auc - qnorm(0.975) * se, conf_high = A$auc - B$auc + qnorm(0.975) * se,
         estimate_a = A$auc, estimate_b = B$auc, std_error_a = sqrt(va), std_error_b = sqrt(vb)))
un <- roc.test(r1, r3, method = "delong", paired = FALSE); stat <- (A$auc - C$auc) / sqrt(va + vc); df <- (va + vc)^2 / (va^2 / 59 + vc^2 / 49)
same(list(stat, df, 2 * pt(-abs(stat), df)), list(un$statistic, un$parameter, un$p.value))
add("delong_unpaired", "other samples: Welch's degrees of freedom", "delong_test", list(data = "delong_pair", other_data = "delong_other", arguments = list(a = 0, b = 0)),
    list(estimate = A$auc - C$auc, std_error = sqrt(va + vc), statistic = stat, df = df, p_value = 2 * pt(-abs(stat), df)))

# --- adjustment of p-values --------------------------------------------------------------------------------------------------
p <- c(0.01, NaN, 0.02, 0.03, 0.5, 0.02, NaN, 0.0004, 0.9, 1)
hand <- function(p, method) { ok <- !is.na(p); x <- p[ok]; m <- length(x); o <- order(x); out <- numeric(m)
  h <- sum(1 / seq_len(m)); up <- function(v) rev(cummin(rev(v)))
  v <- switch(method, bonferroni = m * x[o], holm = cummax((m - seq_len(m) + 1) * x[o]), hochberg = up((m - seq_len(m) + 1) * x[o]), BH = up(m / seq_len(m) * x[o]), BY = up(h * m / seq_len(m) * x[o]))
  out[o] <- pmin(1, v); p[ok] <- out; p }
for (method in c("bonferroni", "holm", "hochberg", "BH", "BY")) {
  found <- hand(p, method); same(found[!is.na(p)], p.adjust(p, method)[!is.na(p)])
  add(paste0("p_adjust_", method), "missing p-values stay missing and are not counted", "p_adjust", list(arrays = list(x = array_of(p, "test")), arguments = list(method = method)), list(value = found))
}
add("p_adjust_hommel", "Hommel's, from R", "p_adjust", list(arrays = list(x = array_of(p, "test")), arguments = list(method = "hommel")), list(value = p.adjust(p, "hommel")))
# --- bias of estimates, and its spread against a reference ---------------------------------------------------------------------
claims <- matrix(grid(0.75 + 0.06 * rnorm(3 * 15), 1024), 3) + c(0.05, 0, 0.02); truth <- grid(0.74 + 0.03 * rnorm(15), 1024)
for (direction in c("maximize", "minimize")) {
  bias <- (if (direction == "maximize") 1 else -1) * sweep(claims, 2, truth); each <- apply(bias, 1, t.test)
  against <- lapply(2:3, function(k) obrien(list(bias[1, ], bias[k, ])))
  paired <- lapply(2:3, function(k) { r <- cor(bias[k, ] + bias[1, ], bias[k, ] - bias[1, ]); list(t = r * sqrt(13 / (1 - r^2)), p = 2 * pt(-abs(r * sqrt(13 / (1 - r^2))), 13)) })
  add(paste0("bias_table_", direction), "one-sample t-tests of estimate - truth (of losses: truth - estimate); O'Brien and Pitman-Morgan against the first method", "bias_table",
      list(arrays = list(x = array_of(claims, "method", "trial"), truth = array_of(truth, "trial")), arguments = list(dim = "trial", against = 0, direction = direction)),
      list(estimate = rowMeans(bias), std_error = sapply(each, function(t) t$stderr), conf_low = sapply(each, function(t) t$conf.int[1]), conf_high = sapply(each, function(t) t$conf.int[2]),
           statistic = sapply(each, function(t) unname(t$statistic)), p_value = sapply(each, function(t) t$p.value), df = rep(14, 3), std_dev = apply(bias, 1, sd), rmse = sqrt(rowMeans(bias^2)),
           truth = rep(mean(truth), 3), n = rep(15, 3), truth_ratio = rep(1, 3), obrien_statistic = c(NaN, sapply(against, function(a) a$statistic)), obrien_p_value = c(NaN, sapply(against, function(a) a$p_value)),
           pitman_statistic = c(NaN, sapply(paired, function(a) a$t)), pitman_p_value = c(NaN, sapply(paired, function(a) a$p))))
}
write_vectors("tests.json", "Tests of hypotheses.", c("car", "pROC"))

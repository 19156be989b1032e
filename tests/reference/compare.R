# Reference values for tests/test_compare_*.py, from R itself. Run:  Rscript compare.R > compare.json
suppressPackageStartupMessages({ library(jsonlite); library(car); library(pROC) })
set.seed(20240117)
grid <- function(x) round(x * 1024) / 1024          # exact in binary, so that an offset of 1e9 loses nothing
out <- list(versions = list(R = R.version.string, car = as.character(packageVersion("car")),
                            pROC = as.character(packageVersion("pROC"))))

# --- t tests -------------------------------------------------------------------------------------------------------
a <- grid(rnorm(12, 0.4)); b <- grid(rnorm(12)); c <- grid(rnorm(7, 1, 3))
two <- c(0.25, 0.75)
t_row <- function(r) list(estimate = if (length(r$estimate) == 2) unname(r$estimate[1] - r$estimate[2]) else unname(r$estimate),
  std_error = r$stderr, statistic = unname(r$statistic), df = unname(r$parameter), p_value = r$p.value,
  conf_low = r$conf.int[1], conf_high = r$conf.int[2])
out$t <- list(a = a, b = b, c = c, two = two)
for (alt in c("two.sided", "less", "greater")) {
  out$t[[paste0("one_", alt)]] <- t_row(t.test(a, mu = 0.1, alternative = alt, conf.level = 0.9))
  out$t[[paste0("paired_", alt)]] <- t_row(t.test(a, b, paired = TRUE, alternative = alt))
  out$t[[paste0("welch_", alt)]] <- t_row(t.test(a, c, alternative = alt))
}
out$t$one_offset <- t_row(t.test(a + 1e9, mu = 1e9))
out$t$welch_offset <- t_row(t.test(a + 1e9, c + 1e9))
out$t$two_values <- t_row(t.test(two))
j <- length(a); d <- a - b; rho <- 0.2
se <- sqrt((1 / j + rho / (1 - rho)) * var(d))
out$t$corrected <- list(statistic = mean(d) / se, p_value = 2 * pt(-abs(mean(d) / se), j - 1),
                        conf_low = mean(d) - qt(0.975, j - 1) * se)

# --- spread --------------------------------------------------------------------------------------------------------
groups <- list(grid(rnorm(9)), grid(rnorm(14, 0, 2)), grid(rexp(6)))
tied <- list(c(1, 1, 1, 2, 2), c(1, 3, 3, 3, 5), c(0, 0, 4, 4, 4))
long <- function(g) data.frame(y = unlist(g), f = factor(rep(seq_along(g), lengths(g))))
lev <- function(g, ...) { r <- leveneTest(y ~ f, long(g), ...); list(statistic = r[1, 2], df = r[1, 1], df_residual = r[2, 1], p_value = r[1, 3]) }
obrien <- function(g) {
  r <- lapply(g, function(y) { n <- length(y); ((n - 1.5) * n * (y - mean(y))^2 - 0.5 * var(y) * (n - 1)) / ((n - 1) * (n - 2)) })
  f <- anova(lm(y ~ f, long(r))); list(statistic = f[1, 4], df = f[1, 1], df_residual = f[2, 1], p_value = f[1, 5])
}
shift <- function(g) lapply(g, function(y) y + 1e9)
out$spread <- list(groups = groups, tied = tied)
for (name in c("groups", "tied")) {
  g <- get(name)
  out$spread[[paste0(name, "_median")]] <- lev(g)
  out$spread[[paste0(name, "_mean")]] <- lev(g, center = mean)
  out$spread[[paste0(name, "_trimmed")]] <- lev(g, center = mean, trim = 0.1)
  out$spread[[paste0(name, "_obrien")]] <- obrien(g)
  out$spread[[paste0(name, "_obrien_1_3")]] <- obrien(g[c(1, 3)])
}
out$spread$offset_median <- lev(shift(groups))
out$spread$offset_obrien <- obrien(shift(groups))
pm <- cor.test(a + b, a - b)
out$spread$pitman <- list(statistic = unname(pm$statistic), df = unname(pm$parameter), p_value = pm$p.value, estimate = var(a) / var(b))

# --- signed ranks --------------------------------------------------------------------------------------------------
enumerate <- function(d) {                            # exact null distribution by brute force, ties and all
  d <- d[d != 0]; r <- rank(abs(d)); v <- sum(r[d > 0]); n <- length(d)
  signs <- as.matrix(expand.grid(rep(list(0:1), n))); null <- as.vector(signs %*% r)
  lower <- mean(null <= v + 1e-9); upper <- mean(null >= v - 1e-9)
  list(statistic = v, two.sided = min(1, 2 * min(lower, upper)), less = lower, greater = upper)
}
w_all <- function(d, ...) { r <- list(); for (alt in c("two.sided", "less", "greater")) { t <- suppressWarnings(wilcox.test(d, alternative = alt, ...)); r$statistic <- unname(t$statistic); r[[alt]] <- t$p.value }; r }
clean <- grid(rnorm(15, 0.3)); heavy <- c(1, 1, 1, -1, 2, 2, -2, 3, 0, 0, 3, 3); big <- sample(c(-1, 1, 1), 49, TRUE) * sample(1:400, 49) / 8
coarse <- round(rnorm(80, 0.15) * 2) / 2; large <- grid(rnorm(120, 0.1))
out$wilcoxon <- list(clean = clean, heavy = heavy, big = big, coarse = coarse, large = large,
  clean_r = w_all(clean), clean_offset = w_all((clean + 1e9) - 1e9), heavy_r = enumerate(heavy), big_r = w_all(big, exact = TRUE),
  coarse_r = w_all(coarse, exact = FALSE), large_r = w_all(large, exact = FALSE))

# --- ranks over data sets ------------------------------------------------------------------------------------------
m <- matrix(grid(rnorm(13 * 4) + rep(c(0, 0.3, 0.6, 0.2), each = 13)), 13); mt <- round(m * 2) / 2
fr <- function(m) { r <- friedman.test(m); list(statistic = unname(r$statistic), df = unname(r$parameter), p_value = r$p.value) }
mean_rank <- function(m) colMeans(t(apply(m, 1, rank)))
nem <- function(m) { R <- mean_rank(m); k <- ncol(m); n <- nrow(m); ptukey(abs(outer(R, R, "-")) / sqrt(k * (k + 1) / (12 * n)), k, Inf, lower.tail = FALSE) }
out$ranks <- list(plain = m, tied = mt, plain_r = fr(m), tied_r = fr(mt), plain_rank = mean_rank(m), tied_rank = mean_rank(mt),
  plain_nemenyi = nem(m), tied_nemenyi = nem(mt), q95 = sapply(2:10, function(k) qtukey(0.95, k, Inf) / sqrt(2)))

# --- p.adjust ------------------------------------------------------------------------------------------------------
p <- c(0.01, NA, 0.02, 0.03, 0.5, 0.02, NA, 0.0004, 0.9, 1)
out$p <- list(p = p); for (method in p.adjust.methods) out$p[[method]] <- p.adjust(p, method)

# --- McNemar -------------------------------------------------------------------------------------------------------
mc <- function(n01, n10) { tab <- matrix(c(20, n01, n10, 30), 2); list(n01 = n01, n10 = n10, exact = if (n01 + n10) binom.test(n10, n01 + n10)$p.value else 1,
  chisq = if (n01 + n10) unname(mcnemar.test(tab, correct = FALSE)$statistic) else NA, chisq_p = if (n01 + n10) mcnemar.test(tab, correct = FALSE)$p.value else NA,
  corrected = if (n01 + n10) unname(mcnemar.test(tab)$statistic) else NA, corrected_p = if (n01 + n10) mcnemar.test(tab)$p.value else NA) }
out$mcnemar <- list(mc(3, 12), mc(5, 5), mc(0, 1), mc(40, 61), mc(0, 0))

# --- DeLong --------------------------------------------------------------------------------------------------------
y <- rep(0:1, c(35, 25)); s1 <- grid(rnorm(60) + y); s2 <- round(grid(0.5 * s1 + rnorm(60) + 0.4 * y) * 4) / 4
y3 <- rep(0:1, c(20, 30)); s3 <- grid(rnorm(50) + 0.3 * y3)
r1 <- roc(y, s1, direction = "<", quiet = TRUE); r2 <- roc(y, s2, direction = "<", quiet = TRUE); r3 <- roc(y3, s3, direction = "<", quiet = TRUE)
pt_ <- roc.test(r1, r2, method = "delong", paired = TRUE, conf.level = 0.9); up <- roc.test(r1, r3, method = "delong", paired = FALSE)
out$delong <- list(y = y, s1 = s1, s2 = s2, y3 = y3, s3 = s3, auc = c(auc(r1), auc(r2), auc(r3)), variance = c(var(r1), var(r2), var(r3)), covariance = cov(r1, r2),
  paired = list(statistic = unname(pt_$statistic), p_value = pt_$p.value, conf_low = pt_$conf.int[1], conf_high = pt_$conf.int[2]),
  unpaired = list(statistic = unname(up$statistic), df = unname(up$parameter), p_value = up$p.value),
  ci1 = as.numeric(ci.auc(r1, method = "delong"))[c(1, 3)])
cat(toJSON(out, digits = NA, auto_unbox = TRUE, na = "null", pretty = TRUE))

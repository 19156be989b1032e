# Conformance vectors of comparisons: regions of practical equivalence, margins, several sites. Run: Rscript tests/conformance/compared.R
local({ here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))); source(file.path(here, "common.R")) })
suppressPackageStartupMessages(library(metafor))
set.seed(25)
array_of <- function(values, dims) list(values = values, dims = if (length(dims) == 1) I(dims) else dims)

# --- the Bayesian correlated t-test: a t distribution around the mean, below, within and above the region ------------------------------------
a <- grid(rnorm(10, 0.8, 0.05), 1024); b <- grid(rnorm(10, 0.78, 0.05), 1024); c <- grid(a + 0.125 + rnorm(10, 0, 1 / 256), 1024); flat <- rep(0.25, 10); runs <- matrix(grid(rnorm(30, 0.02, 0.06), 1024), 3)
for (it in list(list("near", a, b), list("alone", a - b, NULL), list("apart", a, c), list("constant", flat, rep(0.5, 10)), list("edge", rep(0.75, 10), rep(0.5, 10)), list("none", flat, flat), list("repeated", runs, NULL)))
  for (rho in c(0.1, 0.25)) for (rope in c(0, 0.015625, 0.25)) {
    d <- as.vector(if (is.null(it[[3]])) it[[2]] else it[[2]] - it[[3]]); J <- length(d); scale <- sqrt((1 / J + rho / (1 - rho)) * var(d)); at <- mean(d)
    p <- if (scale == 0) c(at < -rope, at >= -rope & at <= rope, at > rope) + 0 else c(pt((-rope - at) / scale, J - 1), pt((rope - at) / scale, J - 1) - pt((-rope - at) / scale, J - 1), pt((rope - at) / scale, J - 1, lower.tail = FALSE))
    dims <- if (is.matrix(it[[2]])) c("repeat", "fold") else "fold"; arrays <- list(x = array_of(it[[2]], dims)); if (!is.null(it[[3]])) arrays$other <- array_of(it[[3]], dims)
    add(paste("rope", it[[1]], rho, rope, sep = "_"), "Student t on J - 1 degrees of freedom around the mean, squared scale (1 / J + rho / (1 - rho)) s^2; without spread everything is at the mean, and a mean on the border is inside", "corrected_t_test",
        list(arrays = arrays, dim = dims, arguments = list(test_fraction = rho, rope = rope)), c(list(estimate = at, p_left = p[1], p_rope = p[2], p_right = p[3]), if (scale > 0) list(conf_low = at - qt(0.975, J - 1) * scale, conf_high = at + qt(0.975, J - 1) * scale)))
  }

# --- margins: a is not worse than b by as much; neither is better by as much ----------------------------------------------------------------------
n <- 30; y <- rep(c(0, 1, 1), 10)
prob <- list(pred = array(pmin(pmax(grid(0.5 + 0.2 * (2 * y - 1) + 0.3 * rnorm(n * 4), 64), 1 / 64), 63 / 64), c(n, 4, 1)), labels = y, kind = "probability", positive = 1, threshold = 0.5); add_data("prob", prob)
z <- grid(rnorm(n)); value <- list(pred = array(z + grid(rnorm(n * 4, 0, 0.8), 256), c(n, 4, 1)), labels = z, kind = "value"); add_data("value", value)
draws <- some_draws(n, 60); draws <- draws[apply(draws, 1, function(w) sum(y[w == 0] == 0) > 1 && sum(y[w == 0] == 1) > 1), ][1:40, ]; draw_sets$forty <- draws
for (it in list(list("prob", prob, "accuracy"), list("prob", prob, "auc"), list("prob", prob, "brier"), list("value", value, "mse"))) for (pair in list(c(1, 2), c(2, 1), c(3, 4))) for (margin in c(0.03125, 0.25)) {
  d <- it[[2]]; m <- it[[3]]; s <- pooled_scores(d, m); gap <- sapply(seq_len(nrow(draws)), function(i) { w <- pooled_scores(d, m, weight = draws[i, ]); w[pair[1]] - w[pair[2]] })
  se <- sqrt(2.25 * var(gap) * n / (n - 1)); est <- s[pair[1]] - s[pair[2]]; better <- sign_of(m) * est; low <- pt((better + margin) / se, n - 1, lower.tail = FALSE); high <- pt((better - margin) / se, n - 1)
  add(paste("margin", it[[1]], m, pair[1] - 1, pair[2] - 1, margin, sep = "_"), "one-sided t tests in the direction in which the metric is better: a worse by less than the margin; and neither better by as much (the larger of two)", "contrast",
      list(data = it[[1]], metric = m, draws = "forty", arguments = list(a = pair[1] - 1, b = pair[2] - 1, margin = margin)), list(estimate = est, std_error = se, p_noninferior = low, p_equivalent = max(low, high)))
}

# --- sites: random effects, tau^2 by Paule and Mandel, a new site ---------------------------------------------------------------------------------------
sites <- function(name, estimate, error, metric, scale) {
  if (scale == "auto") { y <- if (metric == "mse") log(estimate) else qlogis(estimate); s <- if (metric == "mse") error / estimate else error / (estimate * (1 - estimate)); back <- if (metric == "mse") exp else plogis } else { y <- estimate; s <- error; back <- identity }
  k <- length(y); at <- function(tau2) { w <- 1 / (s^2 + tau2); mu <- sum(w * y) / sum(w); sum(w * (y - mu)^2) - (k - 1) }
  tau2 <- if (at(0) <= 0) 0 else uniroot(at, c(0, 100 * var(y)), tol = 1e-15)$root; w <- 1 / (s^2 + tau2); mu <- sum(w * y) / sum(w); se <- sqrt(1 / sum(w)); Q <- at(0) + k - 1
  other <- rma(y, sei = s, method = "PM", test = "t", control = list(tol = 1e-12)); stopifnot(abs(coef(other) - mu) < 1e-5, abs(other$tau2 - tau2) < 1e-5, abs(other$se - se) < 1e-5, abs(other$QE - Q) < 1e-9)
  t1 <- qt(0.975, k - 1) * se; t2 <- qt(0.975, k - 2) * sqrt(tau2 + se^2)
  add(paste("sites", name, scale, sep = "_"), "weights 1 / (s^2 + tau^2) with sum w (y - mu)^2 = k - 1; limits t on k - 1, a new site's on k - 2; metrics with two ends as log odds, losses as logarithms", "meta_analysis",
      list(results = list(estimate = estimate, std_error = error, metric = metric), dim = "site", arguments = list(scale = scale)),
      c(list(estimate = back(mu), conf_low = back(mu - t1), conf_high = back(mu + t1), predict_low = back(mu - t2), predict_high = back(mu + t2), tau2 = tau2, statistic = Q, df = k - 1, p_value = pchisq(Q, k - 1, lower.tail = FALSE), n = k, i2 = max(0, (Q - k + 1) / Q)), if (scale == "none") list(std_error = se)), tolerance = 1e-9)
}
for (scale in c("none", "auto")) {
  sites("apart", c(0.8125, 0.75, 0.875, 0.78125, 0.6875), c(0.02, 0.03, 0.02, 0.04, 0.03), "auc", scale); sites("alike", c(0.8125, 0.8, 0.8125, 0.796875), c(0.05, 0.03, 0.04, 0.06), "auc", scale)
  sites("three", c(0.9, 0.7, 0.8), c(0.03, 0.05, 0.04), "accuracy", scale); sites("loss", c(1.25, 0.75, 2, 1.5, 1, 1.125), c(0.125, 0.25, 0.25, 0.1, 0.2, 0.15), "mse", scale)
}
write_vectors("compared.json", "Comparisons: regions of practical equivalence, margins, sites.", "metafor")

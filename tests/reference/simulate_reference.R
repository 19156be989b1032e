# Reference values for the simulators, made with base R and MASS.
# Run in this folder: Rscript simulate_reference.R
library(MASS)
library(jsonlite)

# Mean and quantiles of the maximum of m Binomial(n, p) / n.
grid <- expand.grid(p = c(0.1, 0.5, 0.85, 0.999), n = c(1, 7, 40, 250), m = c(1, 3, 50, 2000))
maximum <- t(apply(grid, 1, function(row) {
  k <- 0:row["n"]
  cdf <- pbinom(k, row["n"], row["p"])^row["m"]
  mass <- diff(c(0, cdf))
  c(mean = sum(k * mass) / row["n"], low = k[which(cdf >= 0.05)[1]] / row["n"], high = k[which(cdf >= 0.95)[1]] / row["n"])
}))

# Linear discriminant of unbalanced classes: log posterior odds of the first class.
set.seed(1)
n <- c(9, 14)
y <- rep(0:1, n)
x <- matrix(rnorm(sum(n) * 3), ncol = 3) + outer(y, c(0, 0.5, 1))
fit <- lda(x, y)
posterior <- predict(fit, x)$posterior
w <- log(posterior[, 1] / posterior[, 2])

# Distances: theta with Mahalanobis (equal) or Bhattacharyya (unequal covariances) distance 3.
covariance <- function(rho) rho + (1 - rho) * diag(3)
bhattacharyya <- function(theta, a, b) {
  s <- (a + b) / 2
  d <- c(0, 0, theta)
  drop(t(d) %*% solve(s) %*% d) / 8 + log(det(s) / sqrt(det(a) * det(b))) / 2
}
equal <- uniroot(function(t) sqrt(mahalanobis(c(0, 0, t), rep(0, 3), covariance(0.8))) - 3, c(0.1, 10), tol = 1e-12)$root
unequal <- uniroot(function(t) bhattacharyya(t, covariance(0.8), covariance(0.4)) - 3, c(0.1, 10), tol = 1e-12)$root

# Bayes error of the four-Gaussian mixture, by the midpoint rule on a fine grid.
bayes <- function(variance) {
  s <- seq(-3, 3, length.out = 2401)
  g <- expand.grid(u = s, v = s)
  at <- function(a, b) dnorm(g$u, a, sqrt(variance)) * dnorm(g$v, b, sqrt(variance)) / 4
  sum(pmin(at(-0.7, 0.3) + at(0.3, 0.3), at(-0.3, 0.7) + at(0.4, 0.7))) * diff(s)[1]^2
}

write_json(
  list(
    versions = list(R = R.version.string, MASS = as.character(packageVersion("MASS"))),
    maximum = list(p = grid$p, n = grid$n, m = grid$m, mean = maximum[, 1], low = maximum[, 2], high = maximum[, 3]),
    lda = list(x = x, y = y, w = w),
    theta = list(equal = equal, unequal = unequal),
    bayes_error = list(variance = c(0.03, 0.04), error = c(bayes(0.03), bayes(0.04)))
  ),
  "simulate_reference.json", digits = NA, auto_unbox = TRUE
)

# Reference values of points of curves and of calibration from R: pROC, rms, glm, lowess. Writes curves.json.
# Run: Rscript tests/reference/curves.R
suppressMessages({library(pROC); library(rms); library(jsonlite)})
here <- sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))
folder <- dirname(here)

# whole-number arithmetic, so that any language can make the same data; probabilities of two decimals, with ties
n <- 90
i <- 0:(n - 1)
y <- as.integer((i * i * 31 + i * 17) %% 101 < 42)
p <- sapply(c(3, 5, 11), function(k) pmin(pmax(((i * i * k + 7 * i * k) %% 97 + 25 * y) / 125, 0.02), 0.97))
p <- round(p, 2)
whole <- 1 + (i * 13) %% 3
real <- 0.25 + ((i * 29) %% 17) / 8
columns <- function(f) apply(p, 2, f)
out <- list(versions = list(R = as.character(getRversion()), pROC = as.character(packageVersion("pROC")),
                            rms = as.character(packageVersion("rms"))),
            label = y, prediction = p, whole = whole, real = real)

curve <- function(s) roc(y, s, levels = c(0, 1), direction = "<", quiet = TRUE)
rates <- c(0.5, 0.8, 0.9, 0.95, 1)
# where the curve is upright pROC gives the corner it meets first; the upper end is the largest sensitivity there
top <- function(s, at) { r <- curve(s); max(coords(r, at, input = "specificity", ret = "sensitivity")$sensitivity,
                                            r$sensitivities[abs(r$specificities - at) < 1e-12]) }
right <- function(s, at) { r <- curve(s); max(coords(r, at, input = "sensitivity", ret = "specificity")$specificity,
                                              r$specificities[abs(r$sensitivities - at) < 1e-12]) }
out$rates <- rates
out$sensitivity_at <- columns(function(s) sapply(rates, function(at) top(s, at)))
out$specificity_at <- columns(function(s) sapply(rates, function(at) right(s, at)))
part <- function(s, low, high) as.numeric(auc(curve(s), partial.auc = c(1 - low, 1 - high), partial.auc.correct = FALSE))
out$partial_auc <- list(first = columns(function(s) part(s, 0, 0.1)), middle = columns(function(s) part(s, 0.15, 0.6)))

logistic <- function(s, w) {
  tight <- glm.control(epsilon = 1e-15, maxit = 100)
  x <- qlogis(s)
  d <- data.frame(y, x, w)
  fit <- function(formula) unname(coef(suppressWarnings(glm(formula, binomial, d, weights = w, control = tight))))
  c(fit(y ~ 1 + offset(x))[1], fit(y ~ x)[2])
}
out$intercept_and_slope <- list(none = columns(function(s) logistic(s, rep(1, n))),
                                whole = columns(function(s) logistic(s, whole)), real = columns(function(s) logistic(s, real)))
# a model that has it all backwards, whose slope is negative
out$backwards <- logistic(1 - p[, 1], rep(1, n))

smooth <- function(s, times) {
  s <- rep(s, times); z <- rep(y, times)
  fit <- lowess(s, z, f = 2 / 3, iter = 0, delta = 0)
  fit$y[match(unique(sort(s)), fit$x)]
}
out$lowess <- list(none = lapply(1:3, function(j) smooth(p[, j], 1)), whole = lapply(1:3, function(j) smooth(p[, j], whole)))
out$distinct <- lapply(1:3, function(j) sort(unique(p[, j])))
# predictions are further apart than lowess' default delta, so that val.prob skips none
out$eavg <- columns(function(s) unname(val.prob(s, y, pl = FALSE)["Eavg"]))
write(toJSON(out, digits = NA, auto_unbox = TRUE), file.path(folder, "curves.json"))

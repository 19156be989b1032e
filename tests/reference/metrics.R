# Reference values of the metrics from R: pROC, survival, boot. Reads metrics.json (the data), writes metrics_r.json.
# Run: Rscript tests/reference/metrics.R
suppressMessages({library(pROC); library(survival); library(boot); library(jsonlite)})
here <- sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))
folder <- dirname(here)
data <- fromJSON(file.path(folder, "metrics.json"))
area <- function(y, s) as.numeric(auc(roc(y, s, levels = c(0, 1), direction = "<", quiet = TRUE)))
columns <- function(p, f) apply(p, 2, f)
out <- list(versions = list(R = as.character(getRversion()), pROC = as.character(packageVersion("pROC")),
                            survival = as.character(packageVersion("survival")), boot = as.character(packageVersion("boot"))))

# AUC with ties
y <- data$binary$label
p <- data$binary$prediction
out$auc <- columns(p, function(s) area(y, s))

# confusion-table metrics by hand, 1 = positive, threshold .5 (strictly above)
hard <- (p > 0.5) * 1
class_error <- function(h) c(mean(h[y == 0] != 0), mean(h[y == 1] != 1))
out$prior_error <- columns(hard, function(h) sum(c(0.9, 0.1) * class_error(h)))   # P(0) = .9
out$sensitivity <- columns(hard, function(h) mean(h[y == 1]))
out$specificity <- columns(hard, function(h) mean(1 - h[y == 0]))
out$mcc <- columns(hard, function(h) cor(h, y))                                    # the phi coefficient
out$smoothed_error_rate <- columns(p, function(s) mean((1 - (2 * y - 1) * tanh(8 * (s - 0.5))) / 2))
weight <- data$binary$weight$real
out$prior_error_weighted <- columns(hard, function(h)
  0.9 * weighted.mean(h[y == 0] != 0, weight[y == 0]) + 0.1 * weighted.mean(h[y == 1] != 1, weight[y == 1]))
out$smoothed_error_rate_weighted <- columns(p, function(s) weighted.mean((1 - (2 * y - 1) * tanh(8 * (s - 0.5))) / 2, weight))

# Hand and Till's multi-class AUC
k <- data$many$label
q <- data$many$prediction
out$auc_many <- sapply(seq_len(dim(q)[2]), function(j) {
  m <- q[, j, ]
  colnames(m) <- 0:3
  as.numeric(multiclass.roc(factor(k), m)$auc)
})

# R2 and RMSE from lm-free formulas
z <- data$number$label
r <- data$number$prediction
out$r2 <- columns(r, function(s) 1 - sum((z - s)^2) / sum((z - mean(z))^2))
out$rmse <- columns(r, function(s) sqrt(mean((z - s)^2)))

# Harrell's concordance: risk (reverse) and predicted time, with ties in time, in prediction, and weights
s <- data$survival
cindex <- function(x, w, reverse) concordance(Surv(s$time, s$event) ~ x, weights = w, reverse = reverse)$concordance
one <- rep(1, length(s$time))
out$concordance <- list(
  none = columns(s$risk, function(x) cindex(x, one, TRUE)),
  whole = columns(s$risk, function(x) cindex(x, s$weight$whole, TRUE)),
  real = columns(s$risk, function(x) cindex(x, s$weight$real, TRUE)),
  time = columns(s$risk, function(x) cindex(x, one, FALSE)))

# 1e5 samples, made by the same whole-number arithmetic as in metrics.py
i <- as.numeric(0:99999)
big_y <- as.integer(((i * i) %% 1009 * 31 + i * 17) %% 101 < 40)
big_s <- ((i * 7919) %% 5003 + 900 * big_y) / 5003
out$large <- area(big_y, big_s)

# boot: the counts of its draws, and the statistic of every draw
set.seed(1)
stat <- function(d, w) c(sum(w * (hard[, 1] == y)) / sum(w), sum(w * (p[, 1] - y)^2) / sum(w),
                         area(rep(y, w), rep(p[, 1], w)))
b <- boot(seq_along(y), stat, R = 25, stype = "f")
out$boot <- list(counts = boot.array(b), accuracy = b$t[, 1], brier = b$t[, 2], auc = b$t[, 3], variance = apply(b$t, 2, var))

write(toJSON(out, digits = I(17), auto_unbox = TRUE), file.path(folder, "metrics_r.json"))

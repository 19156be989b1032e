# Reference values for tests/test_intervals.py. Run:  Rscript intervals.R > intervals.json
suppressPackageStartupMessages({ library(jsonlite); library(pROC); library(boot) })
set.seed(20240229)
out <- list(versions = list(R = R.version.string, pROC = as.character(packageVersion("pROC")),
                            boot = as.character(packageVersion("boot"))))
label <- rep(c(0, 1), c(25, 15))
score <- round(rnorm(40, label * 1.2), 1)                      # rounded: ties within and between classes
r <- roc(label, score, levels = c(0, 1), direction = "<", quiet = TRUE)
out$delong <- list(label = label, score = score, auc = as.numeric(auc(r)), variance = var(r, method = "delong"),
                   level95 = as.numeric(ci.auc(r, method = "delong"))[c(1, 3)],
                   level80 = as.numeric(ci.auc(r, conf.level = .8, method = "delong"))[c(1, 3)])
top <- score + 3 * label                                       # nearly perfect: the upper limit is clipped
r <- roc(label, top, levels = c(0, 1), direction = "<", quiet = TRUE)
out$delong_top <- list(score = top, auc = as.numeric(auc(r)), level95 = as.numeric(ci.auc(r, method = "delong"))[c(1, 3)])

truth <- rnorm(35); guess <- truth + rexp(35) - .8             # a skewed squared error, no ties
b <- boot(cbind(truth, guess), function(d, i) mean((d[i, 1] - d[i, 2])^2), R = 200000)
ci <- boot.ci(b, conf = c(.95, .8), type = "bca")$bca
out$bca <- list(truth = truth, guess = guess, t0 = b$t0, level95 = ci[1, 4:5], level80 = ci[2, 4:5], std_error = sd(b$t))
cat(toJSON(out, digits = 15, auto_unbox = TRUE, pretty = TRUE))

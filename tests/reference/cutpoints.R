# The optimal cut of one marker, and its bootstrap, by cutpointr. Run: Rscript tests/reference/cutpoints.R
suppressPackageStartupMessages({ library(cutpointr); library(jsonlite) })
set.seed(3)
n <- 80
label <- rep(c(1, 0, 0, 1, 0), n / 5)
score <- round(0.9 * label + rnorm(n), 2)
optimum <- function(y, x, metric, column) {                      # all cuts that are equally good, midway between neighbouring scores
  found <- suppressMessages(suppressWarnings(cutpointr(data.frame(x = x, y = y), x, y, method = maximize_metric, metric = metric, direction = ">=",
                            pos_class = 1, use_midpoints = TRUE, break_ties = c)))
  list(cut = I(as.numeric(unlist(found$optimal_cutpoint))), value = as.numeric(unlist(found[[column]]))[1])
}
draws <- t(sapply(1:25, function(b) tabulate(sample(n, n, TRUE), n)))
metrics <- list(youden = list(youden, "youden"), accuracy = list(accuracy, "accuracy"), f1 = list(F1_score, "F1_score"))
cuts <- lapply(metrics, function(m) lapply(0:25, function(b) { rows <- if (b == 0) 1:n else rep(1:n, draws[b, ]); optimum(label[rows], score[rows], m[[1]], m[[2]]) }))
set.seed(4)
boot <- suppressMessages(suppressWarnings(cutpointr(data.frame(x = score, y = label), x, y, method = maximize_metric, metric = youden, direction = ">=", pos_class = 1,
                         use_midpoints = TRUE, boot_runs = 2000)))$boot[[1]]
out <- list(made_by = list(script = "cutpoints.R", R = as.character(getRversion()), cutpointr = as.character(packageVersion("cutpointr"))), label = label, score = score, draws = draws,
            cuts = cuts, bootstrap = list(youden_b = mean(boot$youden_b), youden_oob = mean(boot$youden_oob), se = sd(boot$youden_oob) / sqrt(2000), runs = 2000))
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
writeLines(toJSON(out, digits = NA, auto_unbox = TRUE), file.path(here, "cutpoints.json"))

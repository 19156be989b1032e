# Coming from R, without leaving it: caret tunes, cvstats judges, a data frame comes back.
#
#   RETICULATE_PYTHON=.venv/bin/python Rscript vignettes/09_coming_from_r.R
#
# Runs with what Debian 12 ships (R 4.2.2, caret 6.0.93, reticulate 1.28, ggplot2 3.4.1) and with anything newer.

suppressPackageStartupMessages({
  library(caret)
  library(reticulate)
})
cs <- import("cvstats")

# Tune, and keep every prediction.
set.seed(1)
data <- twoClassSim(100)
control <- trainControl("repeatedcv", number = 5, repeats = 2, classProbs = TRUE,
                        savePredictions = "all", summaryFunction = twoClassSummary)
fit <- train(Class ~ ., data, method = "knn", metric = "ROC", preProcess = c("center", "scale"),
             tuneGrid = data.frame(k = seq(5, 25, 4)), trControl = control)

# The data frame goes in as it is. Whole numbers need no L.
cube <- cs$read_predictions(fit$pred, positive = "Class1")
out <- cs$winner(cube, "auc", times = 500, rng = 1)
print(cs$summary(out))

# A data frame comes back: the estimate beside what caret's table claims for the same model.
honest <- cs$tidy(out)
print(honest[, c("selected", "estimate", "conf_low", "conf_high", "naive", "optimism")])
cat("caret's best k:", fit$bestTune$k, "with mean ROC", round(max(fit$results$ROC), 4), "\n")

# Which k cannot be excluded? One row for each, ready for ggplot.
rows <- cs$tidy(cs$best_set(cube, "auc", times = 500, rng = 1))
rows$k <- as.numeric(sub("k=", "", rows$configuration))
print(head(rows[order(-rows$estimate), c("k", "estimate", "difference", "in_set")], 4))
if (requireNamespace("ggplot2", quietly = TRUE)) {
  library(ggplot2)
  figure <- ggplot(rows, aes(k, estimate, colour = in_set)) + geom_point() +
    geom_hline(yintercept = honest$estimate, linetype = 2) +
    labs(y = "AUC", colour = "cannot be\nexcluded")
  ggsave("configurations.pdf", figure, width = 5, height = 3)
}

# What a colleague without R needs to make the same numbers: the predictions, and what was found.
write.csv(fit$pred, "caret.csv", row.names = FALSE)
write.csv(honest, "winner.csv", row.names = FALSE)

# Separate-sampling cross-validation trained by another program: Rscript separate_lda.R, in this folder.
# Reads the design that cvstats made (tidy(pairs(separate_folds(...))), one row for each pair of folds and sample), trains a
# linear discriminant without each pair of folds, and writes one long table; then its own numbers, by plain loops.
library(MASS)
options(digits = 15)
design <- read.csv("separate_lda_design.csv", stringsAsFactors = FALSE)
design$train <- design$train == "True"
features <- list(sepal = c("Sepal.Length", "Sepal.Width"), petal = c("Petal.Length", "Petal.Width"))
rows <- list()
for (name in names(features)) for (pair in unique(design$pair)) {
  part <- design[design$pair == pair, ]
  x <- iris[part$sample, features[[name]]]
  fit <- lda(x[part$train, ], factor(part$label[part$train]), prior = c(0.5, 0.5))
  test <- part[!part$train, ]
  risk <- predict(fit, x[!part$train, ])$posterior[, "virginica"]
  rows[[length(rows) + 1]] <- data.frame(sample = test$sample, configuration = name, partner = test$partner, fold = test$fold,
                                         prediction = signif(risk, 12), label = test$label)
}
long <- do.call(rbind, rows)
write.csv(long, "separate_lda.csv", row.names = FALSE, quote = FALSE)

wrong <- (long$prediction > 0.5) != (long$label == "virginica")
out <- list()
for (name in names(features)) {
  mine <- long$configuration == name
  error <- sapply(c("versicolor", "virginica"), function(label) {
    own <- mine & long$label == label
    mean(tapply(wrong[own], long$sample[own], mean))       # a sample counts once, whatever its number of partners
  })
  pairs <- 0; right <- 0
  down <- long[mine & long$label == "versicolor", ]; up <- long[mine & long$label == "virginica", ]
  for (a in seq_len(nrow(up))) for (b in seq_len(nrow(down))) {
    if (up$partner[a] == down$fold[b] && down$partner[b] == up$fold[a]) {      # one model left out both
      pairs <- pairs + 1; right <- right + (up$prediction[a] > down$prediction[b]) + (up$prediction[a] == down$prediction[b]) / 2
    }
  }
  out[[name]] <- data.frame(configuration = name, versicolor = error[[1]], virginica = error[[2]],
                            overall = 0.98 * error[[1]] + 0.02 * error[[2]], auc = right / pairs)
}
write.csv(do.call(rbind, out), "separate_lda_numbers.csv", row.names = FALSE, quote = FALSE)
writeLines(c(R.version.string, paste("MASS", packageVersion("MASS"))), "separate_lda_version.txt")

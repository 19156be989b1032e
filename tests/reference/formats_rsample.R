# Folds by rsample, models by hand, columns as tune::collect_predictions() writes them. Run from the repository root.
suppressPackageStartupMessages(library(rsample))
out <- "tests/files"
set.seed(2)
rows <- sort(sample(which(iris$Species != "setosa"), 30))
two <- droplevels(iris[rows, ])
rownames(two) <- NULL

collect <- function(folds, formulas) {
  ids <- intersect(c("id", "id2"), names(folds))
  do.call(rbind, lapply(seq_len(nrow(folds)), function(i) {
    split <- folds$splits[[i]]
    held <- setdiff(seq_len(nrow(two)), as.integer(split, data = "analysis"))
    do.call(rbind, lapply(seq_along(formulas), function(j) {
      fit <- suppressWarnings(glm(formulas[[j]], binomial, analysis(split)))
      p <- unname(predict(fit, two[held, ], type = "response"))
      data.frame(as.data.frame(folds[rep(i, length(held)), ids]),
                 .pred_class = levels(two$Species)[1 + (p > .5)], .row = held,
                 degree = j, Species = two$Species[held], .pred_versicolor = 1 - p, .pred_virginica = p,
                 .config = paste0("Preprocessor1_Model", j), check.names = FALSE)
    }))
  }))
}
formulas <- list(Species ~ Sepal.Width, Species ~ Sepal.Length + Sepal.Width)
plain <- collect(vfold_cv(two, v = 5, strata = Species), formulas)
repeated <- collect(vfold_cv(two, v = 3, repeats = 2), formulas)
write.csv(plain, file.path(out, "tidymodels_cv.csv"), row.names = FALSE)
write.csv(repeated, file.path(out, "tidymodels_repeated.csv"), row.names = FALSE)
r <- repeated
write.csv(data.frame(sample = r$.row, configuration = r$.config, `repeat` = r$id, fold = r$id2,
                     prediction_versicolor = r$.pred_versicolor, prediction_virginica = r$.pred_virginica,
                     label = r$Species, check.names = FALSE),
          file.path(out, "tidymodels_repeated_long.csv"), row.names = FALSE)
writeLines(paste(R.version.string, "rsample", packageVersion("rsample")), file.path(out, "tidymodels_version.txt"))

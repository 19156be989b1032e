# Predictions of mlr (the predecessor of mlr3). Run from the repository root: Rscript tests/reference/formats_mlr.R
suppressPackageStartupMessages(library(mlr))
out <- "tests/files"
configureMlr(show.info = FALSE)
set.seed(3)
two <- droplevels(iris[sort(sample(which(iris$Species != "setosa"), 30)), c(1, 2, 5)])
rownames(two) <- NULL
task <- makeClassifTask(data = two, target = "Species")
r <- resample(makeLearner("classif.rpart", predict.type = "prob"), task, makeResampleDesc("RepCV", folds = 3, reps = 2))
write.csv(as.data.frame(r$pred), file.path(out, "mlr_repeated.csv"), row.names = FALSE)
r <- resample(makeLearner("regr.lm"), makeRegrTask(data = mtcars[c("mpg", "wt", "hp")], target = "mpg"),
              makeResampleDesc("CV", iters = 4))
write.csv(as.data.frame(r$pred), file.path(out, "mlr_regression.csv"), row.names = FALSE)
writeLines(paste(R.version.string, "mlr", packageVersion("mlr")), file.path(out, "mlr_version.txt"))

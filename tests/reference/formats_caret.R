# Predictions as caret saves them. Run from the repository root: Rscript tests/reference/formats_caret.R
suppressPackageStartupMessages(library(caret))
out <- "tests/files"
save_csv <- function(x, name) write.csv(x, file.path(out, name), row.names = FALSE)
set.seed(1)
rows <- sort(sample(which(iris$Species != "setosa"), 30))
two <- droplevels(iris[rows, ])
rownames(two) <- NULL

control <- function(method, ...) trainControl(method, savePredictions = "all", classProbs = TRUE, ...)
form <- Species ~ Sepal.Length + Sepal.Width

# repeated CV, two tuning parameters, class probabilities
m <- train(form, two, method = "svmRadial", tuneGrid = expand.grid(C = c(.5, 2), sigma = c(.1, 1)),
           trControl = control("repeatedcv", number = 3, repeats = 2))
save_csv(m$pred, "caret_repeatedcv.csv")
# the same predictions in the layout of our long table, written by hand: numbers must agree
p <- m$pred
long <- data.frame(sample = p$rowIndex, configuration = paste0("C=", p$C, ", sigma=", p$sigma),
                   `repeat` = as.integer(sub(".*Rep", "", p$Resample)), fold = sub("\\..*", "", p$Resample),
                   prediction_versicolor = p$versicolor, prediction_virginica = p$virginica,
                   label = p$obs, check.names = FALSE)
save_csv(long, "caret_repeatedcv_long.csv")
# plain CV
m <- train(form, two, method = "knn", tuneGrid = data.frame(k = c(3, 5)), trControl = control("cv", number = 5))
save_csv(m$pred, "caret_cv.csv")
# leave-one-out has no Resample column
m <- train(form, two, method = "knn", tuneGrid = data.frame(k = c(3, 5)), trControl = control("LOOCV"))
save_csv(m$pred, "caret_loocv.csv")
# bootstrap: a sample is held out by several resamples
m <- train(form, two, method = "knn", tuneGrid = data.frame(k = 5), trControl = control("boot", number = 4))
save_csv(m$pred, "caret_boot.csv")
# no tuning parameter, three classes
all3 <- iris[sort(sample(150, 45)), ]
rownames(all3) <- NULL
m <- train(form, all3, method = "lda", trControl = control("cv", number = 3))
save_csv(m$pred, "caret_multiclass.csv")
# regression
m <- train(mpg ~ wt + hp, mtcars, method = "knn", tuneGrid = data.frame(k = c(3, 5)),
           trControl = trainControl("cv", number = 4, savePredictions = "all"))
save_csv(m$pred, "caret_regression.csv")
# scores per fold are not predictions
save_csv(m$resample, "caret_scores.csv")
writeLines(paste(R.version.string, "caret", packageVersion("caret")), file.path(out, "caret_version.txt"))

# Makes caret_fits_knn.csv and caret_fits_tree.csv: two fits with folds of their own, the first with columns about the
# rows beside its tuning values, the second with classes only.
suppressMessages(library(caret))
data <- iris[51:150, ]
data$Species <- factor(data$Species)
data <- data[seq(1, 100, 2), ]
set.seed(1)
control <- trainControl("cv", number = 5, classProbs = TRUE, savePredictions = "all")
knn <- train(Species ~ ., data, method = "knn", tuneGrid = data.frame(k = c(3, 7)), trControl = control)
pred <- knn$pred
pred$plant <- rownames(data)[pred$rowIndex]
pred$site <- pred$rowIndex %% 3
write.csv(pred, "caret_fits_knn.csv")
set.seed(2)
control <- trainControl("cv", number = 5, savePredictions = "all")
tree <- train(Species ~ ., data, method = "rpart", tuneGrid = data.frame(cp = c(0, .1)), trControl = control)
write.csv(tree$pred, "caret_fits_tree.csv")
cat(R.version.string, "caret", as.character(packageVersion("caret")), "\n")

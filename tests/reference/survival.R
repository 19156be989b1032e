# Reference values of survival metrics by R's survival and riskRegression, on the data that survival.py wrote.
# Times are also rounded to whole numbers, so that events and censorings are tied; case weights count as repeated rows.
# Made with R 4.2, survival 3.5, riskRegression 2022.11: Rscript survival.R
suppressMessages({library(survival); library(riskRegression); library(jsonlite)})
data <- fromJSON("survival.json")
risk <- data$risk; S <- data$survival; horizon <- data$horizon
weight <- rep(1:3, length.out = length(data$time))
everything <- function(time, event, rows) {
  d <- data.frame(time = time, event = event)[rows, ]
  uno <- sapply(1:ncol(risk), function(j) {
    d$risk <- risk[rows, j]
    1 - concordance(Surv(time, event) ~ risk, d, timewt = "n/G2")$concordance
  })
  auc <- brier <- oe <- matrix(NA, ncol(risk), length(horizon))
  km <- summary(survfit(Surv(time, event) ~ 1, d), times = horizon)$surv
  for (j in 1:ncol(risk)) for (k in seq_along(horizon)) {
    out <- Score(list(m = 1 - S[rows, j, k]), formula = Surv(time, event) ~ 1, data = d, times = horizon[k],
                 metrics = c("auc", "brier"), null.model = FALSE, se.fit = FALSE, cens.model = "km")
    auc[j, k] <- out$AUC$score$AUC
    brier[j, k] <- out$Brier$score$Brier
    oe[j, k] <- (1 - km[k]) / mean(1 - S[rows, j, k])
  }
  list(uno = uno, auc = auc, brier = brier, observed_expected = oe)
}
one <- seq_along(data$time)
whole <- pmax(1, round(data$time))
found <- list(
  plain = everything(data$time, data$event, one),
  tied = everything(whole, data$event, one),
  weighted = everything(whole, data$event, rep(one, weight)))
versions <- paste("R", getRversion(), "survival", packageVersion("survival"), "riskRegression", packageVersion("riskRegression"))
write(toJSON(list(made_with = versions, weight = weight, found = found), digits = NA, auto_unbox = TRUE), "survival_r.json")

# Reference values of the meta-analysis of sites by R's metafor: Paule and Mandel's tau^2, Student's t without a
# shrinking Knapp-Hartung factor (test = "adhoc"), Higgins' interval for a new site. Made with R 4.2, metafor 3.8: Rscript sites.R
suppressMessages({library(metafor); library(jsonlite)})
cases <- list(
  differ = list(y = c(.81, .74, .88, .79, .69), s = c(.02, .03, .02, .04, .05)),
  alike = list(y = c(.81, .80, .82), s = c(.03, .05, .04)),
  many = list(y = c(.6, .7, .9, .85, .55, .65, .95, .72), s = c(.05, .02, .03, .06, .04, .1, .02, .03)))
one <- function(y, s, back) {
  fit <- rma(yi = y, vi = s^2, method = "PM", test = "adhoc", control = list(tol = 1e-14, maxiter = 10000))
  half <- qt(.975, length(y) - 2) * sqrt(fit$tau2 + fit$se^2)
  list(tau2 = fit$tau2, estimate = back(fit$beta[1]), conf_low = back(fit$ci.lb), conf_high = back(fit$ci.ub),
       predict_low = back(fit$beta[1] - half), predict_high = back(fit$beta[1] + half),
       statistic = fit$QE, p_value = fit$QEp)
}
found <- lapply(cases, function(x) list(
  none = one(x$y, x$s, identity),
  auto = one(qlogis(x$y), x$s / (x$y * (1 - x$y)), plogis)))
write(toJSON(list(made_with = paste("metafor", packageVersion("metafor")), cases = cases, found = found), digits = NA, auto_unbox = TRUE), "sites.json")

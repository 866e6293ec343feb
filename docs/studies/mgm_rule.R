# A table and the types of its columns -> the edges that the rule of R mgm keeps, on top of glmnet.
#
# Not the package mgm, but its default rule for pairwise graphs with EBIC, written anew from its
# description (Haslbeck and Waldorp, Journal of Statistical Software 93(8), 2020):
#
# - numbers are scaled; categories enter as indicators of all levels but the first;
# - each column is regressed on all others by the lasso (gaussian, multinomial or poisson), and
#   lambda has the lowest EBIC = -2 log likelihood + k log n + 2 gamma k log(predictors), where k
#   counts predictors with any coefficient other than zero, at shrunken estimates, and normal
#   numbers have variance 1;
# - coefficients below |b| sqrt(log(predictors) / n) are set to zero ("LW"), for each level of the
#   response by itself, |b| being their Euclidean length;
# - an edge is kept if both regressions have a coefficient of the other column left ("AND").
#
# Rscript mgm_rule.R table.csv g,g,c,p ... prints one line "u v" per edge, columns counted from 0.

suppressPackageStartupMessages(library(glmnet))

gamma <- 0.25
arguments <- commandArgs(trailingOnly = TRUE)
table <- read.csv(arguments[1])
types <- strsplit(arguments[2], ",")[[1]]
n <- nrow(table)
columns <- ncol(table)

design <- lapply(seq_len(columns), function(u) {
  if (types[u] == "c") {
    values <- sort(unique(table[[u]]))
    outer(table[[u]], values[-1], "==") * 1.0
  } else if (types[u] == "g") {
    matrix(as.numeric(scale(table[[u]])))
  } else {
    matrix(as.numeric(table[[u]]))
  }
})
families <- c(g = "gaussian", c = "multinomial", p = "poisson")

# Columns with a coefficient left in the regression of column v.
neighbours <- function(v) {
  others <- setdiff(seq_len(columns), v)
  x <- do.call(cbind, design[others])
  owner <- rep(others, vapply(design[others], ncol, 1L))
  family <- families[[types[v]]]
  y <- if (types[v] == "g") design[[v]][, 1] else table[[v]]
  fit <- glmnet(x, if (types[v] == "c") factor(y) else y, family = family)
  # One matrix (predictors, lambdas) for each level of the response, or one for numbers.
  coefficients <- if (family == "multinomial") fit$beta else list(fit$beta)
  coefficients <- lapply(coefficients, as.matrix)
  active <- Reduce(`+`, lapply(coefficients, function(b) b != 0)) > 0
  k <- colSums(active)
  deviance <- (1 - fit$dev.ratio) * fit$nulldev # -2 log likelihood, but for a constant
  best <- which.min(deviance + k * log(n) + 2 * gamma * k * log(ncol(x)))
  kept <- Reduce(`|`, lapply(coefficients, function(b) {
    chosen <- b[, best]
    limit <- sqrt(sum(chosen^2)) * sqrt(log(ncol(x)) / n)
    chosen != 0 & abs(chosen) >= limit
  }))
  unique(owner[kept])
}

found <- matrix(FALSE, columns, columns)
for (v in seq_len(columns)) found[v, neighbours(v)] <- TRUE
pairs <- which(found & t(found) & upper.tri(found), arr.ind = TRUE)
for (row in seq_len(nrow(pairs))) cat(pairs[row, 1] - 1, pairs[row, 2] - 1, "\n")

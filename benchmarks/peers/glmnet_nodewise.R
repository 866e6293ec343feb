# A folder with a table and a grid -> seconds of nodewise regressions by glmnet (JSON).
#
# Every column is regressed on the indicator matrix of all others: a continuous one with
# family "gaussian", one with two levels with "binomial", one with more with "multinomial" and
# type.multinomial = "grouped".  glmnet groups the classes of one design column, not the levels of
# a predictor, and its weights are those of the joint problem per design column.  Both directions
# of an edge are penalised, so the joint lam corresponds to lam / 2 here.
#
#     Rscript glmnet_nodewise.R FOLDER

suppressPackageStartupMessages({
  library(glmnet)
  library(parallel)
})

folder <- commandArgs(trailingOnly = TRUE)[1]
meta <- scan(file.path(folder, "shape.txt"), quiet = TRUE)
n <- meta[1]
p <- meta[2]
levels <- meta[-(1:2)]
numbers <- function(name, count) readBin(file.path(folder, name), "double", count)
width <- c(rep(1, p), levels)
Z <- matrix(numbers("design.bin", n * sum(width)), n)   # column-major
lams <- numbers("lams.bin", 1e4)
scale <- numbers("scale.bin", length(width))
last <- cumsum(width)
first <- last - width + 1
owner <- rep(seq_along(width), width)

glmnet.control(fdev = 0, devmax = 1)   # solve the whole grid

family_of <- function(node) {
  if (node <= p) "gaussian" else if (width[node] == 2) "binomial" else "multinomial"
}

weights_of <- function(node) scale[owner[owner != node]] * scale[node]

thresh <- 1e-7   # the default of glmnet
regress <- function(node) {
  weight <- weights_of(node)
  y <- Z[, first[node]:last[node], drop = FALSE]
  # glmnet rescales penalty factors to mean 1; the grid takes the mean back.
  glmnet(Z[, owner != node], if (node <= p) y[, 1] else factor(max.col(y)),
         family = family_of(node), type.multinomial = "grouped", lambda = lams / 2 * mean(weight),
         penalty.factor = weight, standardize = FALSE, thresh = thresh)
}

# The worst violation of glmnet's own optimality conditions over the grid, per unit of weight.
kkt <- function(node, fit) {
  x <- Z[, owner != node]
  y <- Z[, first[node]:last[node], drop = FALSE]
  weight <- weights_of(node)
  worst <- 0
  for (k in seq_along(lams)) {
    if (family_of(node) == "multinomial") {
      coef <- sapply(fit$beta, function(b) b[, k])
      eta <- exp(x %*% coef + rep(fit$a0[, k], each = n))
      residual <- eta / rowSums(eta) - y
    } else {
      coef <- as.matrix(fit$beta[, k])
      eta <- x %*% coef + fit$a0[k]
      residual <- if (node <= p) eta - y else 1 / (1 + exp(-eta)) - y[, 2]
    }
    grad <- crossprod(x, residual) / n
    size <- sqrt(rowSums(coef^2))
    bound <- lams[k] / 2 * weight
    active <- sqrt(rowSums((grad + bound * coef / pmax(size, 1e-300))^2))
    idle <- pmax(0, sqrt(rowSums(grad^2)) - bound)
    worst <- max(worst, ifelse(size > 0, active, idle) / weight)
  }
  worst
}

fastest <- function(work) min(replicate(5, system.time(work())[["elapsed"]]))
nodes <- seq_along(width)
alone <- function() lapply(nodes, regress)
both <- function() mclapply(nodes, function(node) length(regress(node)$lambda), mc.cores = 2)
worst <- function() max(mapply(kkt, nodes, alone()))

loose <- list(kkt = worst(), seconds = min(fastest(alone), fastest(both)))
# As accurate as what it is compared with.
reached <- loose$kkt
while (reached > 1e-5 && thresh > 1e-14) {
  thresh <- thresh / 10
  reached <- worst()
}
cat(sprintf(paste0('{"version": "%s", "one process": %.4f, "two processes": %.4f, "kkt": %.3g, ',
                   '"thresh": %.0e, "default": {"seconds": %.4f, "kkt": %.3g}}\n'),
            packageVersion("glmnet"), fastest(alone), fastest(both), reached, thresh,
            loose$seconds, loose$kkt))

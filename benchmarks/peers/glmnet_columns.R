# A folder with a table, a grid and some columns -> seconds of glmnet for each of these (JSON).
#
# Every column named is regressed on the indicator matrix of all others with family "gaussian", over
# the whole grid, as in glmnet_nodewise.R: for tables with too many columns to regress all of them.
#
#     Rscript glmnet_columns.R FOLDER

suppressPackageStartupMessages(library(glmnet))

folder <- commandArgs(trailingOnly = TRUE)[1]
meta <- scan(file.path(folder, "shape.txt"), quiet = TRUE)
numbers <- function(name, count) readBin(file.path(folder, name), "double", count)
width <- c(rep(1, meta[2]), meta[-(1:2)])
Z <- matrix(numbers("design.bin", meta[1] * sum(width)), meta[1])   # column-major
lams <- numbers("lams.bin", 1e4)
scale <- numbers("scale.bin", length(width))
owner <- rep(seq_along(width), width)

glmnet.control(fdev = 0, devmax = 1)   # solve the whole grid

regress <- function(node) {
  weight <- scale[owner[owner != node]] * scale[node]
  x <- Z[, owner != node]
  # Taking a column out of the matrix is not glmnet's work.
  system.time(
    glmnet(x, Z[, node], lambda = lams / 2 * mean(weight), penalty.factor = weight,
           standardize = FALSE)
  )[["elapsed"]]
}

invisible(regress(1))   # loads what is loaded late
taken <- sapply(numbers("columns.bin", 1e4) + 1, regress)
cat(sprintf('{"version": "%s", "seconds": %.5f}\n', packageVersion("glmnet"), mean(taken)))

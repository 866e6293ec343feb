# A table of normal numbers -> probability of every edge by BDgraph, as rows "source,target,probability".
#
# Rscript bdgraph.R table.csv iterations
#
# The sampler is the one by marginal pseudo-likelihood, which BDgraph recommends for wide tables.

suppressPackageStartupMessages(library(BDgraph))

arguments <- commandArgs(trailingOnly = TRUE)
table <- as.matrix(read.csv(arguments[1]))
set.seed(1)
found <- bdgraph.mpl(table, method = "ggm", iter = as.integer(arguments[2]), cores = 1, verbose = FALSE)
links <- plinks(found, round = 6)
cat("source,target,probability\n")
for (i in seq_len(ncol(table) - 1)) {
  for (j in (i + 1):ncol(table)) {
    cat(sprintf("%d,%d,%.6f\n", i - 1, j - 1, links[i, j]))
  }
}
cat(sprintf("version,%s,0\n", packageVersion("BDgraph")))

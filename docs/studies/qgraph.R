# A table of numbers -> partial correlations by qgraph, as rows "method,source,target,value".
#
# Rscript qgraph.R table.csv
#
# EBICglasso is what bootnet's default of that name calls; ggmModSelect is the search without
# shrinkage that qgraph has beside it.

suppressPackageStartupMessages(library(qgraph))

table <- read.csv(commandArgs(trailingOnly = TRUE)[1])
S <- cor(table)
n <- nrow(table)
fits <- list(
  EBICglasso = EBICglasso(S, n, gamma = 0.5, verbose = FALSE),
  ggmModSelect = ggmModSelect(S, n, gamma = 0.5, verbose = FALSE)$graph
)
cat("method,source,target,value\n")
for (method in names(fits)) {
  for (i in seq_len(ncol(table) - 1)) {
    for (j in (i + 1):ncol(table)) {
      value <- fits[[method]][i, j]
      cat(sprintf("%s,%s,%s,%.6f\n", method, colnames(table)[i], colnames(table)[j], value))
    }
  }
}
cat(sprintf("version,qgraph,%s,0\n", packageVersion("qgraph")))

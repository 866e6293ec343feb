# A table with gaps -> completions by mice, as files. Arguments: table, folder, how many, factors.
suppressMessages(library(mice))
given <- commandArgs(trailingOnly = TRUE)
table <- read.csv(given[1], na.strings = "")
for (name in strsplit(given[4], ",")[[1]]) table[[name]] <- factor(table[[name]])
n <- as.integer(given[3])
done <- mice(table, m = n, maxit = 5, printFlag = FALSE, seed = 1)
for (k in seq_len(n)) {
  write.csv(complete(done, k), file.path(given[2], paste0(k, ".csv")), row.names = FALSE)
}

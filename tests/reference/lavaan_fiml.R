# lavaan_fiml.csv -> lavaan_fiml.json: mean and covariance of four columns with gaps, by full
# information maximum likelihood.
#
#     cd tests/reference && Rscript lavaan_fiml.R
#
# Needs R with lavaan (Debian: r-cran-lavaan).  The model is saturated.  lavaan starts it from its own
# EM estimate; by default that ends too early for a comparison to six digits.

library(lavaan)

table <- read.csv("lavaan_fiml.csv")
names <- colnames(table)
pairs <- combn(names, 2)
model <- paste(
  c(
    paste(names, "~~", names),
    paste(pairs[1, ], "~~", pairs[2, ]),
    paste(names, "~ 1")
  ),
  collapse = "\n"
)
fit <- lavaan(
  model,
  data = table, missing = "fiml", baseline = FALSE,
  em.h1.tol = 1e-14, em.h1.iter.max = 100000L
)
stopifnot(lavInspect(fit, "converged"))
found <- fitted(fit)
number <- function(x) formatC(x, digits = 15, format = "g", flag = "")
vector <- function(x) paste0("[", paste(number(x), collapse = ", "), "]")
rows <- apply(found$cov[names, names], 1, vector)
writeLines(
  c(
    "{",
    paste0(" \"lavaan\": \"", as.character(packageVersion("lavaan")), "\","),
    paste0(" \"mean\": ", vector(found$mean[names]), ","),
    paste0(" \"log_likelihood\": ", number(as.numeric(logLik(fit))), ","),
    paste0(" \"covariance\": [\n  ", paste(rows, collapse = ",\n  "), "\n ]"),
    "}"
  ),
  "lavaan_fiml.json"
)

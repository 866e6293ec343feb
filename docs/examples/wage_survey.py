"""
What goes with a man's wage?
============================

A survey asked 3,000 men for their wage, age, education, marital status, race, job class, health
and health insurance. Everything goes with everything in such a table: the educated earn more, and
they also have other jobs, better health and insurance more often. Which of these relations are
left once all other columns are accounted for?
"""

import mixedgm as mg

wage = mg.datasets.load_wage()
wage.head()

# %%
# Look at the table first
# -----------------------
#
# ``check_table`` says how every column is understood, and what is wrong or doubtful about it.

checked = mg.check_table(wage)
print(checked.schema)

# %%
# Fit
# ---
#
# The default tests every pair of columns, given all edges that pass, and keeps those that have an
# edge with a probability of at least 0.55. That graph is estimated without penalty; edges of
# several parameters are shrunken by what the data say about their size. The summary says how many
# of the edges are expected to be false, and how far the estimate is from the optimum, recomputed.

model = mg.MixedGraphicalModel().fit(wage)
print(model.summary())

# %%
# The network: two columns without a line between them are independent given all others, as far as
# this model can tell.

drawing = model.plot()

# %%
# The same graph, alive: drag, zoom, search, and click on an edge to see what it consists of.

model.view(wage)

# %%
# What an edge consists of
# ------------------------
#
# In words, with everything else held fixed:

print(model.describe("logwage", "education"))
print(model.describe("education", "jobclass"))

# %%
# In numbers, an edge between a number and a category is one parameter per level. Wages rise from
# each education to the next:

model.interaction("logwage", "education").round(2)

# %%
# How certain is it?
# ------------------
#
# Tests of all pairs, the clearest first, with an interval for every strength. "Absent" and
# "undecided" are different answers: of some pairs the table says that they are unrelated, of
# others it does not say enough.

tests = mg.edge_tests(model, wage, random_state=0)
shown = ["source", "target", "strength", "lower", "upper", "probability", "verdict"]
of_wage = tests.edges().query("source == 'logwage' or target == 'logwage'")
of_wage[shown].round(4)

# %%
# So job class, which goes with the wage in every cross table, tells hardly anything about it once
# education is known.
#
# Ask the model
# -------------
#
# The model is a joint distribution, and can be asked for any part of it given any other. What
# would a college graduate of forty years earn, with and without health insurance?

for insured in wage["health_ins"].cat.categories:
    known = {"age": 40, "education": "4. College Grad", "health_ins": insured}
    answer = model.conditional("logwage", known)
    print(insured, round(answer.mean["logwage"], 2))

# %%
# Does it fit?
# ------------
#
# The model knows lines and levels, nothing else. ``check_fit`` simulates tables from it and says
# where the survey looks different: with 3,000 rows even small differences show.

fit = model.check_fit(wage, n_sim=100, random_state=0)
fit.flags()[["column", "other", "meaning", "where"]].head(8)

# %%
# Age and wage are related along a curve: wages rise until about fifty, and then no longer. The
# edge between them is the best straight line.

"""
What is related, given who people are?
======================================

In a survey that was taken in several years and regions, age, year and region are not a question.
They are there to be taken into account: the relations of interest are those between the other
columns, given these. A conditional model says just that. Covariates predict, are not predicted,
and nothing is assumed about how they are distributed.
"""

import mixedgm as mg

units = mg.datasets.load_taxunits()
table = units.drop(columns=["blind"]).sample(6000, random_state=1).reset_index(drop=True)
covariates = ["age", "year", "region", "filing"]

model = mg.MixedGraphicalModel(covariates=covariates).fit(table)
print(model.summary())

# %%
# Covariates are white, and arrows lead from them to what they predict.

drawing = model.plot()

# %%
# The same graph, alive.

model.view(table)

# %%
# Did it matter?
# --------------
#
# Without the covariates, columns are also related because both depend on age or on the household.
# These pairs have an edge only if nobody takes the covariates into account:

without = mg.MixedGraphicalModel().fit(table.drop(columns=covariates))
pairs = [{frozenset((e.source, e.target)) for e in each.edges_} for each in (without, model)]
for pair in sorted(map(sorted, pairs[0] - pairs[1])):
    print(" - ".join(pair))

# %%
# Does an edge vary?
# ------------------
#
# A moderator is a covariate that edges may vary with. These vary with age:

varying = mg.MixedGraphicalModel(covariates=covariates, moderators=["age"]).fit(table)
edges = varying.edges()
edges[edges["moderator"] == "age"][["source", "target", "strength", "probability"]].round(2)

# %%
# At a given age the model is an ordinary one. How much more probable interest income is for every
# unit of the log wage:

for age in (25, 45, 65):
    parameters = varying.at({"age": age}).interaction("logwage", "interest")
    print(f"at {age} years: {parameters['Yes'].iloc[0] - parameters['No'].iloc[0]:.2f} in log odds")

"""
Are two groups related in the same way?
=======================================

Tax units of a household survey, filed by single people and by married couples. They differ in
age, in wages and in the number of children; nobody needs a model for that. The question is
whether the *relations* differ: does the wage go with dividends in the same way in both?
"""

import mixedgm as mg

units = mg.datasets.load_taxunits()
units = units[units["filing"].isin(["Single", "Married joint"])]
columns = ["age", "logwage", "children", "interest", "dividends", "self_emp", "snap", "mcaid"]
table = units[["filing", *columns]].sample(8000, random_state=0).reset_index(drop=True)
table["filing"] = table["filing"].cat.remove_unused_categories()
table["filing"].value_counts()

# %%
# ``compare`` finds one graph per group, estimates every pair without shrinkage given the edges of
# both, and tests the differences. Groups may differ in means, units and shares.

groups = mg.compare(table, "filing", random_state=0)
print(groups.summary())

# %%
# Both graphs, with the columns in the same places.

drawings = groups.plot()

# %%
# The graph of the couples, alive; ``groups.models`` has one model per group.

groups.models["Married joint"].view()

# %%
# Which pairs differ?
# -------------------
#
# Every pair has a probability that it differs; ``p_max`` is adjusted for looking at all pairs.

shown = ["source", "target", "difference", "p", "p_max", "probability_differs", "differs"]
groups.edges()[shown].head(8).round(4)

# %%
# One edge in detail: age and the number of children. Couples without children are older, and the
# more children a couple has the younger it is; among single people age says much less.

for label, model in groups.models.items():
    print(label)
    print(model.interaction("age", "children").round(3), end="\n\n")

# %%
# A picture of the largest differences.

axes = groups.plot_differences(max_edges=15)

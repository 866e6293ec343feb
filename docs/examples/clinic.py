"""
A clinical table with gaps
==========================

More than half of the rows of a clinical table lack something: a blood value was not measured, a
questionnaire was not handed in. Dropping those rows costs most of the patients, and those who are
left are not like the others. ``missing="model"`` uses every row.

The 700 patients are drawn from a known model, and the gaps are then made as they come about in a
clinic: blood is drawn less often from the young, and smokers skip the walking test.
"""

import numpy as np

import mixedgm as mg

truth = mg.random_model(
    [
        ("age", "pressure"), ("age", "kidney"), ("pressure", "smoker"), ("pressure", "kidney"),
        ("smoker", "walking"), ("kidney", "stage"), ("stage", "walking"), ("stage", "visits"),
        ("walking", "mood"),
    ],
    types={
        "age": "continuous", "pressure": "continuous",
        "kidney": "continuous", "walking": "continuous",
        "smoker": ("no", "yes"), "stage": mg.Ordinal(levels=["I", "II", "III", "IV"]),
        "visits": mg.Count(largest=40), "mood": ("low", "fair", "good"),
    },
    random_state=3,
)  # fmt: skip
complete = truth.sample(700, random_state=0)

rng = np.random.default_rng(1)
table = complete.copy()
young = 1 / (1 + np.exp(1.0 + 1.5 * (table["age"] - table["age"].mean()) / table["age"].std()))
table.loc[rng.random(700) < young, "kidney"] = np.nan
table.loc[rng.random(700) < np.where(table["smoker"] == "yes", 0.35, 0.05), "walking"] = np.nan
table.loc[rng.random(700) < 0.1, "mood"] = None
table.isna().sum()

# %%
# Drop the rows, or model the gaps
# --------------------------------

types = {"stage": "ordinal", "visits": "count"}
dropped = mg.MixedGraphicalModel(missing="drop", types=types).fit(table)
model = mg.MixedGraphicalModel(missing="model", types=types).fit(table)
for name, each in {"rows dropped": dropped, "gaps modelled": model}.items():
    found = mg.compare_graphs(truth, each)
    print(f"{name}: {each.fitted_.report.n_rows} rows, {len(found.true_edges)} of 9 true edges,",
          f"{len(found.false_edges)} false")  # fmt: skip

# %%
# The network from all rows.

drawing = model.plot()

# %%
# The same graph, alive. The rings show how well each column is predicted by the others.

model.view(table)

# %%
# What the gaps have cost
# -----------------------
#
# The report says which cells are missing, how much of what the table could say about each pair is
# lost, and whether gaps go with other columns. Here they do, so they are not missing completely
# at random; modelling them assumes that they are missing at random, given what a row has.

report = model.missing_report(table)
print(report)

# %%
# Fill them in for another analysis
# ---------------------------------
#
# Multiple imputation: twenty completed tables, each with parameters of its own, and Rubin's rules
# for what is computed from them. The mean of the kidney value among patients of stage IV:


def mean_of_stage_four(filled):
    values = filled.loc[filled["stage"] == "IV", "kidney"]
    return values.mean(), values.std() / np.sqrt(len(values))


tables = model.impute(table, n_draws=20, parameters="resampled", random_state=0)
pooled = mg.pool([mean_of_stage_four(filled) for filled in tables])
print(f"pooled: {pooled.estimate[0]:.2f}, standard error {pooled.se[0]:.2f}")
print(f"complete rows only: {mean_of_stage_four(table.dropna())[0]:.2f}")
print(f"the truth, before gaps: {mean_of_stage_four(complete)[0]:.2f}")

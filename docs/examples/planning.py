"""
How many people does a study need?
==================================

A pilot study has 400 rows. How many edges would a study of 200, 800 or 3,200 people find, and how
wide would the intervals be? The pilot's model is taken as the truth, tables are drawn from it,
and each is fitted as the study would be.

The pilot here is a part of the wage survey.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mixedgm as mg

wage = mg.datasets.load_wage().drop(columns="year")
pilot = wage.sample(400, random_state=0).reset_index(drop=True)
truth = mg.MixedGraphicalModel().fit(pilot)
print(truth.summary())

# %%
# The pilot's graph, alive.

truth.view(pilot)

# %%
# Tables of every size, five of each; rare levels may be absent in small ones.

rows = []
for n in (200, 400, 800, 1600, 3200):
    for seed in range(5):
        table = truth.sample(n, random_state=seed)
        model = mg.MixedGraphicalModel(types=truth.schema_).fit(table)
        found = mg.compare_graphs(truth, model)
        rows.append({"rows": n, "found": found.recall, "false": len(found.false_edges)})
study = pd.DataFrame(rows).groupby("rows").mean().round(2)
study

# %%
# The share of the edges that a study would find:

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogx(study.index, study["found"], "o-")
ax.set(xlabel="rows", ylabel="share of the edges found", ylim=(0, 1.05))
ax.set_xticks(study.index, [str(n) for n in study.index])
ax.minorticks_off()

# %%
# How wide are intervals?
# -----------------------
#
# Power is one side; precision is the other. Standard errors of an edge fall with the root of the
# number of rows, so one test of the pilot tells them for every size. For the edge between wage
# and health insurance:

tests = mg.edge_tests(truth, pilot, random_state=0)
edge = tests.edges().query("source == 'logwage' and target == 'health_ins'").iloc[0]
for n in (200, 800, 3200):
    half = 1.96 * edge["se"] * np.sqrt(len(pilot) / n)
    print(f"{n:5,} rows: {edge['estimate']:.2f} ± {half:.2f}")

# %%
# What this leaves out: the pilot's own error. An edge that the pilot missed is not in the truth
# here, and estimates of edges that it found are a little too large on average. Repeat it with a
# pilot model in which edges have half their strength (``mg.from_params``) to see the other side.

"""
Which items of a questionnaire belong together?
===============================================

Ten items on two scales, worry and sleep, each answered from "never" to "always" by 800 people.
The network literature draws such items as nodes and asks for the bridges between the scales.
Treating answers as numbers assumes that the steps between them are normal errors; treating them
as categories spends sixteen parameters on every pair. An ordinal column has one parameter per
pair, with a sign, and a threshold for every answer.

The answers are simulated, so that the truth is known, and not from the model that is fitted:
every person has two correlated traits, and one item of each scale shares a cause of its own.
"""

import numpy as np
import pandas as pd

import mixedgm as mg

rng = np.random.default_rng(4)
n = 800
worry, sleep = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], n).T
bridge = rng.normal(size=n)
answers = ["never", "seldom", "sometimes", "often", "always"]

items = {}
for name, trait in (("worry", worry), ("sleep", sleep)):
    for k in range(1, 6):
        cause = trait + (1.5 * bridge if k == 5 else 0)
        cuts = np.array([-1.2, -0.4, 0.5, 1.3]) + rng.normal(0, 0.3)
        items[f"{name}{k}"] = np.digitize(0.9 * cause + rng.normal(size=n), cuts)
table = pd.DataFrame(
    {k: pd.Categorical.from_codes(v, answers, ordered=True) for k, v in items.items()}
)
table["age"] = np.round(40 - 5 * worry + rng.normal(0, 10, n))
table.head()

# %%
# Ordered categories are ordinal columns by themselves; other tables say ``types={"worry1":
# "ordinal"}``.

model = mg.MixedGraphicalModel().fit(table)
print(model.summary())

# %%
# The network. Items are coloured by their scale; the bridge is the edge between the fifth items.

scales = {"worry": [f"worry{k}" for k in range(1, 6)], "sleep": [f"sleep{k}" for k in range(1, 6)]}
drawing = model.plot(groups=scales)

# %%
# The same graph, alive: click on an item to see its answers and its neighbours.

model.view(table)

# %%
# One number per pair: the log odds ratio of neighbouring answers. More of one goes with more of
# the other where it is positive.

model.interaction("worry5", "sleep5")

# %%
# Central items, with intervals
# -----------------------------
#
# Centrality is often read off a picture. The bootstrap says how far it can be read: 50 resamples
# here, each fitted again (take 1,000 for a paper).

boot = mg.bootstrap(model, table, n_boot=50, random_state=0, intervals=False)
axes = boot.plot_centrality("expected_influence")

# %%
# How many people could have been left out before the order of the items changes? The
# CS-coefficient is the largest share of rows that can be dropped so that centralities still
# correlate by 0.7 with those of the whole table, in 95 of 100 samples.

dropped = mg.bootstrap(model, table, n_boot=50, kind="case-dropping", random_state=0)
dropped.cs_coefficient().round(2)

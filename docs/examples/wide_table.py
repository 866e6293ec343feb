"""
More columns than rows
======================

Two hundred columns of 150 samples: expression of 180 genes, and twenty clinical features, most of
them categories. Nobody expects to find all of the graph in so few rows; the question is which
edges can be believed.

The table is drawn from a random graph whose edges are known.
"""

import networkx as nx

import mixedgm as mg

names = [f"gene{k:03d}" for k in range(180)] + [f"trait{k:02d}" for k in range(20)]
graph = nx.relabel_nodes(nx.gnm_random_graph(200, 200, seed=1), dict(enumerate(names)))
types = {name: "continuous" if name.startswith("gene") else 2 for name in names}
sizes = {"continuous-continuous": (0.3, 0.5), "continuous-categorical": (0.8, 1.2)}
truth = mg.random_model(graph, types=types, sizes=sizes, random_state=0)
table = truth.sample(150, random_state=0)
table.shape

# %%
# Fit
# ---
#
# With so many columns for so few rows, the path of penalties is the way to a first graph.

model = mg.MixedGraphicalModel().fit(table)
print(model.summary())

# %%
# How much of it is true?

found = mg.compare_graphs(truth, model)
print(f"{len(found.true_edges)} true edges, {len(found.false_edges)} false,", end=" ")
print(f"{len(found.missed_edges)} missed")

# %%
# Only what comes back
# --------------------
#
# Stability selection fits many half-samples and keeps what most of them have. Its bound, one
# false edge here, is one of an expected number, and assumes that pairs without an edge are all
# alike.

stable = mg.MixedGraphicalModel(select=mg.StabilitySelection(max_false=1), random_state=0).fit(
    table
)
found = mg.compare_graphs(truth, stable)
print(f"{len(found.true_edges)} true edges, {len(found.false_edges)} false")

# %%
# A picture of the columns that have an edge at all.

linked = sorted({name for edge in stable.edges_ for name in (edge.source, edge.target)})
drawing = stable.plot(columns=linked, node_size=90)

# %%
# With so many columns the live graph helps most: search for a name, and click on it to see its
# neighbours.

stable.view()

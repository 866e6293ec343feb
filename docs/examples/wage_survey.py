"""
What goes with a man's wage?
============================

stub
"""

import mixedgm as mg

wage = mg.datasets.load_wage()
model = mg.MixedGraphicalModel().fit(wage)
model

# %%
# The network.

model.plot()

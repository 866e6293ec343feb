"""Both parts of hurdle columns in the tables of the bootstrap."""

import numpy as np
import pandas as pd

import mixedgm as mg


def test_both_parts_of_a_hurdle_edge_have_signed_intervals():
    rng = np.random.default_rng(5)
    age, n = rng.normal(size=800), 800
    owes = rng.random(n) < 1 / (1 + np.exp(0.8 * age))
    debt = np.where(owes, 6.0 + 0.7 * age + rng.normal(size=n), 0.0)
    gifts = np.where(rng.random(n) < 0.5, 4.0 - 1.5 * owes + rng.normal(size=n), 0.0)
    table = pd.DataFrame({"debt": debt, "age": age, "gifts": gifts})
    types = {"debt": "hurdle", "gifts": "hurdle"}
    model = mg.MixedGraphicalModel(types=types, lam=0.03).fit(table)
    result = mg.bootstrap(model, table, n_boot=200, random_state=0)
    edges = result.selection().set_index(["source", "target"])
    parts = result.selection(parts=True)
    between = parts[(parts["source"] == "age") & (parts["target"] == "debt")]
    assert between["target_part"].tolist() == ["debt != 0", "debt"]
    assert between["sign"].tolist() == ["-", "+"]
    assert pd.isna(edges.loc[("age", "debt"), "sign"])  # two parts, two signs
    four = parts[(parts["source"] == "debt") & (parts["target"] == "gifts")]
    assert list(zip(four["source_part"], four["target_part"], strict=True)) == [
        ("debt != 0", "gifts != 0"),
        ("debt != 0", "gifts"),
        ("debt", "gifts != 0"),
        ("debt", "gifts"),
    ]
    sizes = result.intervals(level=0.99)
    sizes = sizes[(sizes["source"] == "age") & (sizes["target"] == "debt")]
    assert sizes["target_level"].tolist() == ["debt != 0", "debt"]
    assert sizes["upper"].iloc[0] < 0 < sizes["lower"].iloc[1]
    told = result.parameters(level=0.99)
    told = told[(told["source"] == "debt") & (told["target"] == "gifts")]
    told = told.set_index(["source_level", "target_level"])
    assert told.loc[("debt != 0", "gifts"), "upper"] < 0  # who owes gives less
    text = result.summary()
    assert "debt != 0" in text

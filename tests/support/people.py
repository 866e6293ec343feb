"""A seed -> the same small mixed table as pandas, polars, pyarrow, array or file, and as codes."""

from __future__ import annotations

import numpy as np

LEVELS = {"group": ["a", "b", "c"], "smoker": [False, True], "colour": ["blue", "red"]}
CONTINUOUS = ("height", "weight")


def people(n_rows: int = 150, seed: int = 0):
    """A pandas frame with kinds in mixed order; sorted and declared level order agree."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    group = np.r_[0, 1, 2, rng.integers(0, 3, n_rows - 3)]
    smoker = rng.random(n_rows) < np.array([0.2, 0.5, 0.8])[group]
    smoker[:2] = False, True
    height = rng.normal(size=n_rows) + 0.8 * group
    weight = 60 + 10 * (0.7 * height + rng.normal(size=n_rows))
    red = rng.random(n_rows) < np.where(smoker, 0.7, 0.3)
    red[:2] = False, True
    return pd.DataFrame(
        {
            "height": height,
            "group": pd.Categorical.from_codes(group, LEVELS["group"]),
            "weight": weight,
            "smoker": smoker,
            "colour": pd.Series(np.where(red, "red", "blue"), dtype="str"),
        }
    )


def numbers(frame) -> tuple[np.ndarray, np.ndarray]:
    """Continuous columns and level codes, read off the pandas frame by hand."""
    X = frame[list(CONTINUOUS)].to_numpy(dtype=float)
    codes = [[levels.index(v) for v in frame[name].tolist()] for name, levels in LEVELS.items()]
    return X, np.array(codes).T


def as_library(frame, library: str):
    """The frame in another library, with that library's own categorical type."""
    if library == "pandas":
        return frame
    if library == "polars":
        import polars as pl

        data = {name: frame[name].tolist() for name in frame.columns}
        return pl.DataFrame(data, schema_overrides={"group": pl.Enum(LEVELS["group"])})
    if library == "pyarrow":
        import pyarrow as pa

        data = {name: pa.array(frame[name].tolist()) for name in frame.columns}
        data["group"] = data["group"].dictionary_encode()
        return pa.table(data)
    if library == "objects":
        return np.array([list(row) for row in frame.itertuples(index=False)], dtype=object)
    if library == "codes":
        X, Y = numbers(frame)
        return np.column_stack([X[:, 0], Y[:, 0], X[:, 1], Y[:, 1], Y[:, 2]])
    raise ValueError(library)


PARAMS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")


def assert_same_params(found, expected, **tolerance) -> None:
    """Every block equal; without a tolerance, to the last bit."""
    assert found.n_levels == expected.n_levels
    for name in PARAMS:
        if tolerance:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), **tolerance, err_msg=name
            )
        else:
            np.testing.assert_array_equal(
                getattr(found, name), getattr(expected, name), err_msg=name
            )

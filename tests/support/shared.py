"""A file name -> the path of large reference data kept beside the checkout, or a skip."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared_data(name: str) -> Path:
    """Find ``shared/data/<name>`` next to the repository; skip the test where it is absent.

    Parameters
    ----------
    name : str
        Path below ``shared/data``, such as ``"sim/a.npz"``.
    """
    path = ROOT.parent / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"reference data {name} is not beside this checkout (looked for {path})")
    return path

"""A few cases of the campaigns of kills, damage, full disks and signals; `make stress` has more."""

import os
import sys
from pathlib import Path

import pytest

from stress import checkpoints, outputs

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("seed", [2, 3, 5, 9, 11, 13, 17, 19])
def test_checkpoints(seed: int, tmp_path: Path) -> None:
    found = checkpoints.attempt(seed, tmp_path)
    assert found.findings == [], found.kind


@pytest.mark.parametrize("seed", [*range(6, 11), *range(17, 22), *range(28, 33)])
def test_outputs(seed: int, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    found = outputs.attempt(seed, tmp_path)
    assert found.findings == [], found.kind

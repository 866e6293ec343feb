"""Damaged model files: a part of `python -m stress model-files`."""

from pathlib import Path

import pytest

from stress.model_files import attempt


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_damaged_files_are_refused_or_the_same_model(first, tmp_path: Path):
    for seed in range(first, first + 100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = attempt(seed, folder)
        assert found.findings == [], (seed, found.kind)

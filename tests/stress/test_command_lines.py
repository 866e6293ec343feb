"""A small part of the campaign of command lines: `python -m stress command-lines` runs it all."""

import sys
from pathlib import Path

import pytest

from stress import command_lines
from stress.campaign import Found

CASES = 60


@pytest.mark.parametrize("seed", range(1, CASES + 1))
def test_an_answer_or_one_message(seed: int, tmp_path: Path) -> None:
    found = command_lines.attempt(seed, tmp_path)
    assert found.findings == []


def test_findings_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is awake: a command that does everything wrong is told so."""

    def wrong(argv: list[str]) -> int:
        sys.stdout.write("\x1b[31mred")
        (Path.cwd() / ".left-behind").write_bytes(b"")
        return 3

    monkeypatch.setattr(command_lines, "main", wrong)
    found: Found = command_lines.attempt(1, tmp_path)
    told = " ".join(found.findings)
    for part in ("exit code 3", "unescaped", "left behind", "the output is not there"):
        assert part in told

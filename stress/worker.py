"""Seeds on standard input -> one line of JSON per case on standard output."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path

from stress.campaign import Campaign, Case, Found, load

_SHORTEST = 300


def main() -> None:
    name, code = sys.argv[1:3]
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what a case prints is not an answer
    campaign = load(name)
    campaign.prepare()
    for line in sys.stdin:
        case = judged(campaign, int(line), code)
        answers.write(json.dumps(asdict(case)) + "\n")
        answers.flush()


def judged(campaign: Campaign, seed: int, code: str) -> Case:
    """Run one case in a folder of its own and judge its memory."""
    folder = Path(tempfile.mkdtemp(prefix="mixedgm-stress-"))
    before, start = _peak_mb(reset=True), _cpu_seconds()
    try:
        found = campaign.attempt(seed, folder)
    except Exception:
        text = traceback.format_exc()
        found = Found("raised", [text[-_SHORTEST * 5 :]])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds, mb = _cpu_seconds() - start, _peak_mb() - before
    if campaign.most_mb is not None and mb > campaign.most_mb:
        found.findings.append(f"took {mb:.0f} MB of memory")
    return Case(seed, found.kind, found.findings, round(seconds, 3), round(mb, 1), code)


def _cpu_seconds() -> float:
    """Time that the processor spent on this process and on those that it started and that ended."""
    return sum(os.times()[:4])


def _peak_mb(reset: bool = False) -> float:
    """The most memory this process has held since the last reset (Linux; elsewhere 0)."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()

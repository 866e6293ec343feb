"""Cases of a campaign -> a file of results that grows, and the record that is kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from stress.campaign import MODULES, Campaign, Case

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / ".results"
RECORD = ROOT / "record"


def code_now() -> str:
    """A short name of the code under test: it changes with every source file."""
    digest = hashlib.sha256()
    source = ROOT.parent / "src"
    for file in sorted(source.rglob("*.py")):
        digest.update(str(file.relative_to(source)).encode() + file.read_bytes())
    return digest.hexdigest()[:10]


def results(name: str, folder: Path = RESULTS) -> dict[int, Case]:
    """Cases by seed; the last line of a seed counts, and half a line does not."""
    found: dict[int, Case] = {}
    file = folder / f"{name}.jsonl"
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            case = Case(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[case.seed] = case
    return found


def keep(name: str, case: Case, folder: Path = RESULTS) -> None:
    """Add one case to the results."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(asdict(case)) + "\n")


def write_record(
    name: str, campaign: Campaign, cases: Iterable[Case], folder: Path = RECORD
) -> dict[str, object]:
    """Write what the campaign has shown so far; return it."""
    own = sorted(cases, key=lambda case: case.seed)
    bad = [case for case in own if case.findings]
    record: dict[str, object] = {
        "what": campaign.what,
        "goal": campaign.cases,
        "cases": len(own),
        "with_findings": len(bad),
        "slowest_seconds": max((case.seconds for case in own), default=0.0),
        "most_mb": max((case.mb for case in own), default=0.0),
        "hours": round(sum(case.seconds for case in own) / 3600, 2),
        "kinds": dict(sorted(Counter(case.kind for case in own).items())),
        "code": dict(Counter(case.code for case in own)),
        "findings": [
            {
                "seed": case.seed,
                "findings": [text.strip().splitlines()[-1] for text in case.findings],
            }
            for case in bad[:50]
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (folder / "table.md").write_text(_table(folder))
    return record


def _table(folder: Path) -> str:
    lines = [
        "| campaign | cases | with findings | slowest | most memory |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in MODULES:
        file = folder / f"{name}.json"
        if file.exists():
            own = json.loads(file.read_text())
            cells = (
                f"{own['what']} (`{name}`)",
                f"{own['cases']:,} of {own['goal']:,}",
                f"{own['with_findings']}",
                f"{own['slowest_seconds']:.1f} s",
                f"{own['most_mb']:.0f} MB",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

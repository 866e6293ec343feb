"""Rows (goal, measured, met) -> JSON per part and one table over all parts."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PARTS = (
    *("pass", "path", "wide", "levels", "tests", "missing", "peers"),
    *("growth", "scale", "parts", "startup", "bootstrap", "joint"),
)


@dataclass(frozen=True)
class Row:
    """One line of the table; `met` is None where nothing is demanded."""

    what: str
    goal: str
    measured: str
    met: bool | None = None

    @property
    def verdict(self) -> str:
        return {True: "met", False: "NOT MET", None: ""}[self.met]


def at_most(what: str, value: float, limit: float, unit: str = "x") -> Row:
    return Row(
        what, f"<= {_number(limit)} {unit}", f"{_number(value)} {unit}", bool(value <= limit)
    )


def at_least(what: str, value: float, limit: float, unit: str = "x") -> Row:
    return Row(
        what, f">= {_number(limit)} {unit}", f"{_number(value)} {unit}", bool(value >= limit)
    )


def grows(what: str, power: float, stated: int, slack: float) -> Row:
    """A fitted power may exceed the stated one by what a fit through few points can be off."""
    goal = f"{stated} (fit <= {stated + slack:.1f})"
    return Row(f"{what} to the power", goal, f"{power:.2f}", bool(power <= stated + slack))


def holds(what: str, goal: str, true: bool, measured: str = "") -> Row:
    return Row(what, goal, measured or ("yes" if true else "no"), bool(true))


def shown(what: str, measured: str) -> Row:
    """For orientation only."""
    return Row(what, "", measured)


def certified(what: str, kkt: float, tol: float) -> Row:
    """The certificate of what was timed, recomputed outside the package."""
    # The package's own number is at most tol; another order of summation moves its last digits.
    return Row(
        f"{what}: worst KKT, recomputed", f"<= {tol:g}", f"{kkt:.2e}", bool(kkt <= 1.001 * tol)
    )


def _number(value: float) -> str:
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.3g}"


@dataclass
class Result:
    """What one part found: rows for the table, figures for the record."""

    part: str
    rows: list[Row] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Keep and print a row as soon as it is known."""
        self.rows.append(row)
        goal = f" (goal {row.goal}: {row.verdict})" if row.goal else ""
        print(f"  {row.what}: {row.measured}{goal}", flush=True)

    def write(self, folder: Path, size: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.part}.json"
        content = {
            "part": self.part,
            "size": size,
            "machine": machine(),
            "rows": [asdict(row) for row in self.rows],
            "figures": self.figures,
        }
        path.write_text(json.dumps(content, indent=1, default=float) + "\n")
        return path


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
    return {
        "processor": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")},
    }


def stored(folder: Path) -> list[tuple[str, Row]]:
    """All rows that have been written, in the order of the parts."""
    found = []
    for part in PARTS:
        path = folder / f"{part}.json"
        if path.exists():
            found += [(part, Row(**row)) for row in json.loads(path.read_text())["rows"]]
    return found


def table(rows: Iterable[tuple[str, Row]]) -> str:
    """The table, as Markdown with aligned columns."""
    head = ("part", "what", "goal", "measured", "")
    cells = [head, *((part, r.what, r.goal, r.measured, r.verdict) for part, r in rows)]
    widths = [max(3, *(len(line[k]) for line in cells)) for k in range(len(head))]
    lines = [_line(line, widths) for line in cells]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"

"""Command line -> the chosen parts at the chosen size, one after the other, and the table."""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.context import Context, Size
from benchmarks.report import PARTS, RESULTS, stored, table

MODULES = {"pass": "passes", "path": "paths", "tests": "edge_tests", "peers": "peers.compare"}
"""Parts whose module is named otherwise."""
BUSY = 0.5
BESIDE = Path(__file__).resolve().parents[2] / "shared"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    size: Size = "quick" if options.quick else options.size
    out = options.out or (RESULTS if size == "full" else RESULTS / size)
    failed = [] if options.table else run(options.only, _context(options, size, out))
    rows = stored(out)
    text = table(rows)
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(text + "\n")
    missed = sum(row.met is False for _, row in rows)
    judged = sum(row.met is not None for _, row in rows)
    print(f"\n{text}\n\n{judged - missed} of {judged} goals met; size: {size}; figures in {out}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)} (rows of these, if any, are older)")


def _context(options: argparse.Namespace, size: Size, out: Path) -> Context:
    if options.yardstick and not options.yardstick.exists():
        raise SystemExit(f"--yardstick: there is no file {options.yardstick}")
    shared = options.shared if options.shared.is_dir() else None
    yardstick = options.yardstick or (shared and shared / "tools" / "plain_fista.py")
    return Context(size, shared, yardstick if yardstick and yardstick.exists() else None, out)


def run(parts: Sequence[str], context: Context) -> list[str]:
    """Run the parts, write what each found, and return those that failed."""
    from benchmarks.product import warm_up

    context.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    if load > BUSY:
        print(f"The machine is busy (load {load:.1f}): expect wrong ratios.\n", flush=True)
    warm_up()
    failed = []
    for part in parts:
        print(f"{part}:", flush=True)
        clock = time.perf_counter()
        try:
            result = import_module(f"benchmarks.{MODULES.get(part, part)}").run(context)
            result.write(context.out, context.size)
        except Exception:  # the other parts are worth having
            traceback.print_exc()
            failed.append(part)
        print(f"  ({time.perf_counter() - clock:.0f} s)", flush=True)
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        type=_parts,
        default=PARTS,
        metavar="PART,...",
        help=f"the parts to run, of {', '.join(PARTS)} (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="the same as --size quick")
    parser.add_argument(
        "--size",
        choices=("full", "quick", "smoke"),
        default="full",
        help="full: as the goals are stated; quick: minutes; smoke: seconds, times mean nothing",
    )
    parser.add_argument(
        "--yardstick",
        type=Path,
        metavar="FILE",
        help="Python file with the joint solver to compare with (part peers)",
    )
    parser.add_argument(
        "--shared",
        type=Path,
        default=BESIDE,
        metavar="DIR",
        help="folder with data/ (survey, simulated sets) and tools/ (default: beside the checkout)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results are written")
    parser.add_argument(
        "--table", action="store_true", help="print the table of stored results only"
    )
    return parser


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in text.split(","))
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        known = ", ".join(PARTS)
        raise argparse.ArgumentTypeError(f"unknown part {unknown[0]!r}; there are {known}")
    return chosen

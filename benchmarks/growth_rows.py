"""Growth with the number of rows: the survey's path, each size in a process of its own."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.memory import MB, forget_peak, in_fresh_process, peak_resident, resident
from benchmarks.report import Result, at_most, certified, grows, holds, shown
from benchmarks.timing import exponent
from mixedgm.table.encode import Design

N_ROWS = {
    "full": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
    "quick": [1_000, 10_000, 50_000],
    "smoke": [300, 600],
}
FITTED_FROM = 10_000
"""Rows from which on exponents are fitted: below, a path is mostly its fixed costs."""
FEW_MINUTES = 180.0


@dataclass(frozen=True)
class Found:
    """One path in a process of its own."""

    n_rows: int
    seconds: float
    """Set-up included."""
    encoded: int
    """Bytes of the encoded table."""
    imports: int
    """Resident bytes with the package and its kernels loaded, before any table."""
    peak: int
    """Most resident bytes until the path is solved."""
    passes: float
    kkt: float
    edges: int


def run(result: Result, context: Context) -> None:
    sizes = context.pick(N_ROWS)
    lams = data.PAPER_GRID if context.size != "smoke" else data.PAPER_GRID[:20:8]
    found = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            design = data.enlarged(data.whole_survey(context), n_rows, seed=0)
            n_levels = _write(design, Path(folder))
            found.append(in_fresh_process(solve_stored, Path(folder), n_levels, lams))
        one = found[-1]
        text = f"{one.seconds:.3g} s, {_extra(one) / MB:.0f} MB beyond imports"
        result.add(shown(f"{n_rows:,} rows: {len(lams)}-point path", text))
    result.figures["rows"] = [asdict(one) for one in found]
    result.add(certified(f"{sizes[0]:,} to {sizes[-1]:,} rows", max(f.kkt for f in found), TOL))
    large = [one for one in found if one.n_rows >= FITTED_FROM]
    if len(large) > 1:
        rows = np.array([one.n_rows for one in large], dtype=float)
        power = exponent(rows, np.array([one.seconds for one in large]))
        result.add(grows("seconds of a path ~ rows", power, 1, 0.1))
        result.figures["rows exponent"] = power
        growth = np.polyfit(rows, [_extra(one) for one in large], 1)[0]
        result.add(shown("memory of a path", f"{growth:.0f} bytes a row"))
    if sizes[-1] >= 1_000_000:
        _million(result, found[-1])


def _million(result: Result, found: Found) -> None:
    limit = 3 * found.encoded + 200 * MB
    result.add(at_most("1,000,000 rows: seconds of the path", found.seconds, FEW_MINUTES, "s"))
    for what, used in (("beyond imports", _extra(found)), ("of the whole process", found.peak)):
        result.add(
            holds(
                f"1,000,000 rows: peak memory {what}",
                f"< 3 x {found.encoded / MB:.0f} + 200 MB",
                used < limit,
                f"{used / MB:.0f} MB",
            )
        )


def _extra(found: Found) -> int:
    return found.peak - found.imports


def _write(design: Design, folder: Path) -> tuple[int, ...]:
    """Store the encoded table, so that the measured process needs no data frames."""
    np.save(folder / "cont.npy", design.numbers)
    np.save(folder / "codes.npy", design.codes)
    return tuple(design.schema.n_levels)


def solve_stored(folder: Path, n_levels: tuple[int, ...], lams: product.Floats) -> Found:
    """Load, set up, solve; for a process of its own."""
    product.warm_up()
    imports = resident()
    forget_peak()
    numbers, codes = np.load(folder / "cont.npy"), np.load(folder / "codes.npy")
    design = data.encoded(numbers, codes, n_levels)
    del numbers, codes
    clock = time.perf_counter()
    task = product.task_of(design)
    solved = product.solve(task, lams)
    seconds = time.perf_counter() - clock
    peak = peak_resident()
    path = solved.path
    return Found(
        design.n_rows,
        seconds,
        data.encoded_bytes(design),
        imports,
        peak,
        solved.passes_per_lam,
        worst_kkt(task, path, 5),
        int(path.n_edges[-1]),
    )

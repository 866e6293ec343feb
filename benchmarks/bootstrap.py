"""Part "bootstrap": resamples of the wage survey at fixed lam, against a cold fit."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.context import THREADS, Context
from benchmarks.report import Result, at_most, shown
from benchmarks.timing import interleaved

N_BOOT = {"full": 1000, "quick": 200, "smoke": 4}
REPEATS = {"full": 15, "quick": 5, "smoke": 1}
TOGETHER = 20
"""Resamples that are timed as one, because no two take equally long."""


def run(context: Context) -> Result:
    result = Result("bootstrap")
    n_boot = context.pick(N_BOOT)
    found = memory.in_fresh_process(whole_run, n_boot)
    result.figures["whole run"] = found
    what = f"{n_boot:,} nonparametric resamples at fixed lam, two processes"
    result.add(at_most(what, found["seconds"], 60.0, "s"))
    result.add(shown("the same with workers that are there already", f"{found['again']:.3g} s"))
    parent, workers = found["parent"] / memory.MB, found["workers"] / memory.MB
    result.add(shown("peak memory, this process", f"{parent:.0f} MB"))
    result.add(shown("peak memory, both workers together", f"{workers:.0f} MB"))
    _growth(result, n_boot)
    for refit in (False, True):
        _one_resample(result, context.pick(REPEATS), min(TOGETHER, n_boot), refit)
    return result


def whole_run(n_boot: int) -> dict[str, float]:
    """In a fresh process: seconds, seconds again, and the memory that was held at most."""
    from joblib.externals.loky import get_reusable_executor

    import mixedgm as mg

    table = mg.datasets.load_wage()
    model = mg.MixedGraphicalModel(select="ebic").fit(table)
    seconds = []
    for _ in range(2):
        clock = time.perf_counter()
        mg.bootstrap(model, table, n_boot=n_boot, n_jobs=THREADS, random_state=0)
        seconds.append(time.perf_counter() - clock)
    workers = _peak_of_children()
    get_reusable_executor().shutdown(wait=True)  # or this process would wait for them for minutes
    return {
        "seconds": seconds[0],
        "again": seconds[1],
        "parent": memory.peak_resident(),
        "workers": workers,
    }


def _peak_of_children() -> int:
    """Sum of the peaks of the worker processes, which wait for more work."""
    total = 0
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            status = Path(f"/proc/{child}/status").read_text()
            lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
            total += sum(int(line.split()[1]) * 1024 for line in lines)
    return total


def _growth(result: Result, n_boot: int) -> None:
    """What Python and NumPy hold per resample, against what the result reports."""
    table, model = _wage()
    import mixedgm as mg

    run = partial(mg.bootstrap, model, table, n_jobs=1, random_state=0)
    run(n_boot=2)
    few, peak_few = memory.traced(lambda: run(n_boot=max(2, n_boot // 10)))
    many, peak_many = memory.traced(lambda: run(n_boot=n_boot))
    more = many.n_boot - few.n_boot
    held, told = (peak_many - peak_few) / more, (many.nbytes - few.nbytes) / more
    result.figures["memory"] = {"bytes per resample": held, "reported": told}
    result.add(shown("memory per resample, at most while running", f"{held / 1000:.1f} kB"))
    result.add(shown("memory per resample, as reported", f"{told / 1000:.1f} kB"))


def _one_resample(result: Result, repeats: int, together: int, refit: bool) -> None:
    import mixedgm as mg
    from mixedgm.base.parallel import seeds
    from mixedgm.base.threads import single_threaded_blas
    from mixedgm.fit.fitting import fit_design
    from mixedgm.studies.resampling.bootstrap import prepared
    from mixedgm.studies.resampling.resamples import resample

    table = mg.datasets.load_wage()
    model = mg.MixedGraphicalModel(select="ebic", refit=refit).fit(table)
    _, plan = prepared(model, table)
    drawn = seeds(0, together)
    cold = mg.MixedGraphicalModel(lam=model.lam_, refit=refit, n_jobs=1)

    def resamples() -> None:
        with single_threaded_blas():
            for seed in drawn:
                resample(plan, (seed, 0.0))

    times = interleaved(
        {
            "cold fit of the table": lambda: cold.fit(table),
            "cold fit of the encoded table": lambda: fit_design(plan.design, plan.options),
            "resamples": resamples,
        },
        repeats,
    )
    name = "refitted" if refit else "penalised"
    result.figures[f"seconds, {name}"] = {key: found.to_dict() for key, found in times.items()}
    one = times["resamples"].best / together
    table_ratio = one / times["cold fit of the table"].best
    encoded_ratio = one / times["cold fit of the encoded table"].best
    result.add(shown(f"{name}: one resample, one core", f"{1000 * one:.2f} ms"))
    what = f"{name}: a resample, of a cold fit at the same lam"
    if refit:
        result.add(shown(what, f"{table_ratio:.2f} x"))
    else:
        result.add(at_most(what, table_ratio, 1.0 / 3.0, "x"))
    result.add(
        shown(f"{name}: the same, of a cold fit of the encoded table", f"{encoded_ratio:.2f} x")
    )


def _wage() -> tuple[Any, Any]:
    import mixedgm as mg

    table = mg.datasets.load_wage()
    return table, mg.MixedGraphicalModel(select="ebic").fit(table)

"""Paths on a GPU against stated goals, where their time goes, and equality with the processor.

    python -m benchmarks.gpu --out gpu.json             # needs an NVIDIA GPU and PyTorch
    python -m benchmarks.gpu --only equal --device torch --size small   # PyTorch on the processor

Every part runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.profile import Stopwatch, kernel_times, pass_times
from benchmarks.gpu.tables import Size, sparse_design

TOL = 1e-5
THREADS = 8


@dataclass(frozen=True)
class Part:
    """A path, and what it may take."""

    size: Size
    n_lams: int
    ratio: float
    seconds: float
    gigabytes: float = np.inf


PARTS = {
    "full": {
        "a": Part(Size(1_000, 1_000, 20_000), 10, 0.1, 2.5),
        "b": Part(Size(5_000, 5_000, 10_000), 10, 0.2, 60.0, 8.0),
    },
    "few-rows": {
        "a": Part(Size(1_000, 1_000, 2_000), 10, 0.1, 2.5),
        "b": Part(Size(5_000, 5_000, 300), 10, 0.2, 60.0, 8.0),
    },
    "small": {
        "a": Part(Size(60, 60, 1_500), 10, 0.1, 2.5),
        "b": Part(Size(150, 150, 800), 10, 0.2, 60.0, 8.0),
    },
}


def machine(device: str) -> dict[str, Any]:
    from mixedgm.rows.arrays import arrays_on

    facts: dict[str, Any] = {"python": platform.python_version(), "numpy": np.__version__}
    arrays = arrays_on(device)
    if device != "numpy":
        import torch

        facts["torch"] = torch.__version__
        if arrays.is_gpu:
            facts["gpu"] = torch.cuda.get_device_name(arrays.device)
    return facts


def warm(device: str, wide: bool) -> float:
    """A small path of the same kind: compiles what is compiled, and wakes the device."""
    began = time.perf_counter()
    # The last is large enough for the kernels that large matrices take, which load at first use.
    sizes = [Size(8, 8, 300), Size(60, 60, 600), Size(400, 400, 4_000)]
    for size in sizes if device.startswith("cuda") else sizes[:2]:
        solved(sparse_design(size), device, 4, 0.3, TOL, wide=wide)
    return time.perf_counter() - began


def solved(
    design: Any, device: str, n_lams: int, ratio: float, tol: float, *, wide: bool
) -> tuple[Any, Any, dict[str, float]]:
    """Task, path and times of an encoded table; `wide` as if it had very many columns."""
    from mixedgm.base.parallel import Runtime
    from mixedgm.path.path import geometric_lams, solve_path
    from mixedgm.path.recipe import Recipe
    from mixedgm.path.task import prepare

    recipe = Recipe(device=device, tol=tol, **({"most_parameters": 0.0} if wide else {}))
    times = [time.perf_counter()]
    task = prepare(design, recipe, n_threads=THREADS)
    times.append(time.perf_counter())
    lams = geometric_lams(task.lam_max, n_lams, ratio)
    times.append(time.perf_counter())
    path = solve_path(task, lams, recipe, runtime=Runtime(n_threads=THREADS))
    times.append(time.perf_counter())
    parts = dict(zip(("preparing", "lam_max", "path"), np.diff(times).tolist(), strict=True))
    return task, path, parts


def run_path(name: str, part: Part, device: str, *, tune: bool) -> dict[str, Any]:
    """One of the goals."""
    warming = warm(device, wide=True)
    began = time.perf_counter()
    design = sparse_design(part.size)
    drawing = time.perf_counter() - began
    before = peak_gigabytes()
    asked = (design, device, part.n_lams, part.ratio, TOL)
    task, path, parts = solved(*asked, wide=True)
    seconds, peak = sum(parts.values()), peak_gigabytes()
    del task
    with Stopwatch() as watch:  # once more: a profile takes time itself
        task, path, _ = solved(*asked, wide=True)
    found: dict[str, Any] = {
        "table": str(part.size),
        "seconds": seconds,
        "seconds of parts": parts,
        "seconds with a profile": watch.total,
        "goal": part.seconds,
        "warm-up": warming,
        "drawing the table": drawing,
        "host GB": peak,
        "host GB before": before,
        "goal of host GB": part.gigabytes,
        "kkt": float(path.kkt.max()),
        "edges": path.n_edges.tolist(),
        "seconds per lam": path.seconds.tolist(),
        "passes": path.passes.tolist(),
        "steps": [point.n_iter for point in path.points],
        "calls": watch.table(),
        "profile": watch.profile(),
    }
    if device.startswith("cuda"):
        import torch

        found["device GB"] = torch.cuda.max_memory_allocated() / 1e9
    if tune:
        found["a pass"] = pass_times(task, path)
        if device.startswith("cuda"):
            try:
                found["kernels"] = kernel_times(task, path)
            except (AttributeError, RuntimeError) as error:  # profilers change with versions
                found["kernels"] = [repr(error)]
    print(f"({name}) {part.size}: {seconds:.2f} s (goal {part.seconds:g}), KKT {found['kkt']:.1e}")
    print(f"    {path}")
    print("    ", {name: round(each, 3) for name, each in parts.items()})
    print(f"    host {found['host GB']:.2f} GB (goal {part.gigabytes:g}); seconds per lam", end=" ")
    print(np.round(path.seconds, 2).tolist())
    for line in watch.lines():
        print(f"    {line}")
    for key, value in found.get("a pass", {}).items():
        print(f"    {key}: {value}")
    for line in found.get("kernels", []):
        print(f"    {line}")
    return found


def run_equal(device: str, small: bool) -> dict[str, Any]:
    """Objectives and edges against the processor's, at tol 1e-9, with and without all pairs."""
    size = Size(20, 20, 500) if small else Size(120, 120, 3_000)
    design, out = sparse_design(size), {}
    for form, wide in (("all pairs", False), ("candidates", True)):
        _, here, _ = solved(design, "cpu", 10, 0.05, 1e-9, wide=wide)
        _, there, _ = solved(design, device, 10, 0.05, 1e-9, wide=wide)
        out[form] = {
            "table": str(size),
            "largest difference of objectives": float(abs(here.objective - there.objective).max()),
            "same edges": all(here.edges(k) == there.edges(k) for k in range(len(here))),
            "kkt": [float(path.kkt.max()) for path in (here, there)],
            "edges": here.n_edges.tolist(),
        }
        print(f"(equal) {form}: {out[form]}")
    return out


def peak_gigabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=sorted(PARTS), default="full")
    parser.add_argument("--only", default="equal,a,b", help="parts, in this order")
    parser.add_argument("--tune", action="store_true", help="time passes made in both ways, too")
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--here", action="store_true", help="one part, in this process")
    given = parser.parse_args()
    names = given.only.split(",")
    if given.here:
        (name,) = names
        if name == "equal":
            found: Any = run_equal(given.device, given.size == "small")
        else:
            found = run_path(name, PARTS[given.size][name], given.device, tune=given.tune)
        if given.out is not None:
            facts = {"machine": machine(given.device), name: found}
            given.out.write_text(json.dumps(facts, indent=1))
        return
    total: dict[str, Any] = {}
    for name in names:
        own = None if given.out is None else given.out.with_suffix(f".{name}.json")
        command = [sys.executable, "-m", "benchmarks.gpu", "--here", "--only", name]
        command += ["--device", given.device, "--size", given.size]
        command += ["--tune"] * given.tune + ([] if own is None else ["--out", str(own)])
        began = time.perf_counter()
        code = subprocess.run(command, check=False).returncode
        print(f"    part {name}: {time.perf_counter() - began:.1f} s in all, exit code {code}")
        if own is not None and own.exists():
            total |= json.loads(own.read_text())
            own.unlink()
            given.out.write_text(json.dumps(total, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What a path asks of its rows, how long each question takes, and what the rest is."""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mixedgm.path.path import Path
from mixedgm.path.task import Task
from mixedgm.rows.device import DeviceRows

QUESTIONS = (
    *("softmax", "softmax_curvature", "scored_curvature"),
    *("second_moments", "column_moments", "moments", "outside"),
)


class Stopwatch:
    """Times every question that is asked of rows on a device, and profiles everything."""

    def __enter__(self) -> Self:
        self._seconds: dict[str, list[float]] = {}
        self._methods = {name: getattr(DeviceRows, name) for name in QUESTIONS}
        self._inside = False
        for name, method in self._methods.items():
            setattr(DeviceRows, name, self._timed(name, method))
        self._profile = cProfile.Profile()
        self._began = time.perf_counter()
        self._profile.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self._profile.disable()
        self.total = time.perf_counter() - self._began
        for name, method in self._methods.items():
            setattr(DeviceRows, name, method)

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(rows: DeviceRows, *args: Any, **options: Any) -> Any:
            if self._inside:  # a question that another one asks
                return method(rows, *args, **options)
            self._inside, began = True, time.perf_counter()
            try:
                return method(rows, *args, **options)
            finally:
                self._inside = False
                key = f"softmax {args[1]}" if name == "softmax" else name
                self._seconds.setdefault(key, []).append(time.perf_counter() - began)

        return timed

    def table(self) -> dict[str, dict[str, float]]:
        """Number and seconds of every kind of question."""
        return {
            name: {"calls": len(each), "seconds": sum(each), "longest": max(each)}
            for name, each in self._seconds.items()
        }

    def lines(self) -> list[str]:
        """The same as text, and what is left."""
        table = self.table()
        rest = self.total - sum(each["seconds"] for each in table.values())
        return [
            *(
                f"{name:20} {each['calls']:5.0f} calls {each['seconds']:8.3f} s, "
                f"longest {each['longest']:.3f}"
                for name, each in table.items()
            ),
            f"{'everything else':20} {'':11} {rest:8.3f} s",
        ]

    def profile(self, n: int = 45) -> list[str]:
        """The functions that take most time themselves."""
        text = io.StringIO()
        pstats.Stats(self._profile, stream=text).sort_stats("tottime").print_stats(n)
        return [line for line in text.getvalue().splitlines() if line.strip()]


def _last_coefficients(path: Path) -> Any:
    """What rows are told at the last lam, of its edges only."""
    from mixedgm.objective.pseudolikelihood import softmax_coefficients

    groups, own = path.points[-1].groups, path.points[-1].terms
    small = path.layout.restrict(groups)
    return softmax_coefficients(small, own, own[small.incidence.theta_index])


def kernel_times(task: Task, path: Path, repeats: int = 5) -> list[str]:
    """What the GPU does in passes and curvature of the last lam: its own profile."""
    from torch.profiler import ProfilerActivity, profile

    coef, rows = _last_coefficients(path), task.smooth.rows  # type: ignore[attr-defined]
    out = []
    for what, ask in (
        ("pass", lambda: rows.softmax(coef, "support")),
        ("curvature", lambda: rows.softmax_curvature(coef, coef.nodes, 8)),
    ):
        ask()
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            began = time.perf_counter()
            for _ in range(repeats):
                ask()
            seconds = (time.perf_counter() - began) / repeats
        events = sorted(profiled.key_averages(), key=lambda e: -e.self_device_time_total)
        busy = sum(event.self_device_time_total for event in events) / repeats / 1e3
        out.append(f"{what}: {1e3 * seconds:.2f} ms, GPU busy {busy:.2f} ms")
        for event in events[:9]:
            each = event.self_device_time_total / repeats / 1e3
            out.append(f"  {each:7.3f} ms {event.count // repeats:4d} x {event.key[:90]}")
    return out


def pass_times(task: Task, path: Path, repeats: int = 5) -> dict[str, Any]:
    """Seconds of a pass on the edges of the last lam: columns gathered, and one product for all."""
    coef, rows = _last_coefficients(path), task.smooth.rows  # type: ignore[attr-defined]
    out: dict[str, Any] = {
        "groups": len(path.points[-1].groups),
        "coefficients": len(coef.values),
    }
    for name, cost in (("gathered", 0.0), ("one product", 1e9)):
        other = replace(rows, gathered_cost=cost)
        other._kept = rows._kept  # the same matrix on the device
        vars(other)["_gram"] = rows._gram
        for _ in range(2):
            other.softmax(coef, "support")
        for want in ("none", "support"):
            times = []
            for _ in range(repeats):
                began = time.perf_counter()
                other.softmax(coef, want)
                times.append(time.perf_counter() - began)
            out[f"{name}, {want}"] = float(np.median(times))
    return out

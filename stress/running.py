"""Seeds of a campaign -> Cases, by worker processes that are ended when a case takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from stress.campaign import Campaign, Case

_CASES_PER_PROCESS = 500
_COLD = 180.0  # the first case of a process may have to wait for kernels to be compiled


def run(
    name: str,
    campaign: Campaign,
    seeds: Sequence[int],
    code: str,
    jobs: int,
    *,
    patience: float = 10.0,
) -> Iterator[Case]:
    """Cases as they end; whoever stops listening ends the workers.

    A case may take `patience` times as long by the clock as by the processor: other work may be on
    the machine.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    done: queue.SimpleQueue[Case | None] = queue.SimpleQueue()
    stop = threading.Event()
    arguments = (name, campaign, code, patience, waiting, done, stop)
    threads = [threading.Thread(target=_serve, args=arguments) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        left = len(threads)
        while left:
            case = done.get()
            if case is None:
                left -= 1
            else:
                yield case
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _serve(name, campaign, code, patience, waiting, done, stop) -> None:  # type: ignore[no-untyped-def]
    worker = None
    try:
        while not stop.is_set():
            try:
                seed = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None or worker.cases >= _CASES_PER_PROCESS:
                if worker is not None:
                    worker.end()
                worker = _Worker(name, code, patience)
            case = worker.case(campaign, seed, code, stop)
            if case is None:  # stopped
                break
            done.put(case)
            if not worker.alive:
                worker = None
    finally:
        if worker is not None:
            worker.end()
        done.put(None)


class _Worker:
    """A process that takes one case after the other."""

    def __init__(self, name: str, code: str, patience: float) -> None:
        self.patience = patience
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stress.worker", name, code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.cases = 0
        self.alive = True

    def case(self, campaign: Campaign, seed: int, code: str, stop: threading.Event) -> Case | None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        limit = campaign.seconds if self.cases else max(campaign.seconds, _COLD)
        self.cases += 1
        start = time.perf_counter()
        try:
            self.process.stdin.write(f"{seed}\n".encode())
            self.process.stdin.flush()
            line = self._line(start + self.patience * limit, stop)
        except BrokenPipeError:
            line = b""
        if stop.is_set() and not line:
            return None
        seconds = time.perf_counter() - start
        if line:
            case = Case(**json.loads(line))
            if case.seconds > campaign.seconds and limit == campaign.seconds:
                case.findings.append(f"took {case.seconds:.1f} s")
            return case
        self.end()
        ended = self.process.returncode
        what = (
            f"did not end in {self.patience * limit:g} s"
            if line is None
            else f"its process died ({ended})"
        )
        return Case(seed, "no answer", [what], round(seconds, 3), 0.0, code)

    def _line(self, until: float, stop: threading.Event) -> bytes | None:
        """An answer; None when time is up, nothing when the process has died."""
        stdout = self.process.stdout
        assert stdout is not None
        while not stop.is_set():
            ready, _, _ = select.select([stdout], [], [], 0.2)
            if ready:
                return stdout.readline()
            if time.perf_counter() > until:
                return None
        return None

    def end(self) -> None:
        """End the process and everything it has started."""
        self.alive = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

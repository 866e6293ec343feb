"""Dask workers that are killed during a study -> the result of an undisturbed run."""

from __future__ import annotations

import atexit
import logging
import os
import random
import signal
import threading
import time
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stress.campaign import Campaign, Found
from stress.jobs import JOBS, digest, undisturbed
from stress.processes import ROOT

_WORKERS = 2
_PATIENCE = 60.0


def attempt(seed: int, folder: Path) -> Found:
    if find_spec("distributed") is None:
        return Found("skipped: Dask is not installed")
    import joblib

    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    name = sorted(JOBS)[seed % len(JOBS)]
    expected, client = undisturbed(name), _ready_client()
    kept = folder / "kept" if rng.random() < 0.5 else None
    pauses = [rng.uniform(0.0, 1.5) for _ in range(rng.choice([1, 1, 2]))]
    killed: list[int] = []
    killer = threading.Thread(target=_kill, args=(client, pauses, killed))
    killer.start()
    with joblib.parallel_config(backend="dask"):
        same = digest(name, kept, None) == expected
    n_killed = len(killed)
    killer.join(_PATIENCE)
    found = Found(f"{name}: {n_killed} lost{', with a checkpoint' if kept else ''}")
    if not same:
        found.findings.append("the result differs from that of an undisturbed run")
    return found


def _kill(client: Any, pauses: list[float], killed: list[int]) -> None:
    """One worker after every pause; their nannies start others."""
    for pause in pauses:
        time.sleep(pause)
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])


def _ready_client() -> Any:
    """Of a cluster whose workers are all there; now and then Dask does not replace a lost one."""
    try:
        _client().wait_for_workers(_WORKERS, timeout=_PATIENCE / 3)
    except TimeoutError:
        _client().close()
        _client.cache_clear()
        _client().wait_for_workers(_WORKERS, timeout=_PATIENCE)
    return _client()


@cache
def _client() -> Any:
    """A cluster on this machine, as long as this process lives."""
    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster = distributed.LocalCluster(
        n_workers=_WORKERS,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
        env={"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    client = distributed.Client(cluster)
    atexit.register(cluster.close)
    atexit.register(client.close)
    return client


CAMPAIGN = Campaign("lost Dask workers", 20, 120.0, attempt)

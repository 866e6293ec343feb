"""Long work that is killed, doubled or damaged on disk -> the result of an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

from stress.campaign import Campaign, Found
from stress.jobs import JOBS, N_TASKS, digest, undisturbed
from stress.processes import descendants, orphans, started

_PATIENCE = 600.0


def attempt(seed: int, folder: Path) -> Found:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    name = sorted(JOBS)[seed // 2 % len(JOBS)]
    kept = folder / "kept"
    if seed % 2 == 0:
        return _killed(name, rng, kept)
    return _two_at_once(name, kept) if rng.random() < 0.15 else _damaged(name, rng, kept)


# -- kill -9 ---------------------------------------------------------------------------------------


def _killed(name: str, rng: random.Random, kept: Path) -> Found:
    found = Found(f"{name}: killed")
    times = rng.choice([1, 1, 2])
    n_jobs = rng.choice([1, 2])
    for _ in range(times):
        wanted = rng.choice([0, rng.randrange(N_TASKS)])
        pause = rng.uniform(0.0, 4.0) if wanted == 0 else rng.uniform(0.0, 0.05)
        with started(["-m", "stress.jobs", name, kept, n_jobs]) as process:
            until = time.monotonic() + _PATIENCE
            while n_done(kept) < wanted and process.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(pause)
            workers = descendants(process.pid)
            process.kill()
            process.wait()
            left = orphans(workers)
            if left:
                found.findings.append(f"{len(left)} of {len(workers)} workers outlive their parent")
    return _resumed(found, name, kept, rng.choice([1, 1, 2]))


def n_done(kept: Path) -> int:
    """Records in the folder, or in those of its parts."""
    return sum(1 for file in kept.rglob("*.npz") if not file.name.startswith("."))


def _resumed(found: Found, name: str, kept: Path, n_jobs: int) -> Found:
    if digest(name, kept, n_jobs) != undisturbed(name):
        found.findings.append("the result differs from that of an undisturbed run")
    for file in kept.rglob(".*"):
        os.utime(file, (0, 0))
    if digest(name, kept, 1) != undisturbed(name):
        found.findings.append("the result of reading everything differs")
    left = [file.name for file in kept.rglob(".*")]
    if left:
        found.findings.append(f"temporary files stay for ever: {left}")
    return found


# -- two processes ---------------------------------------------------------------------------------


def _two_at_once(name: str, kept: Path) -> Found:
    found = Found(f"{name}: two processes at once")
    words = ["-m", "stress.jobs", name, kept, 1]
    with started(words) as one, started(words) as two:
        for process in (one, two):
            out, errors = process.communicate(timeout=_PATIENCE)
            if process.returncode or out.strip() != undisturbed(name):
                found.findings.append(f"exit {process.returncode}, {out!r}: {errors[-500:]}")
    return _resumed(found, name, kept, 1)


# -- damage ----------------------------------------------------------------------------------------


@cache
def _whole(name: str) -> Path:
    """A finished checkpoint."""
    folder = Path(tempfile.mkdtemp(prefix="mixedgm-stress-whole-")) / "kept"
    digest(name, folder, 1)
    return folder


def _damaged(name: str, rng: random.Random, kept: Path) -> Found:
    from mixedgm import ParameterError

    shutil.copytree(_whole(name), kept)
    files = sorted(kept.rglob("*.npz")) + sorted(kept.rglob("manifest.json"))
    chosen = rng.sample(files, rng.choice([1, 1, 2, 5]))
    if rng.random() < 0.3:
        chosen.append(rng.choice(sorted(kept.rglob("manifest.json"))))
    for file in chosen:
        rng.choice(_DAMAGES)(file, rng, rng.choice(files))
    manifest = any(file.suffix == ".json" for file in chosen)
    found = Found(f"{name}: damaged {'manifest' if manifest else 'records'}")
    try:
        same = digest(name, kept, 1) == undisturbed(name)
    except ParameterError as error:
        if not manifest or len(str(error)) > 1000:
            found.findings.append(f"an error where there should be none: {error}")
        found.kind += ": error of the family"
        return found
    if not same:
        found.findings.append("the result differs from that of an undisturbed run")
    return found


def _flip(file: Path, rng: random.Random, _: Path) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 3, 50])):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def _cut(file: Path, rng: random.Random, _: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content) + 1)])


def _without_checksum(file: Path, _: random.Random, __: Path) -> None:
    file.write_bytes(file.read_bytes()[:-64])


def _zeros(file: Path, rng: random.Random, _: Path) -> None:
    content = bytearray(file.read_bytes())
    start = rng.randrange(len(content) + 1)
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    file.write_bytes(content)


def _another(file: Path, _: random.Random, other: Path) -> None:
    file.write_bytes(other.read_bytes())


def _noise(file: Path, rng: random.Random, _: Path) -> None:
    file.write_bytes(rng.randbytes(rng.choice([0, 1, 100, 10_000])))


def _longer(file: Path, rng: random.Random, _: Path) -> None:
    file.write_bytes(file.read_bytes() + rng.randbytes(rng.choice([1, 64, 5000])))


def _nested(file: Path, _: random.Random, __: Path) -> None:
    file.write_bytes(b"[" * 100_000)


def _gone(file: Path, _: random.Random, __: Path) -> None:
    file.unlink(missing_ok=True)
    if file.suffix == ".json":
        file.write_bytes(b"")


_DAMAGES = (
    _flip, _flip, _cut, _without_checksum, _zeros, _another, _noise, _longer, _nested, _gone,
)  # fmt: skip

CAMPAIGN = Campaign("work killed, doubled or damaged on disk", 200, 120.0, attempt)

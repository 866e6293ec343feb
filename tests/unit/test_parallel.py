"""Tasks in parallel: the same outcomes however they are run, stopped and started again."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest

from mixedgm.checkpoint import Outcome, fingerprint, holds_work
from mixedgm.errors import MixedGMError, ParameterError
from mixedgm.options import Options
from mixedgm.parallel import n_cores, n_workers, run, seeds
from tests.support.load import PATIENCE

SRC = Path(__file__).resolve().parents[2] / "src"


def draw(seed: np.random.SeedSequence) -> dict[str, np.ndarray]:
    """Sums whose last bits would differ if BLAS added in another order."""
    x = np.random.default_rng(seed).normal(size=(200, 300))
    return {"gram": x @ x.T, "count": np.array(3)}


def logged(folder: Path, task: int) -> dict[str, np.ndarray]:
    (folder / f"ran-{task}-{time.monotonic_ns()}").touch()
    return {"square": np.array([task**2.0])}


def picky(task: int) -> dict[str, np.ndarray]:
    if task == 1:
        raise ParameterError("one is too few.")
    if task == 2:
        raise np.linalg.LinAlgError("singular")
    return {"x": np.array([float(task)])}


def broken(task: int) -> dict[str, np.ndarray]:
    if task == 3:
        raise ZeroDivisionError("a bug")
    return {"x": np.zeros(1)}


def same(first: list[Outcome], second: list[Outcome]) -> bool:
    assert [o.index for o in first] == [o.index for o in second]
    return all(
        a.error == b.error
        and (a.record is None) == (b.record is None)
        and all(np.array_equal(a.record[key], b.record[key]) for key in a.record or ())
        for a, b in zip(first, second, strict=True)
    )


def n_ran(folder: Path) -> int:
    return len(list(folder.glob("ran-*")))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_outcomes_are_the_same_for_every_number_of_jobs_and_backend() -> None:
    tasks = seeds(7, 6)
    expected = run(draw, tasks, n_jobs=1, what="draws")
    assert [outcome.index for outcome in expected] == list(range(6))
    assert same(expected, run(draw, tasks, n_jobs=2, what="draws"))
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert same(expected, run(draw, tasks, what="draws"))
    other = run(draw, seeds(8, 6), n_jobs=1, what="draws")
    assert not same(expected, other)


def test_the_context_decides_where_tasks_run(elsewhere: Path) -> None:
    assert {where()["pid"][0] for _ in range(2)} == {os.getpid()}
    here = run(where_of, range(4), n_jobs=1, what="tasks")
    assert {int(o.record["pid"][0]) for o in here} == {os.getpid()}
    with joblib.parallel_config(backend="threading", n_jobs=2):
        threads = run(where_of, range(4), what="tasks")
    assert {int(o.record["pid"][0]) for o in threads} == {os.getpid()}
    assert threading.get_ident() not in {int(o.record["thread"][0]) for o in threads}
    with joblib.parallel_config(backend="loky", n_jobs=2):
        processes = run(where_of, range(4), what="tasks")
    assert os.getpid() not in {int(o.record["pid"][0]) for o in processes}


def where() -> dict[str, np.ndarray]:
    return {"pid": np.array([os.getpid()]), "thread": np.array([threading.get_ident()])}


def where_of(task: int) -> dict[str, np.ndarray]:
    return where()


def test_blas_is_back_to_its_threads_afterwards() -> None:
    import scipy.linalg.cython_blas  # noqa: F401  its own BLAS, which would come in between
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = run(blas_threads, range(8), what="tasks")
    assert {int(o.record["threads"].max()) for o in found} == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def blas_threads(task: int) -> dict[str, np.ndarray]:
    from threadpoolctl import threadpool_info

    pools = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
    return {"threads": np.array(pools)}


def test_failures_are_counted_and_bugs_are_raised() -> None:
    found = run(picky, range(4), n_jobs=1, what="tasks")
    assert [outcome.error for outcome in found] == [
        None,
        "one is too few.",
        "LinAlgError: singular",
        None,
    ]
    assert found[1].record is None
    assert same(found, run(picky, range(4), n_jobs=2, what="tasks"))
    for n_jobs in (1, 2):
        with pytest.raises(ZeroDivisionError, match="a bug"):
            run(broken, range(6), n_jobs=n_jobs, what="tasks")


# -- seeds and fingerprints ------------------------------------------


def first_draws(given, n: int = 3) -> list[int]:
    return [int(np.random.default_rng(s).integers(2**62)) for s in seeds(given, n)]


def test_seeds_are_those_numpy_spawns() -> None:
    spawned = [np.random.default_rng(s) for s in np.random.SeedSequence(5).spawn(3)]
    assert first_draws(5) == [int(rng.integers(2**62)) for rng in spawned]
    assert first_draws(5, 2) == first_draws(5)[:2]
    assert len(set(first_draws(5))) == 3
    assert first_draws(np.random.SeedSequence(5)) == first_draws(5)
    assert first_draws(None) != first_draws(None)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_accepted_and_advance(make) -> None:
    rng = make(3)
    first = first_draws(rng)
    assert first == first_draws(make(3))
    assert first != first_draws(rng)


def test_none_is_all_cores_unless_the_context_says_otherwise() -> None:
    def counts(n_jobs: int | None) -> set[int]:
        return {n_workers(n_jobs), Options(n_jobs=n_jobs).n_threads}

    assert counts(None) == counts(-1) == {n_cores()}
    assert counts(-n_cores()) == counts(-1000) == {1}
    with joblib.parallel_config(n_jobs=3):
        assert counts(None) == {3}
        assert counts(2) == {2}
    with joblib.parallel_config(n_jobs=-1):
        assert counts(None) == {n_cores()}
    for backend in ("loky", "threading"):  # the cores are taken already
        nested = joblib.Parallel(2, backend=backend)(joblib.delayed(n_workers)(None) for _ in "ab")
        assert nested == [1, 1]
    here = run(where_of, range(4), what="tasks", n_jobs=1)
    assert {int(outcome.record["pid"][0]) for outcome in here} == {os.getpid()}


@pytest.mark.parametrize(
    "make", [int, np.random.default_rng, np.random.RandomState, np.random.SeedSequence]
)
def test_equal_random_states_give_equal_seeds(make) -> None:
    first, again, other = (seeds(make(number), 3) for number in (4, 4, 5))
    assert [s.generate_state(2).tolist() for s in first] == [
        s.generate_state(2).tolist() for s in again
    ]
    assert first[0].generate_state(2).tolist() != other[0].generate_state(2).tolist()


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "seed"])
def test_wrong_random_state(wrong) -> None:
    with pytest.raises(ParameterError, match="random_state must be"):
        seeds(wrong, 2)


@pytest.mark.parametrize("wrong", [0, 1.5, True])
def test_wrong_number_of_jobs(wrong) -> None:
    with pytest.raises(ParameterError, match="n_jobs must be"):
        run(picky, [0], n_jobs=wrong, what="tasks")


def test_fingerprints_tell_values_types_and_borders() -> None:
    x = np.arange(6.0)
    assert fingerprint(x, "a") == fingerprint(x.copy(), "a")
    others = [
        (x + 1e-16 * (x == 0), "a"),
        (x.reshape(2, 3), "a"),
        (x.astype(np.float32), "a"),
        ("a", x),
        (x, "a", None),
        (x, "b"),
    ]
    assert len({fingerprint(*parts) for parts in [(x, "a"), *others]}) == len(others) + 1
    assert fingerprint("ab", "c") != fingerprint("a", "bc")


# -- checkpoints ------------------------------------------


def test_a_second_run_reads_instead_of_doing(tmp_path: Path, elsewhere: Path) -> None:
    folder = tmp_path / "kept"
    options = {"what": "squares", "checkpoint": folder, "identity": "x"}
    work = partial(logged, elsewhere)
    assert not holds_work(folder)
    first = run(work, range(5), n_jobs=1, **options)
    assert holds_work(folder)
    assert n_ran(elsewhere) == 5
    for name in ("000001.npz", "000003.npz"):
        (folder / name).unlink()
    (folder / "000002.npz").write_bytes(b"PK damaged")
    (folder / ".000004.npz.abc").write_bytes(b"half of a file")
    os.utime(folder / ".000004.npz.abc", (0, 0))
    (folder / ".000003.npz.def").write_bytes(b"of a process that is still writing")
    again = run(work, range(5), n_jobs=2, **options)
    assert same(first, again)
    assert n_ran(elsewhere) == 8
    assert not (folder / ".000004.npz.abc").exists()
    assert (folder / ".000003.npz.def").exists()
    assert same(first, run(work, range(5), n_jobs=1, **options))
    assert n_ran(elsewhere) == 8


def test_a_record_with_any_byte_changed_is_done_again(tmp_path: Path, elsewhere: Path) -> None:
    folder = tmp_path / "kept"
    options = {"n_jobs": 1, "what": "squares", "checkpoint": folder, "identity": "x"}
    work = partial(logged, elsewhere)
    first = run(work, range(2), **options)
    file = folder / "000001.npz"
    whole = file.read_bytes()
    damaged = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole), 5)]
    old = whole[:-64]  # as files without a checksum were
    for content in [*damaged, whole[:-1], whole + b"0", b"", old, file.with_name("000000.npz")]:
        file.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        assert same(first, run(work, range(2), **options))
    assert n_ran(elsewhere) == 2 + len(damaged) + 5
    assert file.read_bytes() == whole


def test_failures_are_kept_too_and_nothing_is_pickled(tmp_path: Path) -> None:
    options = {"n_jobs": 1, "what": "tasks", "checkpoint": tmp_path / "new" / "kept"}
    first = run(picky, range(4), **options)
    assert same(first, run(broken, range(4), **options)), "nothing was done again"
    with np.load(tmp_path / "new" / "kept" / "000001.npz", allow_pickle=False) as arrays:
        assert str(arrays["error"]) == "one is too few."


def test_a_folder_of_other_work_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    run(picky, range(4), n_jobs=1, what="tasks", checkpoint=folder, identity="x")
    for options, text in [
        ({"identity": "y"}, "other data, options or seed"),
        ({"tasks": range(5)}, "started with 4 tasks, not 5"),
        ({"what": "folds"}, "other work .'tasks', not 'folds'"),
    ]:
        call = {"tasks": range(4), "what": "tasks", "identity": "x", **options}
        with pytest.raises(ParameterError, match=text):
            run(picky, call.pop("tasks"), n_jobs=1, checkpoint=folder, **call)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 99}))
    with pytest.raises(ParameterError, match="another format version"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=folder, identity="x")
    manifest.write_text("{")
    with pytest.raises(ParameterError, match="cannot be read"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=folder, identity="x")
    manifest.write_text("[" * 100_000)
    with pytest.raises(ParameterError, match="cannot be read"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=folder, identity="x")
    manifest.write_text("[]")
    with pytest.raises(ParameterError, match="not a checkpoint"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=folder, identity="x")


def test_a_folder_with_foreign_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"'thesis\.txt'"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(ParameterError, match="is a file; give a folder"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=tmp_path / "thesis.txt")
    numbered = tmp_path / "numbered"
    numbered.mkdir()
    (numbered / "000000.npz").write_bytes(b"someone else's")
    with pytest.raises(ParameterError, match=r"'000000\.npz'"):
        run(picky, range(4), n_jobs=1, what="tasks", checkpoint=numbered)


def test_every_task_has_a_seed_of_its_own() -> None:
    states = {tuple(seed.generate_state(4).tolist()) for seed in seeds(0, 50)}
    assert len(states) == 50


# -- interruption ------------------------------------------


def interrupted_at(limit: int, task: int) -> dict[str, np.ndarray]:
    if task == limit:
        raise KeyboardInterrupt
    return {"x": np.array([task])}


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    options = {"n_jobs": 1, "what": "tasks", "checkpoint": tmp_path / "kept"}
    with pytest.warns(RuntimeWarning, match=r"3 of 6 \(tasks\) are done.*kept in"):
        found = run(partial(interrupted_at, 3), range(6), **options)
    assert [outcome.index for outcome in found] == [0, 1, 2]
    whole = run(partial(interrupted_at, -1), range(6), **options)
    assert [int(outcome.record["x"][0]) for outcome in whole] == list(range(6))


def test_an_interrupt_before_anything_is_done_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(partial(interrupted_at, 0), range(6), n_jobs=1, what="tasks")


SCRIPT = """
    import sys, time, warnings
    import numpy as np
    from mixedgm.parallel import run

    def stuck_in_the_end(task):
        if task >= 50:
            time.sleep(3600)
        return {"x": np.array([task])}

    if __name__ == "__main__":
        warnings.simplefilter("always")
        found = run(stuck_in_the_end, range(100), n_jobs=2, what="tasks", checkpoint=sys.argv[1])
        print("finished", len(found))
"""


@pytest.mark.slow
def test_control_c_on_the_terminal_with_processes(tmp_path: Path) -> None:
    """The signal reaches the whole group, workers included, as a terminal would send it."""
    script, folder = tmp_path / "script.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(SCRIPT))
    child = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Programs that a shell started in the background ignore Ctrl-C, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    limit = time.monotonic() + PATIENCE
    while len(list(folder.glob("0*.npz"))) < 6 and time.monotonic() < limit:
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    out, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, errors
    n_done = int(out.split()[1])
    assert 5 <= n_done <= 50
    assert f"interrupted: {n_done} of 100" in errors
    # The signal may come when a task is on disk and not yet counted.
    assert len(list(folder.glob("*.npz"))) - n_done in (0, 1)


# -- workers that are killed ------------------------------------------


def dying(folder: Path, every_time: bool, task: int) -> dict[str, np.ndarray]:
    """The process of task 2 is killed, as by a system without memory."""
    killed = folder / "killed"
    if task == 2 and (every_time or not killed.exists()):
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": np.array([task])}


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_tasks_of_a_lost_worker_are_done_again(elsewhere: Path) -> None:
    found = run(partial(dying, elsewhere, False), range(6), n_jobs=2, what="tasks")
    assert (elsewhere / "killed").exists()
    assert [int(outcome.record["x"][0]) for outcome in found] == list(range(6))
    with pytest.raises(MixedGMError, match="worker processes died 3 times in a row"):
        run(partial(dying, elsewhere, True), range(2, 4), n_jobs=2, what="tasks")


# -- a parent that is killed ------------------------------------------

_LONG = """
import time
from mixedgm.parallel import run

def sleep(task):
    print("working", flush=True)
    time.sleep(3600)

if __name__ == "__main__":
    run(sleep, range(2), n_jobs=2, what="naps")
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(_LONG)
    found = {**os.environ, "PYTHONPATH": str(SRC)}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=found
    )
    assert parent.stdout is not None
    parent.stdout.readline()  # a worker is at work
    workers = [child for child in _children(parent.pid) if _is_running(child)]
    assert workers
    parent.kill()
    parent.wait()
    parent.stdout.close()
    ends = time.monotonic() + PATIENCE
    while any(map(_is_running, workers)) and time.monotonic() < ends:
        time.sleep(0.2)
    assert not any(map(_is_running, workers))


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

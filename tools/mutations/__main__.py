"""Seeded defects -> which test catches each: `python -m tools.mutations TREE`.

TREE is a copy of the repository that is spoilt and mended in place: kernels are cached by path and
time of their source, so that a copy for every defect would compile everything again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.mutations.defects import DEFECTS, Defect

HERE = Path(__file__).resolve().parent
RECORD = HERE / "record.json"
LIMIT = 900
SUITES = {"rows": "rows", "objective": "smooth", "penalty": "penalty", "solve": "solvers"}
WIDE = (
    ("tests/contracts",),
    ("tests/reference", "tests/optimality", "tests/invariance"),
    ("tests/surface",),
    ("tests/unit",),
    ("tests/stress", "tests/experiments", "tests/benchmarks", "src/mixedgm"),
)


def main() -> None:
    """Try the defects that the record does not know, or only those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutations", description=__doc__)
    parser.add_argument("tree", type=Path, help="a copy of the repository, which is spoilt in turn")
    parser.add_argument("--record", type=Path, default=RECORD, help="JSON that is read and written")
    parser.add_argument("--again", action="store_true", help="first try the test on record alone")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--near", action="store_true", help="leave out tests of other rooms")
    args = parser.parse_args()
    record = json.loads(args.record.read_text()) if args.record.exists() else {}
    for defect in DEFECTS:
        name = f"{defect.file}: {defect.right.strip()}"
        known = record.get(name)
        if args.only not in defect.file or (known is not None and not args.again):
            continue
        if source(args.tree, defect).read_text(encoding="utf-8").count(defect.right) != 1:
            print(f"{name} -> the file does not have this exactly once; change the list")
            continue
        with spoilt(args.tree, defect):
            found = caught_by(args.tree, defect, known, args.near)
        if found or not args.near:  # else it is tried with all tests the next time
            record[name] = found
            write(args.record, record)
        print(f"{name} -> {found or 'NOT CAUGHT'}", flush=True)


def write(file: Path, record: dict[str, str]) -> None:
    """Write the record in the order of the list."""
    names = [f"{defect.file}: {defect.right.strip()}" for defect in DEFECTS]
    kept = {name: record[name] for name in names if name in record}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def source(tree: Path, defect: Defect) -> Path:
    """Return the file that the defect is put into."""
    return tree / "src" / "mixedgm" / defect.file


@contextmanager
def spoilt(tree: Path, defect: Defect) -> Iterator[None]:
    """Put the defect into the tree, and take it out again, compiled kernels included."""
    file = source(tree, defect)
    content, times = file.read_text(encoding="utf-8"), file.stat()
    cache, kept = file.parent / "__pycache__", tree / ".kept_cache"
    shutil.rmtree(kept, ignore_errors=True)
    has_kernels = any(cache.glob("*.nbi"))
    if has_kernels:
        shutil.copytree(cache, kept)
    file.write_text(content.replace(defect.right, defect.wrong), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(content, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        if has_kernels:
            shutil.rmtree(cache)
            kept.rename(cache)


def caught_by(tree: Path, defect: Defect, known: str | None, near: bool) -> str:
    """Return the first test that fails; an empty text if none does."""
    stages = [(known,)] if known else []
    for tests in [*stages, *steps(tree, defect), *(() if near else WIDE)]:
        found = first_failure(tree, tests)
        if found:
            return found
    return ""


def steps(tree: Path, defect: Defect) -> Iterator[tuple[str, ...]]:
    """Yield tests from near to far: the mirror of the file, those named with it, its room's."""
    path = Path(defect.file)
    unit = Path("tests/unit") / path.parent
    stem = path.stem if path.stem != "__init__" else path.parent.name
    mirror = sorted(str(file.relative_to(tree)) for file in (tree / unit).glob(f"test_{stem}*.py"))
    yield (f"src/mixedgm/{defect.file}", *mirror)
    if defect.near:
        yield defect.near
    if path.parts[0] in SUITES:
        yield (f"tests/contracts/test_{SUITES[path.parts[0]]}.py",)
    if (tree / unit).exists():
        yield (str(unit),)


def first_failure(tree: Path, tests: tuple[str, ...]) -> str:
    """Run tests until one fails -> its name; an error of collection counts as one."""
    there = [test for test in tests if (tree / test.partition("::")[0]).exists()]
    if not there:
        return ""
    words = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE", *there]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
    try:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tree,
            env=found,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{there[0]} (does not end)"
    named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return named[1] if named else ""


if __name__ == "__main__":
    main()

"""Wheels that a GPU machine lacks -> one small archive, for machines that cannot be reached by pip.

    python -m benchmarks.gpu.carry                 # here, where there is a package index
    python benchmarks/gpu/carry.py --unpack DIR    # there, with a plain Python

The archive is written to benchmarks/gpu/carried/, which git ignores.  It has Numba and LLVM for
another version of Python, without symbols, and the small packages of pure Python that are needed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "carried" / "packages.tar.xz"
PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")
PACKAGES = (
    *("numba", "llvmlite", "array-api-compat", "narwhals", "joblib", "threadpoolctl", "tqdm"),
    *("pandas", "python-dateutil", "six", "tzdata"),
)
UNNEEDED = ("/tests/", "/testing/", "numba/cuda/tests", "llvmlite/tests")


def download(folder: Path, packages: tuple[str, ...]) -> list[Path]:
    """Wheels for the other machine, without what they depend on."""
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", PYTHON, *platforms]
    subprocess.run([*command, "--dest", str(folder), *packages], check=True)
    return sorted(folder.glob("*.whl"))


def unzip(wheels: list[Path], folder: Path) -> None:
    """All files of the wheels but tests."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not any(part in f"/{name}" for part in UNNEEDED):
                    archive.extract(name, folder)


def strip(folder: Path) -> None:
    """Take symbols out of libraries: most of what they weigh."""
    for library in sorted(folder.rglob("*.so*")):
        subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)


def pack() -> Path:
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wheels").mkdir()
        (folder / "packages").mkdir()
        unzip(download(folder / "wheels", PACKAGES), folder / "packages")
        strip(folder / "packages")
        with tarfile.open(ARCHIVE, "w:xz", preset=6) as archive:
            archive.add(folder / "packages", ".")
    return ARCHIVE


def unpack(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unpack", type=Path, metavar="DIR", help="unpack the archive there")
    given = parser.parse_args()
    if given.unpack is not None:
        unpack(given.unpack)
        return
    print(f"{pack()}: {ARCHIVE.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

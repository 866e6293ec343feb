"""The sources -> wheel and sdist in ``dist/``, tried out at the lowest and newest dependencies.

``make dist`` runs it.  Both archives are built, the wheel from the sdist, and their metadata is
checked.  Then the wheel is installed into empty environments outside this folder, first alone and
then with its extras, and ``smoke.py`` uses it there: once with every dependency at the lowest
version that pyproject.toml allows, once at the newest.  mypy checks ``client.py`` against it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

from release.lowest import EXTRAS, lowest

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "release"
NEEDED_BY_CLIENT = ("mypy", "pandas-stubs", "scipy-stubs", "types-networkx")


def main() -> None:
    """Build, check and try out."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--only", choices=("build", "lowest", "newest"), help="one step")
    only = parser.parse_args().only
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if only in (None, "build"):
        build(version)
    for which in ("lowest", "newest"):
        if only in (None, which):
            with tempfile.TemporaryDirectory(prefix=f"mixedgm-{which}-") as folder:
                try_out(which, version, Path(folder))


def build(version: str) -> None:
    """Write both archives and look into them."""
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(target), str(ROOT))
    archives = sorted(target.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, archives))
    packed, wheel = archives_of(version)
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
    top = {name.split("/")[0] for name in inside}
    if top != {"mixedgm", f"mixedgm-{version}.dist-info"}:
        raise SystemExit(f"the wheel has more than the package: {sorted(top)}")
    tracked = git_files("src/mixedgm")
    with tarfile.open(packed) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    lacking = [name for name in tracked if name.removeprefix("src/") not in inside]
    lacking += [name for name in tracked if name not in source]
    if lacking:
        raise SystemExit(f"not in the archives: {', '.join(lacking)}")
    say(f"{wheel.name} has {len(inside)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def archives_of(version: str) -> tuple[Path, Path]:
    """Return where the sdist and the wheel are."""
    return tuple(
        ROOT / "dist" / f"mixedgm-{version}{end}" for end in (".tar.gz", "-py3-none-any.whl")
    )


def git_files(folder: str) -> list[str]:
    """Return the files of a folder that git knows, or all of them in an unpacked sdist."""
    if (ROOT / ".git").exists():
        said = subprocess.run(
            ["git", "ls-files", folder], cwd=ROOT, check=True, capture_output=True, text=True
        )
        return said.stdout.split()
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return [str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts]


def try_out(which: str, version: str, folder: Path) -> None:
    """Install the wheel into an environment of its own, and use it there."""
    say(f"the {which} versions of all dependencies")
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if which == "lowest":
        constraints = folder / "lowest.txt"
        constraints.write_text("\n".join(lowest(ROOT / "pyproject.toml")) + "\n")
        install += ["--constraint", str(constraints)]
    else:
        install += ["--upgrade", "--upgrade-strategy", "eager"]
    _, wheel = archives_of(version)
    for script in ("smoke.py", "client.py"):
        shutil.copy(HERE / script, folder)
    for extent, what in (("plain", str(wheel)), ("extras", f"{wheel}[{','.join(EXTRAS)}]")):
        run(*install, what)
        run(python, "-I", "-W", "error::FutureWarning", "smoke.py", version, extent, cwd=folder)
        say(f"{which}, {extent}: works")
    run(python, "-m", "pip", "check")
    if which == "newest":
        run(*install, *NEEDED_BY_CLIENT)
        run(python, "-I", "-m", "mypy", "--strict", "client.py", cwd=folder)
    run(python, "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check")


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; end with its exit code if it fails."""
    done = subprocess.run(command, cwd=cwd, check=False)
    if done.returncode:
        raise SystemExit(f"failed with {done.returncode}: {' '.join(command)}")


def say(line: str) -> None:
    """Print a line about the progress."""
    print(f"== {line}", flush=True)


if __name__ == "__main__":
    main()

"""Make the environments in which pgmpy and pyAgrum run, apart from the package's own.

    python benchmarks/peers/field_env.py

creates benchmarks/.envs/pgmpy and benchmarks/.envs/pyagrum (half a GB each, ignored by git).
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ENVS = Path(__file__).resolve().parents[1] / ".envs"
PACKAGES = {"pgmpy": "pgmpy==1.1.2", "pyagrum": "pyagrum==3.3.1"}


def python_of(peer: str) -> Path:
    """The interpreter of a peer, which may not be there."""
    return ENVS / peer / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def main() -> None:
    for peer, package in PACKAGES.items():
        python = python_of(peer)
        if not python.exists():
            print(f"creating {ENVS / peer}")
            venv.create(ENVS / peer, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*command, package], check=True)
        tried = [str(python), "-c", f"import {peer}; print({peer}.__version__)"]
        found = subprocess.run(tried, check=True, capture_output=True, text=True).stdout.strip()
        print(f"{peer} {found} is ready")


if __name__ == "__main__":
    main()

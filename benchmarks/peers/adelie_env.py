"""Make the environment in which adelie runs: it needs an older NumPy than the package.

    python benchmarks/peers/adelie_env.py

creates benchmarks/.envs/adelie (a few hundred MB, ignored by git) and tries it.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".envs" / "adelie"
PYTHON = FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
PACKAGE = "adelie==1.1.52"


def main() -> None:
    if not PYTHON.exists():
        print(f"creating {FOLDER}")
        venv.create(FOLDER, with_pip=True)
    command = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check", PACKAGE]
    subprocess.run(command, check=True)
    tried = [
        str(PYTHON),
        "-c",
        "import adelie, numpy; print(adelie.__version__, numpy.__version__)",
    ]
    found = subprocess.run(tried, check=True, capture_output=True, text=True).stdout.split()
    print(
        f"adelie {found[0]} with NumPy {found[1]} is ready; now: python -m benchmarks --only peers"
    )


if __name__ == "__main__":
    main()

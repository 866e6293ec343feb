"""What a release states about itself agrees, and a program of someone else's type-checks."""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from release.lowest import lowest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_file_says_the_same_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.search(r"^version: (.+)$", citation, re.MULTILINE)
    dated = re.search(r"^date-released: (.+)$", citation, re.MULTILINE)
    released = re.findall(r"^## \[(\d.*?)\] - (.+)$", changes, re.MULTILINE)
    assert cited
    assert dated
    assert (cited[1], dated[1]) == released[0]
    assert cited[1] == PROJECT["version"]


def test_lowest_versions_are_the_bounds() -> None:
    found = dict(line.split("==") for line in lowest(ROOT / "pyproject.toml"))
    assert found["numpy"] == "2.0"
    assert {"pandas", "pyarrow", "matplotlib", "dask"} <= set(found)
    assert len(found) == len(PROJECT["dependencies"]) + 4


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy>=2,==2.1"])
def test_a_dependency_without_one_lower_bound_is_refused(line: str, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    extras = "frames = []\nplot = []\ncluster = []\n"
    file.write_text(
        f'[project]\ndependencies = ["{line}"]\n[project.optional-dependencies]\n{extras}'
    )
    with pytest.raises(ValueError, match="lower bound"):
        lowest(file)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the package among other people's."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder, with_pip=False)
    (library,) = (folder / "lib").glob("python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (library / "all.pth").write_text("\n".join([str(ROOT / "src"), *installed]) + "\n")
    return folder / "bin" / "python"


def checked(program: Path, outside: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "/dev/null"]
    cache = ROOT / ".mypy_cache" / "outside"
    command += ["--python-executable", str(outside), "--cache-dir", str(cache), str(program)]
    return subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_program_of_someone_else_is_checked_by_the_types_of_the_package(
    outside: Path, tmp_path: Path
) -> None:
    pytest.importorskip("mypy")
    client = tmp_path / "client.py"
    text = (ROOT / "release" / "client.py").read_text(encoding="utf-8")
    client.write_text(text, encoding="utf-8")
    right = checked(client, outside)
    assert right.returncode == 0, right.stdout
    wrong = """
mg.no_such_name
strength: str = mg.load("a.mgm").edges_[0].strength
columns: list[str] = mg.datasets.load_wage("pandas").columns.tolist()
"""
    client.write_text(text + wrong, encoding="utf-8")
    said = checked(client, outside).stdout
    assert 'Module has no attribute "no_such_name"' in said
    assert "Incompatible types in assignment" in said
    assert said.count("error:") == 2, said

"""The house: rooms import upwards only, heavy packages load late, modules say what they do."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.load import PATIENCE

SRC = Path(__file__).resolve().parents[2] / "src"
PACKAGE = SRC / "mixedgm"

# Top to bottom: a room may import from itself and from the rooms before it.
ROOMS = (
    "base",
    "families",
    "model",
    "table",
    "rows",
    "joint",
    "objective",
    "penalty",
    "solve",
    "inference",
    "path",
    "select",
    "fit",
    "store",
    "results",
    "pictures",
    "studies",
    "diagnostics",
    "report",
    "estimator",
    "datasets",
    "cli",
)
# These two only hand on: the public names, and `python -m mixedgm`.
DOORS = ("__init__", "__main__")

KERNELS = {"kernel", "inner"}
LATE = frozenset({"pandas", "polars", "pyarrow", "matplotlib", "networkx"})


def sources(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    parse.cache_clear()  # trees are large, and the collector would look through them for ever


def imported_modules(node: ast.AST, path: Path, package: Path) -> list[str]:
    """The full names that one import statement brings in; relative ones made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parents = path.relative_to(package.parent).parts[: -node.level]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    # `from mixedgm import table` names a room in the alias, so both forms are returned.
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def rooms_imported(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """The line and the room of every import of this package, inside functions too."""
    for node in ast.walk(parse(path)):
        for module in imported_modules(node, path, package):
            parts = module.split(".")
            if parts[0] == package.name and len(parts) > 1 and is_room(parts[1], package):
                yield getattr(node, "lineno", 0), parts[1]


def is_room(name: str, package: Path) -> bool:
    return (package / name).is_dir() or (package / f"{name}.py").is_file()


def downward_imports(package: Path) -> list[str]:
    found = set()
    for path in sources(package):
        room = room_of(path, package)
        if room in DOORS or room not in ROOMS:
            continue
        above = ROOMS[: ROOMS.index(room) + 1]
        for line, other in rooms_imported(path, package):
            if other not in above:
                found.add(f"{path.relative_to(package)}:{line} ({room}) imports {other}")
    return sorted(found)


def statements_run_on_import(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node outside functions and outside `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def early_imports(package: Path) -> list[str]:
    found = []
    for path in sources(package):
        for node in statements_run_on_import(parse(path)):
            for module in imported_modules(node, path, package):
                if module.split(".")[0] in LATE:
                    found.append(f"{path.relative_to(package)}:{node.lineno} imports {module}")  # type: ignore[attr-defined]
    return sorted(found)


def test_every_room_has_its_place() -> None:
    rooms = {room_of(path, PACKAGE) for path in sources(PACKAGE)}
    assert rooms - set(ROOMS) - set(DOORS) == set(), "add the room to ROOMS, where it belongs"


def test_rooms_import_upwards_only() -> None:
    assert downward_imports(PACKAGE) == []


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    assert early_imports(PACKAGE) == []


def test_matplotlib_is_imported_by_pictures_and_pyplot_by_the_canvas_alone() -> None:
    found = set()
    for path in sources(PACKAGE):
        tree, file = parse(path), path.relative_to(PACKAGE).as_posix()
        typing = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            for module in imported_modules(node, path, PACKAGE):
                if module.startswith("matplotlib") and node not in typing:
                    found.add((file, module))
    assert {file.split("/")[0] for file, _ in found} == {"pictures"}
    assert {file for file, module in found if "pyplot" in module} == {"pictures/canvas.py"}


def test_stores_are_made_where_the_architecture_says() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in sources(PACKAGE)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("MemoryRows", "PartedRows", "StateRows")
    }
    fits = {"path/task.py", "path/parted_rows.py", "rows/memory.py", "rows/parts.py"}
    assert found == fits | {"diagnostics/states.py", "diagnostics/truth.py", "fit/precompile.py"}


def without_types(package: Path) -> list[str]:
    """Functions without types that are no kernels, nor inside one."""
    found = []
    for path in sources(package):
        waiting: list[ast.AST] = [parse(path)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.FunctionDef):
                if KERNELS & {name.split("(")[0] for name in map(ast.unparse, node.decorator_list)}:
                    continue
                if node.returns is None:
                    found.append(f"{path.relative_to(package)}:{node.lineno} {node.name}")
            waiting.extend(ast.iter_child_nodes(node))
    return found


def test_only_kernels_have_no_types() -> None:
    assert without_types(PACKAGE) == []


def test_the_check_of_types_sees_a_planted_function(tmp_path: Path) -> None:
    text = "@kernel\ndef a(x): ...\n@inner(inline=True)\ndef b(x): ...\ndef c(x): ...\n"
    assert without_types(plant(tmp_path, "table/read.py", text)) == ["table/read.py:5 c"]


def test_no_two_classes_share_a_name() -> None:
    classes = [
        node.name
        for path in sources(PACKAGE)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted({name for name in classes if classes.count(name) > 1}) == []


def test_importing_the_package_stays_light() -> None:
    heavy = sorted(LATE | {"numba", "scipy.optimize"})
    # scikit-learn loads some of them by itself where they are installed; that is not ours to save.
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import mixedgm; "
        "from mixedgm import MixedGraphicalModel; "
        f"print(*(m for m in {heavy} if m in sys.modules and m not in before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("path", sources(PACKAGE), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_opens_with_one_sentence(path: Path) -> None:
    docstring = ast.get_docstring(parse(path))
    assert docstring, "a module starts with a docstring"
    assert docstring.splitlines()[0].endswith("."), "its first line is one whole sentence"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("table/read.py", "from mixedgm.solve import loop"),
        ("table/read.py", "import mixedgm.solve.loop"),
        ("table/read.py", "from mixedgm import solve"),
        ("table/read.py", "from ..solve import loop"),
        ("table/read.py", "from .. import solve"),
        ("table/read.py", "def f():\n    from mixedgm.solve import loop"),
        ("base/errors.py", "from ..table import read"),
    ],
)
def test_the_room_check_sees_a_planted_import(tmp_path: Path, file: str, text: str) -> None:
    package = plant(tmp_path, file, text)
    assert len(downward_imports(package)) == 1


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("import pandas as pd", 1),
        ("try:\n    import polars\nexcept ImportError:\n    pass", 1),
        ("class A:\n    from networkx import Graph", 1),
        ("def f():\n    import pandas", 0),
        ("if TYPE_CHECKING:\n    import pandas", 0),
    ],
)
def test_the_late_check_sees_a_planted_import(tmp_path: Path, text: str, n_found: int) -> None:
    package = plant(tmp_path, "table/read.py", text)
    assert len({found.split(" ")[0] for found in early_imports(package)}) == n_found


def plant(folder: Path, file: str, text: str) -> Path:
    package = folder / "mixedgm"
    for name in ("base/errors.py", "table/__init__.py", "solve/__init__.py", "solve/loop.py", file):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name == file else "", encoding="utf-8")
    return package

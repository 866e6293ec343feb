"""Tests of the surface use public names; no test replaces parts of the package."""

import ast
from pathlib import Path

import pytest

import mixedgm as mg

TESTS = Path(__file__).resolve().parents[1]
DOORS = {"mixedgm", "mixedgm.cli", "mixedgm.datasets", "mixedgm.diagnostics", "mixedgm.base.errors"}
EXCEPTIONS = {
    "mixedgm.select.evidence.Choice": "what a criterion of one's own returns",
    "test_docs.py": "compares the documented contracts with those in the code",
}
OUTSIDE = {"os", "sys", "subprocess", "plt", "config", "modules", "command_lines", "torch", "tqdm"}
"""What the package stands on: the system, other libraries, and the tests' own modules."""


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def is_public(name: str) -> bool:
    door, _, last = name.rpartition(".")
    if name in DOORS or name in EXCEPTIONS:
        return True
    if door == "mixedgm":
        return last in mg.__all__
    if door == "mixedgm.cli":
        return last == "main"
    return door in DOORS and not last.startswith("_")


def used_names(tree: ast.Module) -> set[str]:
    """What is imported from the package, or reached as `mg.name`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names |= {f"mixedgm.{node.attr}"} if node.value.id == "mg" else set()
    return {name for name in names if name.split(".")[0] == "mixedgm"}


@pytest.mark.parametrize("path", sorted((TESTS / "surface").rglob("*.py")), ids=lambda p: p.name)
def test_the_surface_is_tested_by_public_names(path: Path) -> None:
    if path.name not in EXCEPTIONS:
        dunder = {"mixedgm.__all__"}
        inner = {name for name in used_names(parse(path)) - dunder if not is_public(name)}
        assert not inner, "use public names, or move the test to tests/unit"


def replaced(tree: ast.Module) -> list[str]:
    """What `monkeypatch.setattr` and its like replace, other than what lies outside."""
    calls = [
        ast.unparse(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setattr"
        and not any(isinstance(arg, ast.Constant) and arg.value == "find_spec" for arg in node.args)
    ]
    return [what for what in calls if not OUTSIDE & set(what.strip("'\"").split("."))]


def test_no_test_replaces_parts_of_the_package() -> None:
    files = {
        path.relative_to(TESTS).as_posix(): replaced(parse(path)) for path in TESTS.rglob("*.py")
    }
    assert {name: what for name, what in files.items() if what} == {}


OTHER_NAMES = {"p_value": "p", "pvalue": "p", "p_val": "p", "dof": "df", "std_error": "se"}
"""Names that other libraries have for quantities, and the one that results of this package have."""


def test_results_have_one_name_for_a_quantity() -> None:
    """Fields, keys and columns of results; what users may bring (`pool`) is read under any name."""
    found = []
    for path in sorted((TESTS.parent / "src").rglob("*.py")):
        for node in ast.walk(parse(path)):
            names = {
                ast.AnnAssign: lambda n: [ast.unparse(n.target)],
                ast.FunctionDef: lambda n: [n.name, *(each.arg for each in n.args.kwonlyargs)],
                ast.Dict: lambda n: [k.value for k in n.keys if isinstance(k, ast.Constant)],
            }.get(type(node), lambda n: [])(node)
            found += [f"{path.name}: {name}" for name in names if name in OTHER_NAMES]
    assert not found

"""Sizes of the house that may only fall, and the form that a newcomer reads in one go."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "mixedgm"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_FILES = 256
MOST_IN_A_ROOM = 16
MOST_AT_THE_ROOT = 2
LONGEST_FILE = 860
MOST_ARGUMENTS_OVER_EIGHT = 27
LONGEST_ARCHITECTURE = 250


def functions() -> list[ast.FunctionDef]:
    return [
        node
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def n_arguments(function: ast.FunctionDef) -> int:
    given = function.args
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)


LIMITS = {
    "files": MOST_FILES,
    "files in one folder": MOST_IN_A_ROOM,
    "files at the root": MOST_AT_THE_ROOT,
    "lines of a file": LONGEST_FILE,
    "functions with more than eight arguments": MOST_ARGUMENTS_OVER_EIGHT,
}


@pytest.fixture(scope="module")
def sizes() -> dict[str, int]:
    rooms = Counter(file.parent for file in FILES if file.name != "__init__.py")
    lines = [len(file.read_text(encoding="utf-8").splitlines()) for file in FILES]
    return {
        "files": len(FILES),
        "files in one folder": max(rooms.values()),
        "files at the root": sum(file.parent == PACKAGE for file in FILES),
        "lines of a file": max(lines),
        "functions with more than eight arguments": sum(n_arguments(f) > 8 for f in functions()),
    }


@pytest.mark.parametrize(("what", "most"), LIMITS.items(), ids=LIMITS)
def test_the_house_does_not_grow(sizes: dict[str, int], what: str, most: int) -> None:
    found = sizes[what]
    assert found <= most, f"{what}: {found}; join or delete, or say in docs/decisions why not"
    assert found >= most - most // 50, f"{what}: {found}; lower the limit here, so that it holds"


def folder_of(test: Path) -> Path:
    return test.parent.relative_to(ROOT / "tests" / "unit")


@pytest.mark.parametrize(
    "test", sorted((ROOT / "tests" / "unit").rglob("test_*.py")), ids=lambda path: path.stem
)
def test_unit_tests_stand_where_the_code_stands(test: Path) -> None:
    assert (PACKAGE / folder_of(test)).is_dir()

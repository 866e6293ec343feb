"""The contracts: every class that fulfils one is named in its suite."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import mixedgm
from mixedgm.objective.contract import Smooth
from mixedgm.rows.contract import Rows
from mixedgm.solve.loop import Solver

TESTS = Path(__file__).resolve().parents[1]
SUITES: dict[type, tuple[str, ...]] = {
    Rows: ("contracts/test_rows.py",),
    Smooth: ("contracts/test_smooth.py",),
    Solver: ("contracts/test_solvers.py", "support/problems.py"),
}


def classes() -> Iterator[type]:
    """All of the package that are no protocols."""
    for found in pkgutil.walk_packages(mixedgm.__path__, "mixedgm."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            for _, each in inspect.getmembers(module, inspect.isclass):
                if each.__module__ == found.name and not getattr(each, "_is_protocol", False):
                    yield each


def fulfils(each: type, protocol: type) -> bool:
    """Whether a class has everything that the protocol names, be it a field or a method."""
    members = {
        name for base in each.__mro__ for name in (*vars(base), *inspect.get_annotations(base))
    }
    asked = {name for base in protocol.__mro__ for name in vars(base)}
    return {name for name in asked if not name.startswith("_")} <= members


@pytest.mark.parametrize("protocol", SUITES)
def test_every_implementation_is_named_in_the_suite(protocol: type) -> None:
    named = set()
    for file in SUITES[protocol]:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        named |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = {each.__name__ for each in classes() if fulfils(each, protocol)}
    assert len(found) >= 2
    assert found - named == set(), f"add them to tests/{SUITES[protocol][0]}"


def test_a_new_implementation_is_seen() -> None:
    class Store:
        n_rows: int
        passes = curvature_passes = 0.0
        part_seconds = (0.0, 0.0)

        def moments(self) -> None: ...
        def column_moments(self) -> None: ...
        def second_moments(self) -> None: ...
        def outside(self) -> None: ...
        def softmax(self) -> None: ...
        def softmax_curvature(self) -> None: ...
        def scored_curvature(self) -> None: ...

    class Part(Store):
        n_rows = 3

    assert fulfils(Store, Rows)
    assert fulfils(Part, Rows)
    del Store.softmax
    assert not fulfils(Part, Rows)

"""Kinds of columns are known in `families`: few other files name one, or rely on its place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "mixedgm"
MOST_FILES = 15
MOST_FILES_WITH_BORDERS = 15

WORDS = {"cont", "cat", "cats", "continuous", "categorical", "category", "categories"}
IN_TEXT = re.compile(r"(continuous|categorical)(-(continuous|categorical))?")
"""Texts that code compares with; sentences for people are documentation."""
BORDERS = {"n_gaussian", "n_numeric", "n_cont"}
"""Positions where the Gaussian nodes, or the numeric design columns, end."""


def is_exempt(path: Path) -> bool:
    """Where kinds belong: their own files, and the reading of tables."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] in ("table", "families")


def is_compiled(node: ast.stmt) -> bool:
    """Compiled loops know how arrays are laid out, kind by kind."""
    names = {name for each in getattr(node, "decorator_list", []) for name in called(each)}
    return bool(names & {"kernel", "inner"})


def called(decorator: ast.expr) -> Iterator[str]:
    yield from identifiers(decorator.func if isinstance(decorator, ast.Call) else decorator)


def docstrings(tree: ast.Module) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        for child in (
            getattr(node, "body", []) if isinstance(getattr(node, "body", []), list) else []
        ):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                found.add(id(child.value))
    return found


def identifiers(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.arg | ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name


def named_kinds(tree: ast.Module) -> Iterator[str]:
    """Identifiers and texts (other than documentation) that name a kind."""
    documentation = docstrings(tree)
    for node in ast.walk(tree):
        for name in identifiers(node):
            of_warning = name == "category"
            if WORDS & set(name.strip("_").lower().split("_")) and not of_warning:
                yield f"line {node.lineno}: {name}"
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in documentation and IN_TEXT.fullmatch(text):
            yield f"line {node.lineno}: {text!r}"


def borders(function: ast.AST) -> set[str]:
    """Names in a function that hold such a position."""
    aliases = set(BORDERS)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if isinstance(name, ast.Name) and set(identifiers(value)) & BORDERS:
                        aliases.add(name.id)
    return aliases


def branches(tree: ast.Module) -> Iterator[str]:
    """Comparisons and differences of a node's number and the place where a kind ends."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        aliases = borders(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                sides = [node.right]
            else:
                continue
            constant = any(isinstance(side, ast.Constant) for side in sides)
            if not constant and any(set(identifiers(side)) & aliases for side in sides):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def knowledge(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not is_compiled(node)]
    return sorted({*named_kinds(tree), *branches(tree)})


def test_few_files_know_kinds() -> None:
    known = {
        path.relative_to(PACKAGE).as_posix(): knowledge(path)
        for path in sorted(PACKAGE.rglob("*.py"))
        if not is_exempt(path)
    }
    known = {path: lines for path, lines in known.items() if lines}
    report = "\n".join(f"{path}: {'; '.join(lines[:4])}" for path, lines in known.items())
    assert len(known) <= MOST_FILES, (
        f"{len(known)} files name a kind or rely on its place:\n{report}"
    )


def test_few_files_use_the_place_where_gaussian_nodes_end() -> None:
    using = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "n_gaussian" in path.read_text(encoding="utf-8")
    ]
    assert len(using) <= MOST_FILES_WITH_BORDERS, f"ask `Nodes` for a mask or for runs: {using}"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def f(schema, v):\n    return v < schema.n_gaussian", 1),
        ("def f(schema, v):\n    p = schema.n_gaussian\n    return codes[:, v - p]", 1),
        ("def f(schema, v):\n    return schema.n_gaussian > 0", 0),
        ('x = column.kind == "categorical"', 1),
        ('"""A continuous column."""\nfor column in schema.continuous: ...', 1),
        ('def f(nodes):\n    """Not categorical."""\n    return nodes.width', 0),
    ],
)
def test_the_count_sees_what_it_should(code: str, count: int) -> None:
    tree = ast.parse(code)
    assert not any(map(is_compiled, tree.body))
    assert len({*named_kinds(tree), *branches(tree)}) == count

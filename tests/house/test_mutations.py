"""The list of seeded defects is about the code and the tests of today."""

import ast
import json
from pathlib import Path

from tools.mutations.__main__ import RECORD
from tools.mutations.defects import DEFECTS

ROOT = Path(__file__).resolve().parents[2]


def test_every_defect_is_of_a_line_that_is_there_once():
    for defect in DEFECTS:
        text = (ROOT / "src" / "mixedgm" / defect.file).read_text(encoding="utf-8")
        assert text.count(defect.right) == 1, f"{defect.file}: {defect.right}"


def test_the_tests_on_record_are_there():
    named = [name.partition("::") for name in json.loads(RECORD.read_text()).values() if name]
    assert len(named) > 60
    for file, _, test in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert file.startswith("src/") or test.partition("[")[0] in names, f"{file}::{test}"


def test_the_tests_to_try_early_are_there():
    assert all((ROOT / file).exists() for defect in DEFECTS for file in defect.near)

"""From `fit` to a pass over the rows and back: the depth of a default fit, and its files."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg
from tests.house.test_imports import imported_modules, parse, sources

PACKAGE = Path(mg.__file__).parent
# A lam of the path, and the refit of a graph by which the path is scored, each down to the pass.
MOST_FRAMES = {"solve_path": 16, "refit_losses": 21}
MOST_FILES = 73
# A file that so many others import is not a limb of one of them.
SHARED = 3
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def calls() -> tuple[set[str], set[str], list[list[str]]]:
    """Files that are entered, also with a given lam, and the functions down to every pass."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) @ [[1.0, 1.0], [0.0, 1.0]]
    chances = rng.normal(size=x.shape)
    table = {"x": x[:, 0], "y": x[:, 1]}
    table |= {name: np.where(x[:, k] > chances[:, k], "u", "v") for k, name in enumerate("ab")}
    table = pytest.importorskip("pandas").DataFrame(table)
    mg.MixedGraphicalModel(n_jobs=1).fit(table)  # compiles, and imports what is imported late
    mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table)
    mg.MixedGraphicalModel(lam=0.2, n_jobs=1).fit(table)
    files: set[str] = set()
    stacks: list[list[str]] = []

    def look(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event != "call" or PACKAGE not in file.parents:
            return
        files.add(file.relative_to(PACKAGE).as_posix())
        if (file.name, frame.f_code.co_name) == ("memory.py", "softmax"):
            stack = []
            while frame is not None:
                if PACKAGE in Path(frame.f_code.co_filename).parents:
                    stack.append(frame.f_code.co_name)
                frame = frame.f_back
            if stack.count("softmax") == 1:  # the pass, not a part of one
                stacks.append(stack[::-1])

    sys.setprofile(look)
    try:
        mg.MixedGraphicalModel(lam=0.2, n_jobs=1).fit(table)
        of_one_lam = set(files)
        files.clear()
        mg.MixedGraphicalModel(n_jobs=1).fit(table)
        of_default = set(files)
        mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table)
    finally:
        sys.setprofile(None)
    return of_default, of_one_lam, stacks


def importers() -> Counter[str]:
    """How many files of the package import each."""
    found: Counter[str] = Counter()
    for path in sources(PACKAGE):
        modules = set()
        for node in ast.walk(parse(path)):
            modules.update(imported_modules(node, path, PACKAGE))
        for module in modules:
            file = "/".join(module.split(".")[1:]) + ".py"
            if module.startswith("mixedgm.") and (PACKAGE / file).is_file():
                found[file] += 1
    return found


@pytest.mark.parametrize("through", MOST_FRAMES)
def test_few_frames_lead_from_fit_to_a_pass_over_the_rows(calls, through) -> None:
    stacks = [stack for stack in calls[2] if through in stack]
    assert stacks
    assert all(stack[0] == "fit" for stack in stacks)
    deepest = max(stacks, key=len)
    assert len(deepest) <= MOST_FRAMES[through], " > ".join(deepest)


def test_a_fit_goes_through_no_more_files(calls) -> None:
    assert len(calls[0]) <= MOST_FILES, sorted(calls[0])


def test_the_architecture_tells_how_many_and_how_many_are_shared(calls) -> None:
    of_default, of_one_lam, _ = calls
    users = importers()
    shared = [file for file in of_one_lam if users[file] >= SHARED]
    text = " ".join(ARCHITECTURE.read_text(encoding="utf-8").split())
    told = re.search(
        r"at most (\d+) files of the package.*; with a given `lam` (\d+)\. "
        r".*Of these (\d+), (\d+) are imported by three or more",
        text,
    )
    assert told is not None
    counted = (len(of_default), len(of_one_lam), len(of_one_lam), len(shared))
    assert tuple(map(int, told.groups())) == counted

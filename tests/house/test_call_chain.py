"""From `fit` to a pass over the rows and back: the depth of a default fit, and its files."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg

PACKAGE = Path(mg.__file__).parent
# A lam of the path, and the refit of a graph by which the path is scored, each down to the pass.
MOST_FRAMES = {"solve_path": 16, "refit_losses": 21}
MOST_FILES = 73


@pytest.fixture(scope="module")
def calls() -> tuple[set[str], list[list[str]]]:
    """Files that are entered, and the functions down to every pass."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) @ [[1.0, 1.0], [0.0, 1.0]]
    chances = rng.normal(size=x.shape)
    table = {"x": x[:, 0], "y": x[:, 1]}
    table |= {name: np.where(x[:, k] > chances[:, k], "u", "v") for k, name in enumerate("ab")}
    table = pytest.importorskip("pandas").DataFrame(table)
    mg.MixedGraphicalModel(n_jobs=1).fit(table)  # compiles, and imports what is imported late
    mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table)
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
        mg.MixedGraphicalModel(n_jobs=1).fit(table)
        of_default = set(files)
        mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table)
    finally:
        sys.setprofile(None)
    return of_default, stacks


@pytest.mark.parametrize("through", MOST_FRAMES)
def test_few_frames_lead_from_fit_to_a_pass_over_the_rows(calls, through) -> None:
    stacks = [stack for stack in calls[1] if through in stack]
    assert stacks
    assert all(stack[0] == "fit" for stack in stacks)
    deepest = max(stacks, key=len)
    assert len(deepest) <= MOST_FRAMES[through], " > ".join(deepest)


def test_a_fit_goes_through_no_more_files(calls) -> None:
    assert len(calls[0]) <= MOST_FILES, sorted(calls[0])

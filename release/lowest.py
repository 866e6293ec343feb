"""pyproject.toml -> constraints that hold every dependency at the lowest version it allows."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("frames", "plot", "cluster")
"""What users may install with the package.  The extra for GPUs is left out, because it is huge and
needs one to be tried; the others are for development."""


def lowest(pyproject: Path) -> list[str]:
    """Return one line "name==version" for each dependency of the package and of its extras.

    Every dependency must state a lower bound, else there is no lowest version to try.
    """
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    stated = [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]
    return sorted(_at_lower_bound(Requirement(line)) for line in stated)


def _at_lower_bound(requirement: Requirement) -> str:
    bounds = [each.version for each in requirement.specifier if each.operator in (">=", "~=", "==")]
    if len(bounds) != 1:
        raise ValueError(f"{requirement} has no lower bound, or more than one")
    return f"{requirement.name}=={bounds[0]}"

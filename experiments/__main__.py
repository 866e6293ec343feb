"""`python -m experiments`: every experiment, or those named with --only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from experiments.common import parser, perform, run_of, write_times

EXPERIMENTS = (
    "parameter_matrix",
    "phase_transition",
    "model_selection",
    "separate_regressions",
    "conditional",
    "maximum_likelihood",
    "consistency",
    "solvers",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run one after the other, and say what became of each."""
    options = parser(__doc__)
    options.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=list(EXPERIMENTS),
        metavar="NAME[,NAME]",
        help=f"some of {', '.join(EXPERIMENTS)}",
    )
    chosen = options.parse_args(arguments)
    for name in chosen.only:
        if name not in EXPERIMENTS:
            options.error(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    run = run_of(chosen)
    done = [perform(import_module(f"experiments.{name}").main, run, name) for name in chosen.only]
    write_times(run, [record for record in done if record is not None])


if __name__ == "__main__":
    main(sys.argv[1:])

"""Words of the command line -> campaigns run, progress shown, records written."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from stress.campaign import MODULES, load
from stress.record import code_now, keep, results, write_record
from stress.running import run

_EVERY = 15.0


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stress",
        description="Run campaigns of hostile input. Ctrl-C and go on another time: finished "
        "cases are kept in stress/.results, the record is in stress/record.",
    )
    parser.add_argument("campaigns", nargs="*", metavar="NAME", help=", ".join(MODULES))
    parser.add_argument("--cases", type=int, help="how many (default: the campaign's goal)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument("--again", action="store_true", help="repeat cases that had findings")
    parser.add_argument("--seed", type=int, help="run this one case here, and show what it finds")
    parser.add_argument(
        "--fresh", action="store_true", help="repeat cases that ran with other source code"
    )
    args = parser.parse_args(argv)
    unknown = [name for name in args.campaigns if name not in MODULES]
    if unknown:
        parser.error(f"there is no campaign {unknown[0]!r}; there are {', '.join(MODULES)}")
    if args.seed is not None:
        _one(args.campaigns[0], args.seed)
        return
    try:
        left = [_campaign(name, args) for name in args.campaigns or MODULES]
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if any(left):
        raise SystemExit(1)


def _one(name: str, seed: int) -> None:
    from stress.worker import judged

    campaign = load(name)
    campaign.prepare()
    case = judged(campaign, seed, code_now())
    print(f"{name} {seed}: {case.kind}, {case.seconds:.1f} s, {case.mb:.0f} MB")
    for finding in case.findings:
        print(finding)


def _campaign(name: str, args: argparse.Namespace) -> int:
    """Run what is left of one campaign; return the number of cases with findings."""
    campaign, code, cases = load(name), code_now(), results(name)
    seeds = [
        seed
        for seed in range(args.cases or campaign.cases)
        if seed not in cases
        or (args.again and cases[seed].findings)
        or (args.fresh and cases[seed].code != code)
    ]
    print(f"{name}: {len(seeds)} of {args.cases or campaign.cases} cases to run", flush=True)
    start = said = time.monotonic()
    try:
        for done, case in enumerate(run(name, campaign, seeds, code, args.jobs), 1):
            keep(name, case)
            cases[case.seed] = case
            if case.findings:
                shown = case.findings[0].strip().splitlines()[-1]
                print(f"  {case.seed} ({case.kind}): {shown[:200]}", flush=True)
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                rest = (said - start) / done * (len(seeds) - done)
                print(f"  {done}/{len(seeds)}, about {rest / 60:.0f} minutes left", flush=True)
    finally:
        record = write_record(name, campaign, cases.values())
    print(f"{name}: {record['cases']} cases, {record['with_findings']} with findings", flush=True)
    return int(str(record["with_findings"]))

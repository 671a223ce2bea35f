"""`python -m bench`: runs the contests and prints them; see `--help`."""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import KafkaException

from bench import java
from bench.harness import Contest, DisagreementError, Outcome, run_contest
from bench.machine import describe
from bench.report import as_json, as_markdown, as_text
from bench.rows import FULL, QUICK, contests

FAILURES = (RuntimeError, OSError, ValueError, KafkaException, subprocess.SubprocessError)
RESULTS = Path(__file__).resolve().parent / "RESULTS.md"


def main() -> int:
    options = _options()
    wanted = _wanted(options)
    if options.list:
        print("\n".join(contest.name for contest in wanted))
        return 0
    java.prepare()
    machine = describe()
    begin = time.monotonic()
    outcomes = [outcome for contest in wanted if (outcome := _run(contest))]
    failed = len(wanted) - len(outcomes)
    print(f"\n{len(outcomes)} contests in {(time.monotonic() - begin) / 60:.1f} minutes. {_missed(outcomes)}")
    if failed:
        print(f"{failed} contests FAILED, nothing is written", file=sys.stderr)
        return 1
    _store(options, outcomes, machine)
    return 0


def _run(contest: Contest) -> Outcome | None:
    """Run a contest; one that fails fails the run, but the others are still run and shown."""
    begin = time.monotonic()
    try:
        outcome = run_contest(contest)
    except DisagreementError as difference:
        print(f"\nFAILED: the sides disagree. {difference}", flush=True)
    except FAILURES as error:
        print(f"\nFAILED: {contest.name}: {error}", flush=True)
    else:
        print(f"\n{as_text(outcome)}\n  took {time.monotonic() - begin:.0f} s", flush=True)
        return outcome
    return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Paired benchmarks; both sides in turn in one run."
    )
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    parser.add_argument(
        "--quick", action="store_true", default=quick, help="small inputs, few rounds (also QUICK=1)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="contests with TEXT in their name"
    )
    parser.add_argument("--rounds", type=int, help="rounds of each contest")
    parser.add_argument("--list", action="store_true", help="print the names of the contests and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every round of every side")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the table")
    parser.add_argument(
        "--write", action="store_true", help=f"the table into {RESULTS.parent.name}/{RESULTS.name}"
    )
    return parser.parse_args()


def _wanted(options: argparse.Namespace) -> list[Contest]:
    found = contests(QUICK if options.quick else FULL)
    if options.only:
        found = [contest for contest in found if any(text in contest.name for text in options.only)]
    if options.rounds:
        found = [dataclasses.replace(contest, rounds=options.rounds) for contest in found]
    return found


def _missed(outcomes: list[Outcome]) -> str:
    missed = sum(outcome.missed for outcome in outcomes)
    return f"{missed} goals missed." if missed else "All goals met."


def _store(options: argparse.Namespace, outcomes: list[Outcome], machine: dict[str, str]) -> None:
    command = (
        "python -m bench"
        + (" --quick" if options.quick else "")
        + "".join(f" --only '{t}'" for t in options.only)
    )
    if options.json:
        options.json.write_text(as_json(outcomes, machine))
    targets = [options.markdown] if options.markdown else []
    for target in targets + ([RESULTS] if options.write else []):
        target.write_text(as_markdown(outcomes, machine, command))


if __name__ == "__main__":
    raise SystemExit(main())

"""Fuzzing by hand:  python -m tests.fuzz TARGET [--seed N] [--iterations N] [--seconds N] [FILE...]

With files, only these inputs are tried, in this process, so that a debugger can look on. ``ci/fuzz`` shows
the environment that a sanitized build needs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.campaign import TARGETS, describe, run
from tests.fuzz.engine import Limits

__all__ = ["main"]


def main() -> int:
    """Run one target, or try files."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    target = TARGETS[options.target]
    if options.files:
        for path in options.files:
            print(path, target.check(path.read_bytes()))
        return 0
    report = run(target, options.seed, Limits(options.iterations, options.seconds))
    print(describe(target, options.seed, report))
    return 1 if report.failure else 0


if __name__ == "__main__":
    sys.exit(main())

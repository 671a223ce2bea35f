"""``Suite``: the tests of a client library, fetched as its registry has them, run on a broker that is there.

Nothing of a suite is in this repository. What does not pass on one broker of Apache Kafka is left out by name
(``left_out.txt``).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["BUILD", "HERE", "SECONDS", "NotFetchedError", "Outcomes", "Suite", "fetch", "run_tests"]

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[1] / "build" / "client-suites"
SECONDS: Final = 3_000  # for all tests of a suite

Outcomes = Mapping[str, str]
"""``passed``, ``failed`` or ``skipped`` by the name of a test."""


@dataclass(frozen=True)
class Suite:
    """``prepare`` fetches and builds once; it raises NotFetchedError. ``run`` takes an address, the names of
    tests (none: all), and the file for what the tests print. ``sample`` is what runs in `make conformance`;
    ``configs`` are those of the broker that the suite is written for. ``needs`` are commands. ``name_of`` is
    what ``run`` calls a test of its outcomes."""

    name: str
    prepare: Callable[[], None]
    run: Callable[[str, Sequence[str], Path], Outcomes]
    sample: Sequence[str]
    configs: Mapping[str, str] = field(default_factory=dict)
    needs: Sequence[str] = ()
    name_of: Callable[[str], str] = str

    @property
    def missing(self) -> list[str]:
        """Commands that the suite needs, and this machine does not have."""
        return [command for command in self.needs if shutil.which(command) is None]


class NotFetchedError(Exception):
    """A registry could not be reached, or does not have the package."""


def fetch(command: Sequence[str], *, cwd: Path = BUILD) -> str:
    """Run a command that downloads; returns what it printed. Raises NotFetchedError."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise NotFetchedError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def run_tests(
    command: Sequence[str], log: Path, seconds: int, *, cwd: str | Path, env: Mapping[str, str]
) -> None:
    """Run a test program; its exit status says whether all tests passed, which ``log`` says in detail. Raises
    TimeoutExpired."""
    with log.open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=seconds, cwd=cwd, env=env)

"""Runs the sides of a contest in turn, and compares their costs and the data that they have read.

Round r runs every side once before round r + 1 begins, so that a noisy minute hits all of them. The
processes of a side are stopped (SIGSTOP) while another side runs: a JVM that has nothing to do still takes
processor time. The cost is CPU seconds (of the thread, or of the process and its children, depending on the
side), because wall clock means little on a shared machine. A ratio is taken within each round; its median
is the result. When sides that claim the same output differ, the run fails.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import statistics
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = [
    "Comparison",
    "Contest",
    "DisagreementError",
    "Limit",
    "Missing",
    "Outcome",
    "Side",
    "SideResult",
    "Timing",
    "run_contest",
    "timed",
]


class DisagreementError(Exception):
    """Two sides of a contest have not read the same data."""


class Timing(NamedTuple):
    """One round of one side. ``units`` is the number of processed records or batches, ``peak_bytes`` the peak
    memory so far, if it is known; ``detail`` is additional text about the last round; ``latencies`` are the
    seconds of each unit, where somebody waits for it."""

    cpu: float
    wall: float
    units: int
    peak_bytes: int = 0
    detail: str = ""
    latencies: Sequence[float] = ()


class Missing(NamedTuple):
    """A side that this machine cannot run, and why; the contest is held without it."""

    name: str
    reason: str


class Side(Protocol):
    """One of the compared programs."""

    @property
    def name(self) -> str: ...

    @property
    def output(self) -> str:
        """Sides with the same value must have equal digests."""

    def warm(self) -> None:
        """Prepare the first round: load, compile, fill caches."""

    def run(self) -> Timing: ...

    def digest(self) -> object:
        """Return the digest of the data, untimed, after the last round; None when the side has none."""

    def close(self) -> None: ...


@runtime_checkable
class HasProcesses(Protocol):
    """A side that has started processes, which stop while other sides run."""

    def process_ids(self) -> Sequence[int]: ...


@dataclass(frozen=True)
class Comparison:
    """``subject`` against another side: CPU of ``against`` divided by CPU of ``subject`` should be at
    least ``goal``; wall clock where it is ``by_wall``, because both wait for a disk. With a ``percentile``,
    the latencies of all rounds are compared at this percentile.
    """

    subject: str
    against: str
    goal: float | None = None
    by_wall: bool = False
    percentile: float | None = None


@dataclass(frozen=True)
class Limit:
    """What a side should not exceed: ``quantity`` is one of ``QUANTITIES``, whose median over the rounds
    counts."""

    side: str
    most: float
    quantity: str = "ns"


@dataclass(frozen=True)
class Contest:
    """Sides over one input.

    ``sides`` makes the input if need be. ``units``, asked after it, is the number of units in the
    input: rates are given for all of them, also where a side leaves some out.
    """

    name: str
    unit: str
    units: Callable[[], int]
    sides: Callable[[], Sequence[Side | Missing]]
    comparisons: Sequence[Comparison]
    rounds: int
    note: str = ""
    limits: Sequence[Limit] = ()
    # of one unit, where rates in bytes say something
    unit_bytes: Callable[[], int] | None = None


@dataclass
class SideResult:
    """All rounds of one side."""

    name: str
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    detail: str = ""
    latencies: list[float] = field(default_factory=list)  # of all rounds, in seconds
    is_compared: bool = False  # its digest was compared with that of another side

    def add(self, timing: Timing) -> None:
        self.cpu.append(timing.cpu)
        self.wall.append(timing.wall)
        self.peak_bytes = max(self.peak_bytes, timing.peak_bytes)
        self.detail = timing.detail
        self.latencies += timing.latencies

    def percentile(self, percent: float) -> float:
        """Seconds that a unit took at most in so many percent of the cases."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def ratios(self, subject: SideResult, *, by_wall: bool = False) -> list[float]:
        mine, theirs = (self.wall, subject.wall) if by_wall else (self.cpu, subject.cpu)
        return [mine / theirs for mine, theirs in zip(mine, theirs, strict=True)]


# the figures of a side for a number of units, one for each round or one for all
QUANTITIES: dict[str, Callable[[SideResult, int], list[float]]] = {
    "ns": lambda side, units: [cpu * 1e9 / units for cpu in side.cpu],
    "CPU-ms": lambda side, units: [cpu * 1e3 / units for cpu in side.cpu],
    "ms, wall clock": lambda side, units: [wall * 1e3 / units for wall in side.wall],
    "ms, p99": lambda side, units: [side.percentile(99) * 1e3],
    "MB": lambda side, units: [side.peak_bytes / 1e6],
}


@dataclass(frozen=True)
class Outcome:
    contest: Contest
    units: int
    sides: dict[str, SideResult]
    digests: dict[str, str]
    missing: Sequence[Missing] = ()

    def ratios(self, comparison: Comparison) -> list[float]:
        against = self.sides[comparison.against]
        subject, percent = self.sides[comparison.subject], comparison.percentile
        if percent is not None:
            return [against.percentile(percent) / subject.percentile(percent)]
        return against.ratios(subject, by_wall=comparison.by_wall)

    def met(self, comparison: Comparison) -> bool | None:
        if comparison.goal is None:
            return None
        return statistics.median(self.ratios(comparison)) >= comparison.goal

    def figures(self, limit: Limit) -> list[float]:
        """What the limit is about, of each round."""
        return QUANTITIES[limit.quantity](self.sides[limit.side], self.units)

    def within(self, limit: Limit) -> bool:
        return statistics.median(self.figures(limit)) <= limit.most

    @property
    def missed(self) -> int:
        """The number of goals and limits that were not reached."""
        goals = sum(self.met(comparison) is False for comparison in self.contest.comparisons)
        return goals + sum(not self.within(limit) for limit in self.contest.limits)


@contextlib.contextmanager
def timed(
    timing: list[tuple[float, float]], cpu_clock: Callable[[], float] = time.thread_time
) -> Iterator[None]:
    """Append (CPU seconds, wall seconds) of the block. The default clock counts the CPU time of this thread;
    ``time.process_time`` as ``cpu_clock`` counts all threads."""
    wall, cpu = time.perf_counter(), cpu_clock()
    yield
    cpu = cpu_clock() - cpu
    timing.append((cpu, time.perf_counter() - wall))


def run_contest(contest: Contest) -> Outcome:
    """Warm all sides, run the rounds, compare the digests, close the sides."""
    with contextlib.ExitStack() as stack:
        sides, missing = _present(contest.sides())
        for side in sides:
            stack.callback(side.close)
        for side in sides:
            side.warm()
        results = _rounds(contest, sides)
        digests = _digests(contest, sides, results)
    return Outcome(_reduced(contest, results), contest.units(), results, digests, missing)


def _present(found: Sequence[Side | Missing]) -> tuple[list[Side], list[Missing]]:
    missing = [side for side in found if isinstance(side, Missing)]
    return [side for side in found if not isinstance(side, Missing)], missing


def _reduced(contest: Contest, sides: Container[str]) -> Contest:
    """The contest without what is said about sides that are missing."""
    comparisons = [both for both in contest.comparisons if both.subject in sides and both.against in sides]
    limits = [limit for limit in contest.limits if limit.side in sides]
    return replace(contest, comparisons=comparisons, limits=limits)


def _rounds(contest: Contest, sides: Sequence[Side]) -> dict[str, SideResult]:
    results = {side.name: SideResult(side.name) for side in sides}
    if len(results) < len(sides):
        raise ValueError(f"{contest.name}: two sides have the same name")
    units: dict[str, int] = {}
    gc.collect()
    for side in [*sides] * contest.rounds:
        with _stopped(each for each in sides if each is not side):
            timing = side.run()
        results[side.name].add(timing)
        expected = units.setdefault(side.output, timing.units)
        if timing.units != expected:
            raise DisagreementError(
                f"{contest.name}: {side.name} gave {timing.units} {contest.unit}, not {expected}"
            )
    return results


@contextlib.contextmanager
def _stopped(sides: Iterable[Side]) -> Iterator[None]:
    """Stop the processes of these sides during the block."""
    processes = [each for side in sides if isinstance(side, HasProcesses) for each in side.process_ids()]
    with contextlib.ExitStack() as stack:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
            stack.callback(os.kill, process, signal.SIGCONT)
        yield


def _digests(contest: Contest, sides: Sequence[Side], results: dict[str, SideResult]) -> dict[str, str]:
    seen: dict[str, tuple[str, object]] = {}
    for side in sides:
        digest = side.digest()
        if digest is None:
            continue
        name, expected = seen.setdefault(side.output, (side.name, digest))
        if digest != expected:
            raise DisagreementError(f"{contest.name}: {side.name} saw {digest}, {name} saw {expected}")
        if name != side.name:
            results[name].is_compared = results[side.name].is_compared = True
    return {output: str(digest) for output, (_, digest) in seen.items()}

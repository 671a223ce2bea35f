"""A small mutational fuzzer: everything follows from the target, its corpus and one number, the seed.

A target mutates an input and checks one. ``check`` returns a label for what came of the input ("accepted",
"refused: …") and raises for a fault: any exception that it does not expect is one. An input with a label
that was not seen before joins the pool, so that later mutants start from there; thereby iteration n of a seed
is always the same input, however fast the machine is.

Iterations 0 to len(corpus) - 1 are the corpus itself.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

__all__ = ["Failure", "FaultError", "Limits", "Report", "Target", "fuzz", "mutants", "require"]

MAX_INPUT_BYTES = 64 << 10
MAX_POOL = 2000
FROM_CORPUS = 0.4  # of all mutants; the pool fills with inputs that are refused in ever new ways
STEPS = (1, 1, 1, 2, 2, 3, 5)  # mutations on top of each other

Check = Callable[[bytes], str]
Mutate = Callable[[Random, bytes, Sequence[bytes]], bytes]
Watch = Callable[[int, bytes], None]


class FaultError(AssertionError):
    """What a target says of an answer that is wrong."""


def require(condition: object, text: object) -> None:
    """An assertion, also for where an error is being handled."""
    if not condition:
        raise FaultError(text)


@dataclass(frozen=True)
class Target:
    """One kind of input. ``mutate(random, content, pool)`` changes one; ``needed`` are beginnings of labels
    that a run must reach, each at least once in a hundred inputs: a fuzzer whose mutants are all refused at
    the door tests the door. ``corpus`` names the target whose corpus it shares."""

    name: str
    check: Check
    mutate: Mutate
    needed: tuple[str, ...] = ("accepted", "refused")
    iterations: int = 1000
    corpus: str = ""


@dataclass(frozen=True)
class Limits:
    """Where a run ends: the number of inputs, or the time if that is given and over first; not before
    ``least`` inputs, which a slow target needs more time for."""

    iterations: int
    seconds: float | None = None
    least: int = 0


@dataclass(frozen=True)
class Failure:
    """A fault, and the input that shows it."""

    iteration: int
    content: bytes
    text: str

    @property
    def name(self) -> str:
        """A file name for the input."""
        return hashlib.sha256(self.content).hexdigest()[:16] + ".bin"


@dataclass
class Report:
    """What a run did. It stops at the first failure."""

    executions: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    failure: Failure | None = None

    def count(self, beginning: str) -> int:
        """How many inputs got a label that begins so."""
        return sum(number for label, number in self.labels.items() if label.startswith(beginning))

    def missing(self, target: Target) -> list[str]:
        """The labels that were needed and came too rarely."""
        return [each for each in target.needed if 100 * self.count(each) < self.executions]

    def summary(self, target: Target) -> str:
        """One line."""
        counts = ", ".join(f"{self.count(each)} {each}" for each in target.needed)
        return f"{target.name}: {self.executions} inputs ({counts}), {len(self.labels)} different outcomes"


def mutants(target: Target, corpus: Sequence[bytes], seed: int) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Iteration, input, and the pool to which the caller adds inputs worth going on from."""
    pool = list(corpus)
    for iteration, content in enumerate(corpus):
        yield iteration, content, pool
    iteration = len(corpus)
    while True:
        random = Random(f"{target.name} {seed} {iteration}")
        content = random.choice(corpus if random.random() < FROM_CORPUS else pool)
        for _ in range(random.choice(STEPS)):
            content = target.mutate(random, content, pool)
        yield iteration, content[:MAX_INPUT_BYTES], pool
        iteration += 1


def no_watch(iteration: int, content: bytes) -> None:
    """Nobody needs to know what is being tried."""


def fuzz(
    target: Target, corpus: Sequence[bytes], seed: int, limits: Limits, watch: Watch = no_watch
) -> Report:
    """Run a target. ``watch`` hears of each input before it is tried: the process may not survive it."""
    report = Report()
    end = None if limits.seconds is None else time.monotonic() + limits.seconds
    least = max(limits.least, len(corpus))
    for iteration, content, pool in mutants(target, corpus, seed):
        if iteration >= max(limits.iterations, len(corpus)):
            break
        if end is not None and iteration >= least and time.monotonic() > end:
            break
        watch(iteration, content)
        try:
            label = target.check(content)
        except Exception:
            report.failure = Failure(iteration, content, traceback.format_exc())
            return report
        report.executions += 1
        if not report.labels[label] and iteration >= len(corpus) and len(pool) < MAX_POOL:
            pool.append(content)
        report.labels[label] += 1
    return report

"""Commits of appends to very many partitions in random order, compared with `pwrite` and `fdatasync` of as
many files: latency, memory and descriptors."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

from bench.harness import Comparison, Contest, Side, Timing
from bench.java import BUILD
from bench.random_appends import GROUP

__all__ = ["contests"]

COMMAND = [sys.executable, "-m", "bench.random_appends"]
NOTE = (
    f"commits of {GROUP} appends: each to another of many partitions, chosen at random, and then one flush "
    "of all of them; `fdatasync` writes the same bytes to open files, and syncs them one after the other. "
    "Each round is a new process; every partition has a durable batch and a producer before the timing "
    "starts. Memory is that of the whole process at the end. The disk dominates the time."
)


class RandomAppends:
    """One side, in a separate process."""

    output = "appends"

    def __init__(self, name: str, partitions: int, groups: int) -> None:
        self._name = name
        self._partitions, self._groups = partitions, groups
        self._directory = BUILD / "bench" / "random-appends" / name

    @property
    def name(self) -> str:
        return self._name

    def warm(self) -> None:
        self._directory.parent.mkdir(parents=True, exist_ok=True)

    def run(self) -> Timing:
        shutil.rmtree(self._directory, ignore_errors=True)
        arguments = [self._name, str(self._directory), str(self._partitions), str(self._groups)]
        done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, check=True)
        answer = json.loads(done.stdout)
        detail = "commit p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms, {descriptors} descriptors".format(**answer)
        return Timing(answer["cpu"], answer["wall"], answer["appends"], answer["resident_bytes"], detail)

    def digest(self) -> object:
        return None  # bare writes assign no offsets

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def contests(partitions: int, groups: int, rounds: int) -> list[Contest]:
    """Return one contest of ``rounds`` times ``groups`` commits per side."""

    def sides() -> list[Side]:
        return [RandomAppends(name, partitions, groups) for name in ("txnkafka", "fdatasync")]

    return [
        Contest(
            f"commits of {GROUP} appends over {partitions:,} partitions",
            "appends",
            lambda: groups * GROUP,
            sides,
            [Comparison("txnkafka", "fdatasync", by_wall=True), Comparison("txnkafka", "fdatasync")],
            rounds,
            NOTE,
        )
    ]

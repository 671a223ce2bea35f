"""Spark sides: a Spark program of its own per side (spark_driver.py), driven over a pipe.

CPU is that of the whole tree of processes: driver, JVM and Python workers, read from /proc in ticks of 10 ms;
peak memory is the sum of what each of them held resident at its peak. A broker that serves the data is
another program: its CPU time is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Timing

__all__ = ["SparkSide", "tree_cpu_seconds"]

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
WARM_RUNS = 3


class SparkSide:
    """One reader doing one work on some cores. ``address``: a log directory, or where the broker listens.

    ``warm_seconds``: the JVM goes on compiling for a while, most of all where one run gives it little to do.
    """

    def __init__(
        self, reader: str, work: str, cores: int, address: str, units: int, warm_seconds: float
    ) -> None:
        self.name = reader
        self.output = "findings" if work == "findings" else "answer"
        if reader == "crossing":
            self.output = "made up"
        self._warm_seconds = warm_seconds
        self._units = units
        command = [sys.executable, "-m", "bench.spark_driver", reader, work, str(cores), address]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _ask(self, command: str) -> object:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Spark program of {self.name} ended; what it said is above")
        return json.loads(line)

    def warm(self) -> None:
        deadline, runs = time.monotonic() + self._warm_seconds, 0
        while runs < WARM_RUNS or time.monotonic() < deadline:
            self._ask("run")
            runs += 1

    def run(self) -> Timing:
        wall, cpu = time.perf_counter(), tree_cpu_seconds(self._process.pid)
        self._ask("run")
        cpu = tree_cpu_seconds(self._process.pid) - cpu
        wall = time.perf_counter() - wall
        return Timing(cpu, wall, self._units, _tree_peak_bytes(self._process.pid))

    def digest(self) -> object:
        return self._ask("digest")

    def close(self) -> None:
        self._process.communicate()


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process, its descendants and the children they waited for."""
    return sum(sum(map(int, fields[11:15])) for _, fields in _tree(root)) / TICKS


def _tree_peak_bytes(root: int) -> int:
    peaks = 0
    for process, _ in _tree(root):
        try:
            status = (process / "status").read_text()
        except OSError:
            continue  # it ended meanwhile
        if match := re.search(r"VmHWM:\s+(\d+) kB", status):
            peaks += int(match[1]) << 10
    return peaks


def _tree(root: int) -> Iterator[tuple[Path, list[str]]]:
    """A process and its descendants: their places in /proc and the fields of ``stat`` behind the name."""
    found: dict[int, tuple[Path, list[str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = entry, (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
    parents = {process: int(fields[1]) for process, (_, fields) in found.items()}
    yield from (found[process] for process in found if _descends(process, root, parents))


def _descends(process: int, root: int, parents: dict[int, int]) -> bool:
    while process != root and process in parents:
        process = parents[process]
    return process == root

"""Spark sides: a Spark program for each reader (spark_driver.py), driven over a pipe.

CPU is that of the whole tree of processes: driver, JVM and Python workers, read from /proc in ticks of 10 ms;
peak memory is the sum of their peak resident sizes. A broker that serves the data is another program: its CPU
time is not counted.
"""

from __future__ import annotations

import atexit
import contextlib
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
SETTLING_SECONDS = 0.02
PREPARED = ("stream",)  # what needs a preparation before each run, which is not measured


class _Program:
    """A Spark program of one reader on some cores. Contests share it one after the other, as the jobs of an
    application do: most of what the JVM compiles for one is also used by the next."""

    def __init__(self, reader: str, cores: int) -> None:
        self._reader = reader
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.spark_driver", reader, str(cores)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process_id = self._process.pid
        self.is_warm = False

    def ask(self, what: str, work: str, address: str) -> object:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps([what, work, address])}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Spark program of {self._reader} ended; its output is above")
        return json.loads(line)

    def end(self) -> None:
        self._process.communicate()


_running: dict[tuple[str, int], _Program] = {}


def _program(reader: str, cores: int) -> _Program:
    """Stop the programs with another number of cores, since their memory is needed."""
    for key in [key for key in _running if key[1] != cores]:
        _running.pop(key).end()
    if (reader, cores) not in _running:
        _running[reader, cores] = _Program(reader, cores)
    return _running[reader, cores]


@atexit.register
def _end_all() -> None:
    for program in _running.values():
        program.end()


class SparkSide:
    """One reader with one workload on some cores. ``address``: a log directory, or the address of the broker.

    ``warm_seconds``: the JVM keeps compiling for a while, longest if one run gives it little to do; a new one
    gets twice that.
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
        self._job = (work, address)
        self._program = _program(reader, cores)

    def warm(self) -> None:
        least, seconds = (1, self._warm_seconds) if self._program.is_warm else (3, 2 * self._warm_seconds)
        deadline, runs = time.monotonic() + seconds, 0
        while runs < least or time.monotonic() < deadline:
            self._prepare()
            self._program.ask("run", *self._job)
            runs += 1
        self._program.is_warm = True
        _forget_peaks(self._program.process_id)

    def _prepare(self) -> None:
        if self._job[0] in PREPARED:
            self._program.ask("prepare", *self._job)

    def run(self) -> Timing:
        self._prepare()
        root = self._program.process_id
        wall, cpu = time.perf_counter(), tree_cpu_seconds(root)
        self._program.ask("run", *self._job)
        cpu = tree_cpu_seconds(root) - cpu
        wall = time.perf_counter() - wall
        return Timing(cpu, wall, self._units, _tree_peak_bytes(root))

    def digest(self) -> object:
        return self._program.ask("digest", *self._job)

    def close(self) -> None:
        """Do nothing: the next contest uses the program."""


def tree_cpu_seconds(root: int) -> float:
    """Return user and system time of a process, its descendants and the children they waited for. The time of
    a worker that is just ending may be missing for a moment."""
    first = _ticks(root)
    time.sleep(SETTLING_SECONDS)
    return max(first, _ticks(root)) / TICKS


def _ticks(root: int) -> int:
    return sum(sum(map(int, fields[11:15])) for _, fields in _tree(root))


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


def _forget_peaks(root: int) -> None:
    """Reset the peaks of memory."""
    for process, _ in _tree(root):
        with contextlib.suppress(OSError):  # it ended meanwhile
            (process / "clear_refs").write_text("5")


def _tree(root: int) -> Iterator[tuple[Path, list[str]]]:
    """Yield a process and its descendants: their paths in /proc and the fields of ``stat`` after the name."""
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

"""Spark sides: a Spark program of its own per side (spark_driver.py), driven over a pipe.

CPU is that of the whole tree of processes: driver, JVM and Python workers, read from /proc in ticks of 10 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.harness import Timing

__all__ = ["SparkSide", "tree_cpu_seconds"]

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
WARM_RUNS = 2


class SparkSide:
    """One reader doing one work."""

    output = "totals"

    def __init__(self, reader: str, work: str, log_dir: Path, units: int) -> None:
        self.name = f"{reader} {work}"
        self._units = units
        command = [sys.executable, "-m", "bench.spark_driver", reader, work, str(log_dir)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
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
        for _ in range(WARM_RUNS):
            self._ask("run")

    def run(self) -> Timing:
        wall, cpu = time.perf_counter(), tree_cpu_seconds(self._process.pid)
        self._ask("run")
        cpu = tree_cpu_seconds(self._process.pid) - cpu
        return Timing(cpu, time.perf_counter() - wall, self._units)

    def digest(self) -> object:
        return self._ask("digest")

    def close(self) -> None:
        self._process.communicate()


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process, its descendants and the children they waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    return sum(ticks[process] for process in ticks if _descends(process, root, parents)) / TICKS


def _descends(process: int, root: int, parents: dict[int, int]) -> bool:
    while process != root and process in parents:
        process = parents[process]
    return process == root

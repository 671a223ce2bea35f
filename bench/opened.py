"""`python -m bench.opened DIR [close]` opens a data directory in a process of its own, says what that has
cost as JSON, and dies; with the word close behind it, it closes the directory in order before that."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.storage.data_directory import DataDirectory

NOW_MS = 1_700_000_000_000


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = LogConfig()
    before = _resident_bytes()
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    directory = DataDirectory(LocalDataFiles(), sys.argv[1], lambda topic: config, now_ms=NOW_MS)
    cpu = time.process_time_ns() - cpu
    wall = time.perf_counter_ns() - wall
    answer = {
        "logs": len(directory.logs),
        "offsets": sum(log.log_end_offset for log in directory.logs.values()),
        "bytes": _resident_bytes() - before,
        "cpu_ns": cpu,
        "wall_ns": wall,
    }
    if "close" in sys.argv:
        directory.close()
    print(json.dumps(answer))


def _resident_bytes() -> int:
    """0 where there is no /proc."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


if __name__ == "__main__":
    main()

"""`python -m bench.opened DIR [close]` opens a data directory in a separate process, prints the cost as JSON,
and exits without closing; with the argument close it closes the directory in order before."""

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
    """Return the memory of this process; 0 without /proc."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


if __name__ == "__main__":
    main()

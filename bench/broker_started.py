"""`python -m bench.broker_started DIR PARTITIONS` opens a broker on a data directory in a process of its own,
with a topic of so many partitions, which is created if need be; prints the cost as JSON, and closes it."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from bench.in_process import Host
from bench.random_appends import resident_bytes


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wall, cpu = time.perf_counter(), time.process_time()
    host = Host(Path(sys.argv[1]), partitions=int(sys.argv[2]))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(
        json.dumps(
            {
                "partitions": len(host.broker.logs),
                "cpu": cpu,
                "wall": wall,
                "resident_bytes": resident_bytes(),
            }
        )
    )
    host.close()


if __name__ == "__main__":
    main()

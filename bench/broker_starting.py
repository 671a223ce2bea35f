"""A broker that starts with very many partitions after a clean stop: time and memory of the whole process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

from bench.harness import Timing
from bench.recovering import MEMORY
from bench.servers import fresh

__all__ = ["BrokerStartSide"]

COMMAND = [sys.executable, "-m", "bench.broker_started"]


class BrokerStartSide:
    """txnkafka's broker without its server, in a new process each round."""

    name, output = "txnkafka", "partitions"

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._directory = fresh(f"broker-{partitions}", MEMORY / "txnkafka-bench")

    def warm(self) -> None:
        """Create the partitions."""
        self.run()

    def run(self) -> Timing:
        """Start, and stop in order, which is not timed."""
        arguments = [str(self._directory / "data"), str(self._partitions)]
        done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, check=True)
        answer = json.loads(done.stdout)
        return Timing(answer["cpu"], answer["wall"], answer["partitions"], answer["resident_bytes"])

    def digest(self) -> object:
        """None: there is no other side."""
        return None

    def close(self) -> None:
        """Remove the partitions."""
        shutil.rmtree(self._directory, ignore_errors=True)

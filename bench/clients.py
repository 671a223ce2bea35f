"""Clients in Python, each in a process, against one ``txnkafka serve``; CPU seconds of the client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from bench.confluent import create_topic
from bench.harness import Comparison, Contest, DisagreementError, Side, Timing
from bench.servers import Txnkafka

__all__ = ["contests"]

SECONDS = 300  # until a client counts as stuck
NOTE = (
    "clients: CPU seconds of the client's process, all its threads included; 100-byte records, to and from "
    "one partition of txnkafka serve with --durability page_cache; sends in transactions of 20,000 records."
)
# name, work of our side, records as a multiple, other sides with their work and goal
WORK = (
    (
        "send()",
        "send",
        1,
        {"kafka-python": ("send", 10), "aiokafka": ("send", 8), "confluent": ("send", 0.5)},
    ),
    ("send_columns()", "send_columns", 5, {"confluent": ("send", 5)}),
    ("send_arrow()", "send_arrow", 5, {"confluent": ("send", 5)}),
    ("iterate a consumer", "read", 1, {"kafka-python": ("read", 10), "confluent": ("read", 0.7)}),
    ("poll_arrow()", "read_arrow", 5, {"confluent": ("read", 10)}),
)


class ClientSide:
    """One library. The first side of a contest owns the ``server``; ``fills`` it for readers."""

    output = "records"

    def __init__(self, library: str, work: str, server: Txnkafka, count: int, *, owns: bool) -> None:
        self.name = library
        self._work, self._server, self._count, self._owns = work, server, count, owns
        self._size: int | None = None

    def warm(self) -> None:
        """Start the server, fill it for readers, and run once."""
        if self._owns:
            self._server.start()
            create_topic(self._server, 1)
            if self._work.startswith("read"):
                self._call("confluent", "send", self._count)
        self.run()

    def run(self) -> Timing:
        """One process."""
        found = self._call(self.name, self._work, self._count)
        self._size = found["size"]
        return Timing(found["cpu"], found["wall"], self._count)

    def _call(self, library: str, work: str, count: int) -> dict[str, float]:
        command = [sys.executable, "-m", "bench.client_program", library, work]
        command += [self._server.bootstrap_servers, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(f"{library} failed: {done.stderr[-2000:]}")
        found: dict[str, float] = json.loads(done.stdout)
        return found

    def digest(self) -> object:
        """The bytes of all values that a reader got."""
        if self._work.startswith("read") and not self._size:
            raise DisagreementError(f"{self.name} has read nothing")
        return self._size

    def close(self) -> None:
        """Stop the server."""
        if self._owns:
            self._server.stop()


def contests(count: int, rounds: int) -> list[Contest]:
    """The contests, of ``count`` records a round."""
    return [_contest(name, work, others, count * times, rounds) for name, work, times, others in WORK]


def _contest(name: str, work: str, others: dict[str, tuple[str, float]], count: int, rounds: int) -> Contest:
    def sides() -> Sequence[Side]:
        server = Txnkafka("page_cache")
        found = [ClientSide("txnkafka", work, server, count, owns=True)]
        found += [ClientSide(other, job, server, count, owns=False) for other, (job, _) in others.items()]
        return found

    comparisons = [Comparison("txnkafka", other, goal) for other, (_, goal) in others.items()]
    return Contest(f"client: {name}, 100 B", "records", lambda: count, sides, comparisons, rounds, NOTE)

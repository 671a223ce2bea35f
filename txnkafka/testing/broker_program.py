"""The program of ``BrokerProcess``: serves a data directory, and obeys commands.

    python -m txnkafka.testing.broker_program DIRECTORY ADDRESS '{"num.partitions": 3}'

Each line of stdin is a JSON list, the name of a command and its arguments; each line of stdout is the JSON
result, an object with ``result`` or ``error``. The first line is the address. The broker stops at the end of
stdin, so that it does not outlive its test.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from txnkafka.embedded import Broker
from txnkafka.env import LocalDataFiles
from txnkafka.testing import broker_faults
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.movable_clock import MovableClock


class _Program:
    """A broker with its clock and its plan of faults; the methods are the commands."""

    def __init__(self, directory: str, settings: dict[str, Any]) -> None:
        self._clock, self._plan = MovableClock(), FaultPlan(call="sync")
        files = FaultyFiles(LocalDataFiles(), self._plan)
        self.broker = Broker._open(directory, files, self._clock, "fsync", settings)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        broker_faults.create_topic(self.broker, name, partitions)

    def advance(self, ms: int) -> None:
        """Move the clock forward."""
        broker_faults.advance(self.broker, self._clock, ms)

    def hang_transaction(self, topic: str, partition: int, records: int) -> int:
        """Append records of a transaction that no coordinator knows."""
        return broker_faults.hang_transaction(self.broker, topic, partition, records)

    def fail_next_flush(self) -> None:
        """Let the next sync fail."""
        self._plan.fails = self._plan.counted + 1

    def drop_connections(self) -> int:
        """Close the connections of all clients."""
        return broker_faults.drop_connections(self.broker)

    def clean(self) -> None:
        """Delete all topics and groups."""
        broker_faults.clean(self.broker)


def main(directory: str, address: str, settings: str) -> None:
    """Serve until the end of stdin."""
    program = _Program(directory, json.loads(settings))
    with program.broker as broker:
        _answer({"result": broker.serve(address)})
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            try:
                _answer({"result": getattr(program, name)(*arguments)})
            except Exception as error:
                _answer({"error": f"{type(error).__name__}: {error}"})


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

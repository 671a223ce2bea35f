"""A topic that librdkafka reads from its beginning to its end: the same log, attached to txnkafka and to
Apache Kafka. CPU time is that of the server, the wall clock that of the client on the same machine."""

from __future__ import annotations

import time
from pathlib import Path

from bench.confluent import TOPIC, create_topic, messages
from bench.digest import DigestBuilder
from bench.harness import Timing
from bench.segments import Input, ready
from bench.served import attach
from bench.servers import Kafka, Txnkafka, cpu_seconds, resident_bytes

__all__ = ["KEPT", "ConsumeSide"]

KEPT = {"log.retention.ms": "-1"}  # the generator's timestamps are years old
# With its default queue it is the client that waits.
SETTINGS = {
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 10,
    "check.crcs": True,
}


class ConsumeSide:
    """One server; each round has a new consumer."""

    output = "records"

    def __init__(self, server: Txnkafka | Kafka, source: Input) -> None:
        self.name = server.name
        self._server, self._source = server, source

    def warm(self) -> None:
        """Attach the log to a topic, and read it once."""
        ready(self._source)
        self._server.start()
        create_topic(self._server, 1)
        self._server.stop()
        partition = f"{TOPIC}-0"
        attach(self._source.log_dir / partition, Path(self._server.log_dir, partition))
        self._server.start()
        self.run()

    def run(self) -> Timing:
        """Read all of it."""
        process = self._server.process_id
        cpu, wall = cpu_seconds(process), time.perf_counter()
        count = sum(len(found) for found in messages(self._server, 1, SETTINGS))
        wall, cpu = time.perf_counter() - wall, cpu_seconds(process) - cpu
        return Timing(cpu, wall, count, resident_bytes(process))

    def digest(self) -> object:
        """Of every record."""
        builder = DigestBuilder()
        for found in messages(self._server, 1, SETTINGS):
            for message in found:
                builder.add_record(message.offset(), message.timestamp()[1], message.key(), message.value())
        return builder.digest()

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()

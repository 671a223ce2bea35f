"""A start on a directory that was stopped cleanly, until a client's first transaction is committed."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException, Producer

from bench.confluent import SECONDS, TOPIC, create_topic, messages
from bench.harness import Timing
from bench.servers import Kafka, Txnkafka, cpu_seconds, resident_bytes

__all__ = ["StartSide"]


class StartSide:
    """One server, which runs during its rounds only."""

    output = "records"

    def __init__(self, server: Txnkafka | Kafka) -> None:
        self.name = server.name
        self._server = server
        self._starts = 0

    def warm(self) -> None:
        """Create the topic, and have the first transaction, so that the coordinator has its log."""
        self._server.start()
        create_topic(self._server, 1)
        self._transact()
        self._server.stop()

    def run(self) -> Timing:
        """CPU time and memory of the server until the commit is answered."""
        wall = time.perf_counter()
        self._server.start()
        self._transact()
        wall = time.perf_counter() - wall
        process = self._server.process_id
        timing = Timing(cpu_seconds(process), wall, 1, resident_bytes(process))
        self._server.stop()
        return timing

    def _transact(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._server.bootstrap_servers,
                "transactional.id": "bench",
                "linger.ms": 0,
                "log_level": 0,
                "reconnect.backoff.ms": 5,
                "retry.backoff.ms": 5,
            }
        )
        try:
            # connected first: init_transactions on a client without a connection waits for 500 ms
            producer.list_topics(timeout=SECONDS)
            producer.init_transactions(SECONDS)
            producer.begin_transaction()
            producer.produce(TOPIC, b"%0100d" % self._starts, partition=0)
            producer.commit_transaction(SECONDS)
        except KafkaException as error:
            raise RuntimeError(f"{self.name}: {error}") from None
        self._starts += 1

    def digest(self) -> object:
        """The records of all starts."""
        self._server.start()
        found = [message.value() for some in messages(self._server, 1) for message in some]
        self._server.stop()
        return found

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()

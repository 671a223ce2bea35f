"""Transactions over the loopback: an unmodified client, and servers that take turns.

A round is a fixed number of transactions, so that the same records are in the logs of all servers in the
end; a read_committed consumer reads them back. An aborted transaction before the rounds must not be seen.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaException, Producer

from bench.confluent import SECONDS, TOPIC, create_topic, messages
from bench.harness import DisagreementError, Timing
from bench.java import JavaProcess
from bench.servers import Server, cpu_seconds, resident_bytes

__all__ = ["Client", "ConfluentClients", "JavaClient", "Load", "TransactionsSide"]

ROUND, WARM, ABORTED = "r", "w", "a"  # first characters of values
WARM_COUNT = 20


class Measured(NamedTuple):
    """Transactions: seconds of all of them, and of each."""

    wall: float
    latencies: Sequence[float]


class Client(Protocol):
    """One or more transactional producers."""

    def open(self, server: Server) -> None:
        """Connect, and initialize the transactions."""

    def transact(self, prefix: str, first: int, count: int, *, commit: bool = True) -> Measured:
        """Run transactions number ``first`` and following."""

    def process_ids(self) -> Sequence[int]:
        """Of the processes that it has started."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Load:
    """``producers`` at the same time, each with ``records`` records of 100 bytes in every transaction, one
    partition after the other."""

    producers: int = 1
    records: int = 1
    partitions: int = 1


class ConfluentClients:
    """Producers of confluent-kafka, each with a thread of its own if there are several."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.bootstrap_servers = ""
        self._producers: list[Producer] = []
        self._threads = ThreadPoolExecutor(load.producers)

    def open(self, server: Server) -> None:
        """Connect, and initialize the transactions."""
        self.bootstrap_servers = server.bootstrap_servers
        for number in range(self._load.producers):
            settings = {
                "bootstrap.servers": server.bootstrap_servers,
                "transactional.id": f"bench-{number}",
                "linger.ms": 0,
                "log_level": 0,
            }
            self._producers.append(Producer(settings))
        list(self._threads.map(lambda producer: producer.init_transactions(SECONDS), self._producers))

    def transact(self, prefix: str, first: int, count: int, *, commit: bool = True) -> Measured:
        """Run the transactions; raises RuntimeError for one that fails."""
        share = count // self._load.producers
        latencies: list[list[float]] = [[] for _ in self._producers]
        together = threading.Barrier(self._load.producers)

        def run(number: int) -> None:
            together.wait()
            begin = first + number * share
            for transaction in range(begin, begin + share):
                latencies[number].append(self._one(number, transaction, prefix, commit))

        begin = time.perf_counter()
        try:
            list(self._threads.map(run, range(self._load.producers)))
        except KafkaException as error:
            raise RuntimeError(f"confluent-kafka: {error}") from None
        return Measured(time.perf_counter() - begin, [took for each in latencies for took in each])

    def _one(self, number: int, transaction: int, prefix: str, commit: bool) -> float:
        producer, load = self._producers[number], self._load
        begin = time.perf_counter()
        producer.begin_transaction()
        for record in range(load.records):
            value = b"%s%099d" % (prefix.encode(), transaction * load.records + record)
            producer.produce(TOPIC, value, partition=transaction % load.partitions)
        self._finish(producer, transaction)
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
        return time.perf_counter() - begin

    def _finish(self, producer: Producer, transaction: int) -> None:
        """Do what belongs to a transaction beside its records."""

    def process_ids(self) -> Sequence[int]:
        """None: the producers are threads of this process."""
        return ()

    def close(self) -> None:
        """Disconnect."""
        self._producers.clear()
        self._threads.shutdown()


class JavaClient:
    """The producer of Kafka's own client, in a JVM of its own; with ``group``, each transaction has an offset
    of that group."""

    def __init__(self, group: str = "") -> None:
        self._group = group
        self._process = JavaProcess()

    def open(self, server: Server) -> None:
        """Connect, and initialize the transactions."""
        self._process.ask("producer", bootstrap=server.bootstrap_servers, topic=TOPIC, id="bench")

    def transact(self, prefix: str, first: int, count: int, *, commit: bool = True) -> Measured:
        """Run the transactions."""
        options = {"prefix": prefix, "first": first, "count": count, "commit": str(commit).lower()}
        options |= {"group": self._group} if self._group else {}
        answer = self._process.ask("transact", **options)
        return Measured(answer["wall_ns"] / 1e9, [took / 1e9 for took in answer["took_ns"]])

    def process_ids(self) -> Sequence[int]:
        """The JVM."""
        return (self._process.process_id,)

    def close(self) -> None:
        """Disconnect, and end the JVM."""
        self._process.close()


class TransactionsSide:
    """One server, and a client of its own."""

    output = "records"

    def __init__(
        self, server: Server, client: Callable[[], Client], load: Load, count: int, *, warm_seconds: float
    ) -> None:
        self.name = server.name
        self._server, self._load, self._count = server, load, count
        self._warm_seconds = warm_seconds
        self._make_client = client
        self._client: Client | None = None
        self._next = 0

    def warm(self) -> None:
        """Start the server, and use it until compilers and caches have settled."""
        self._server.start()
        create_topic(self._server, self._load.partitions)
        self._client = client = self._make_client()
        client.open(self._server)
        client.transact(ABORTED, 0, self._load.producers, commit=False)
        deadline = time.monotonic() + self._warm_seconds
        while time.monotonic() < deadline:
            client.transact(WARM, 0, WARM_COUNT * self._load.producers)

    def process_ids(self) -> Sequence[int]:
        """The server, and what the client runs in."""
        assert self._client is not None
        return self._server.process_id, *self._client.process_ids()

    def run(self) -> Timing:
        """One round; CPU time and memory are those of the server."""
        assert self._client is not None
        process = self._server.process_id
        self._client.transact(WARM, 0, WARM_COUNT * self._load.producers)  # server and client were stopped
        cpu = cpu_seconds(process)
        measured = self._client.transact(ROUND, self._next, self._count)
        cpu = cpu_seconds(process) - cpu
        self._next += self._count
        return Timing(cpu, measured.wall, self._count, resident_bytes(process), latencies=measured.latencies)

    def digest(self) -> object:
        """The records of the rounds, in their order, as a read_committed consumer sees them."""
        assert self._client is not None
        # the coordinator takes the next transaction when the markers of the last one are written
        self._client.transact(WARM, 0, self._load.producers)
        found = messages(self._server, self._load.partitions)
        values = [message.value() for some in found for message in some]
        wanted = sorted(value for value in values if value[:1] == ROUND.encode())
        if any(value[:1] == ABORTED.encode() for value in values):
            raise DisagreementError(f"{self.name}: a read_committed consumer saw an aborted record")
        return len(wanted), hashlib.sha256(b"".join(wanted)).hexdigest()

    def close(self) -> None:
        """Stop the client, then the server."""
        try:
            if self._client is not None:
                self._client.close()
        finally:
            self._server.stop()

"""Transactions of one record in process: the broker and the loop of a host around it, without sockets and
threads, on real files. Each is waited for until it is durable and a read_committed consumer would get it. The
producer sees its record in the log, and commits without waiting for the answer to it.

Beside it the disk alone: as many bytes to two files of their own, and the three syncs that have to follow one
another, of the data, of the decision to commit, and of the marker.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.harness import DisagreementError, Timing
from bench.servers import fresh
from txnkafka._core.encode import encode_batch
from txnkafka.broker.broker import open_broker
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.broker.durability import Mode
from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import ProduceRequest, ProduceResult
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.topics_at_start import create_topics

__all__ = ["PARTITION", "Host", "InProcessSide", "ThreeSyncs"]

PARTITION = TopicPartition("bench", 0)
TRANSACTIONAL_ID = "bench"
TIMEOUT_MS = 60_000
# what a transaction of a record of 100 bytes appends: data, states (ONGOING, PREPARE, COMPLETE), marker
DATA_BYTES, STATE_BYTES, MARKER_BYTES = 170, 419, 78


class Host(CallerHost):
    """A broker with the topic ``bench``, run by this thread."""

    def __init__(self, directory: Path, durability: Mode = "fsync", partitions: int = 1) -> None:
        self.clock = SystemClock()
        config = BrokerConfig(transaction_state_log_num_partitions=1)
        broker = open_broker(
            LocalDataFiles(), str(directory), config, now_ms=self.clock.now_ms(), durability=durability
        )
        super().__init__(broker, self.clock.now_ms)
        create_topics(broker, {PARTITION.topic: partitions}, self.clock)

    def init_producer_id(self, transactional_id: str = TRANSACTIONAL_ID) -> Answer:
        """The id and epoch of a transactional producer; its coordinator is created if need be."""
        transactions, answers = self.broker.transactions, list[Answer]()
        if self.call(transactions.find, transactional_id) != ErrorCode.NONE:
            self.idle()
        self.call(transactions.init_producer_id, transactional_id, TIMEOUT_MS, -1, -1, answers.append)
        self.until(lambda: answers)
        return answers[0]

    def close(self) -> None:
        """Stop in order."""
        self.until(lambda: self.broker.is_idle)
        self.broker.close()


class InProcessSide:
    """The broker and one producer, which waits for each answer before it goes on."""

    name, output = "txnkafka", "transactions"

    def __init__(self, count: int) -> None:
        self._count = count
        self._sent = 0
        self._host: Host | None = None

    def warm(self) -> None:
        """Open a broker, and use it for a round."""
        self._host = Host(fresh("in-process") / "data")
        self._identity = self._host.init_producer_id()
        self.run()

    def run(self) -> Timing:
        """One round."""
        latencies = []
        wall, cpu = time.perf_counter(), time.thread_time()
        for _ in range(self._count):
            begin = time.perf_counter()
            self._transact()
            latencies.append(time.perf_counter() - begin)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        return Timing(cpu, wall, self._count, latencies=latencies)

    def _transact(self) -> None:
        host, identity = self._host, self._identity
        broker, now_ms = host.broker, host.clock.now_ms()
        batch = encode_batch(
            [(None, b"%0100d" % self._sent, now_ms)],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        produced, ended = list[ProduceResult](), list[Answer]()
        log = broker.logs[PARTITION]
        end = log.log_end_offset + 1
        request = ProduceRequest({PARTITION: memoryview(batch)}, TRANSACTIONAL_ID)
        host.call(broker.produce, request, lambda results: produced.append(results[PARTITION]))
        host.until(lambda: log.log_end_offset == end)  # durable it is before the decision is
        host.call(
            broker.transactions.end_txn, TRANSACTIONAL_ID, identity.producer_id, identity.producer_epoch,
            True, ended.append, client_transaction_version=2,
        )  # fmt: skip
        host.until(lambda: ended and log.last_stable_offset == log.log_end_offset)
        if produced[0].error != ErrorCode.NONE or ended[0].error != ErrorCode.NONE:
            raise RuntimeError(f"a transaction failed: {produced[0].error!r}, {ended[0].error!r}")
        self._identity = ended[0]
        self._sent += 1

    def digest(self) -> object:
        """None: the other side has no records. Every transaction has a record and a marker."""
        end = self._host.broker.logs[PARTITION].last_stable_offset
        if end != 2 * self._sent:
            raise DisagreementError(f"{self._sent} transactions, and the last stable offset is {end}")
        return None

    def close(self) -> None:
        """Close the broker."""
        if self._host is not None:
            self._host.close()


class ThreeSyncs:
    """`pwrite` and `fdatasync`."""

    name, output = "three fdatasyncs", "transactions"

    def __init__(self, count: int) -> None:
        self._count = count
        self._files: list[int] = []
        self._sizes = [0, 0]

    def warm(self) -> None:
        """Create the files, and write a round."""
        directory = fresh("three-syncs")
        self._files = [os.open(directory / name, os.O_RDWR | os.O_CREAT) for name in ("data", "state")]
        self.run()

    def run(self) -> Timing:
        """One round."""
        latencies = []
        wall, cpu = time.perf_counter(), time.thread_time()
        for _ in range(self._count):
            begin = time.perf_counter()
            for file, size in ((0, DATA_BYTES), (1, STATE_BYTES), (0, MARKER_BYTES)):
                self._sizes[file] += os.pwrite(self._files[file], bytes(size), self._sizes[file])
                os.fdatasync(self._files[file])
            latencies.append(time.perf_counter() - begin)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        return Timing(cpu, wall, self._count, latencies=latencies)

    def digest(self) -> object:
        """None: there is nothing to read."""
        return None

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)

"""The embedded broker with its clients, by the public API: transactions of one record on files and in memory,
the start of a process until its first commit, and threads that commit beside a thread that computes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING

from bench.harness import Comparison, Contest, DisagreementError, Limit, Timing
from bench.in_process import ThreeSyncs
from bench.servers import fresh, resident_bytes
from txnkafka import Broker, TopicPartition

if TYPE_CHECKING:
    from txnkafka import Producer

__all__ = ["contests"]

PARTITION = TopicPartition("bench", 0)
THREADS = 32
DURABLE_GOAL = 0.7  # of the rate of three fdatasyncs
MEMORY_MS = 0.1  # 10,000 transactions a second
START_MS, START_MB = 250, 45
COMMITS_NOTE = (
    "embedded transactions: `producer.transaction()` with one `send()` of 100 bytes, one after another in "
    "one thread; the commit returns when a read_committed consumer gets the record."
)
START_NOTE = (
    "embedded start: a new process, from its first import of txnkafka to the first commit in a new directory "
    "with the default settings, so the topic and the 50 partitions of __transaction_state are created; "
    "without the start of the interpreter. Memory is that of the process."
)
THREADS_NOTE = (
    f"threads: {THREADS} threads with a producer each commit transactions of one record on durable files, "
    "beside one thread that computes in Python all the time; latencies are from begin to the return of the "
    "commit."
)


class EmbeddedSide:
    """One producer of a broker that ``opened`` returns."""

    output = "transactions"

    def __init__(self, name: str, opened: Callable[[], Broker], count: int) -> None:
        self.name = name
        self._opened, self._count = opened, count
        self._sent = 0
        self._stack = ExitStack()

    def warm(self) -> None:
        """Open the broker, and use it for a round."""
        self._broker = self._stack.enter_context(self._opened())
        self._broker.admin().create_topic(PARTITION.topic, partitions=1)
        self._producer = self._stack.enter_context(self._broker.producer(transactional_id="bench"))
        self.run()

    def run(self) -> Timing:
        """One round."""
        wall, cpu = time.perf_counter(), time.process_time()
        latencies = [_commit(self._producer, b"%0100d" % (self._sent + i)) for i in range(self._count)]
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        self._sent += self._count
        return Timing(cpu, wall, self._count, latencies=latencies)

    def digest(self) -> object:
        """None: the other side has no records. Every transaction has a record and a marker."""
        _check(self._broker, {PARTITION: self._sent})
        return None

    def close(self) -> None:
        """Close the broker."""
        self._stack.close()


class ThreadsSide:
    """Many producers in threads, and a thread that computes."""

    name, output = "txnkafka", "transactions"

    def __init__(self, count: int) -> None:
        self._count = count
        self._rounds = 0
        self._stack = ExitStack()
        self._partitions = [TopicPartition(PARTITION.topic, number) for number in range(THREADS)]

    def warm(self) -> None:
        """Open the broker, and use it for a round."""
        self._broker = self._stack.enter_context(Broker.open(fresh("embedded-threads") / "data"))
        self._broker.admin().create_topic(PARTITION.topic, partitions=THREADS)
        self._producers = [
            self._stack.enter_context(self._broker.producer(transactional_id=f"bench-{number}"))
            for number in range(THREADS)
        ]
        self.run()

    def run(self) -> Timing:
        """One round: the latencies of all threads."""
        latencies: list[float] = []
        done = Event()
        computing = Thread(target=_compute, args=(done,))
        threads = [Thread(target=self._commit_all, args=(number, latencies)) for number in range(THREADS)]
        wall, cpu = time.perf_counter(), time.process_time()
        computing.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        done.set()
        computing.join()
        self._rounds += 1
        if len(latencies) != THREADS * self._count:
            raise DisagreementError(f"{len(latencies)} commits of {THREADS * self._count}")
        longest = f"longest {max(latencies) * 1000:.1f} ms"
        return Timing(cpu, wall, len(latencies), detail=longest, latencies=latencies)

    def _commit_all(self, number: int, latencies: list[float]) -> None:
        producer = self._producers[number]
        found = [_commit(producer, b"%0100d" % i, number) for i in range(self._count)]
        latencies.extend(found)

    def digest(self) -> object:
        """None: there is no other side. Every transaction has a record and a marker."""
        _check(self._broker, dict.fromkeys(self._partitions, self._rounds * self._count))
        return None

    def close(self) -> None:
        """Close the broker."""
        self._stack.close()


class EmbeddedStartSide:
    """A new process each round."""

    name, output = "txnkafka", "start"

    def __init__(self) -> None:
        self._directory = fresh("embedded-start")

    def warm(self) -> None:
        """Compile the modules."""
        self.run()

    def run(self) -> Timing:
        """Start, and commit."""
        path = self._directory / "data"
        command = [sys.executable, "-m", "bench.embedded_started", str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            memory = resident_bytes(process.pid)
        shutil.rmtree(path)
        return Timing(found["cpu"], found["wall"], 1, memory)

    def digest(self) -> object:
        """None: there is no other side."""
        return None

    def close(self) -> None:
        """Nothing is left."""


def contests(count: int, rounds: int) -> list[Contest]:
    """The contests, of ``count`` transactions a round."""

    def durable() -> Broker:
        return Broker.open(fresh("embedded") / "data")

    names = ("embedded, durable", "embedded, in memory")
    return [
        Contest(
            f"transactions of one record, {names[0]}",
            "transactions",
            lambda: count,
            lambda: [EmbeddedSide("txnkafka", durable, count), ThreeSyncs(count)],
            [Comparison("txnkafka", "three fdatasyncs", DURABLE_GOAL, by_wall=True)],
            rounds,
            COMMITS_NOTE,
        ),
        Contest(
            f"transactions of one record, {names[1]}",
            "transactions",
            lambda: count,
            lambda: [EmbeddedSide("txnkafka", Broker.in_memory, count)],
            [],
            rounds,
            COMMITS_NOTE,
            [Limit("txnkafka", MEMORY_MS, "ms, wall clock")],
        ),
        Contest(
            "embedded start to the first commit",
            "start",
            lambda: 1,
            lambda: [EmbeddedStartSide()],
            [],
            rounds,
            START_NOTE,
            [Limit("txnkafka", START_MS, "ms, wall clock"), Limit("txnkafka", START_MB, "MB")],
        ),
        Contest(
            f"{THREADS} threads that commit beside one that computes, embedded, durable",
            "transactions",
            lambda: THREADS * (count // 20),
            lambda: [ThreadsSide(count // 20)],
            [],
            min(rounds, 3),  # a round takes a minute
            THREADS_NOTE,
        ),
    ]


def _commit(producer: Producer, value: bytes, partition: int = 0) -> float:
    """Return the seconds of one transaction."""
    begin = time.perf_counter()
    with producer.transaction():
        producer.send(PARTITION.topic, value, partition=partition)
    return time.perf_counter() - begin


def _compute(done: Event) -> None:
    number = 0
    while not done.is_set():
        number = (number * 31 + 7) % 1_000_003


def _check(broker: Broker, sent: dict[TopicPartition, int]) -> None:
    with broker.consumer() as consumer:
        ends = consumer.end_offsets(list(sent))
    for partition, count in sent.items():
        if ends[partition] != 2 * count:
            raise DisagreementError(f"{partition}: {count} transactions, and the end is {ends[partition]}")

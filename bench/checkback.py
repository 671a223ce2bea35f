"""Check-back messages: ``txnkafka serve --resolve`` and RocketMQ's broker, each with its own clients.

Both sides send the same values; consumers read the visible messages in the end.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from bench.confluent import create_topic, messages
from bench.harness import Comparison, Contest, Side, Timing
from bench.java import MEMORY, JavaProcess
from bench.servers import SCRIPT_OPTIONS, Txnkafka, cpu_seconds, fresh, resident_bytes
from tests.conformance.maven import rocketmq_jars
from tests.conformance.rocketmq import FlushDiskType, RocketMQ

__all__ = ["FULL", "QUICK", "Sizes", "contests"]

ROUND, WARM = "r", "w"  # first characters of values
WARM_COUNT = 16
PRODUCERS = (1, 8)
DURABLE_GOAL, PAGE_CACHE_GOAL = 1.2, 0.8
VISIBLE_GOALS = {50: 1.0, 99: 0.5}
TWO_PHASE_GOAL = 0.8
# RocketMQ's own defaults, which the tests replace; small files would be rolled all the time
ROCKETMQ_SETTINGS = {
    "transactionTimeOut": 6_000,
    "transactionCheckInterval": 30_000,
    "transactionCheckMax": 15,
    "transactionOpBatchInterval": 3_000,
    "mappedFileSizeCommitLog": 256 << 20,
}
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
TWO_PHASE = {"transaction.two.phase.commit.enable": "true", "unstable.api.versions.enable": "true"}
# by the flush mode of RocketMQ's broker: durability of txnkafka, its goal, the name of the row
MODES: dict[FlushDiskType, tuple[str, float, str]] = {
    "SYNC_FLUSH": ("fsync", DURABLE_GOAL, "durable"),
    "ASYNC_FLUSH": ("page_cache", PAGE_CACHE_GOAL, "page cache"),
}
Verb = Literal["send", "send-visible", "transact", "two-phase"]

SENDS_NOTE = (
    "check-back sends: `send_message_in_transaction` of 100 bytes by each producer, one after another; the "
    "local transaction commits at once. Rates and percentiles are by the wall clock of the clients until the "
    "call returns: the half is stored, the decision is sent. CPU time and memory are those of the broker, "
    "until all messages are visible. Each producer of txnkafka is a process, each of RocketMQ a thread of a "
    "JVM. RocketMQ 5.4.0 has its default settings, and the JVM options of Kafka's start script."
)
VISIBLE_NOTE = (
    "check-back, half to visible: from the call of the send until a consumer in the same process has got the "
    "message, one after another; RocketMQ with SYNC_FLUSH."
)
TWO_PHASE_NOTE = (
    "two-phase commit: one producer of txnkafka prepares and completes transactions of one record; beside it "
    "one that commits them at once."
)


@dataclass(frozen=True)
class Sizes:
    """Messages of a round of each contest, rounds, and seconds of use before the first one."""

    rounds: int
    warm_seconds: float
    sends: int
    visible: int
    transactions: int


FULL = Sizes(rounds=9, warm_seconds=6, sends=1_600, visible=400, transactions=400)
QUICK = Sizes(rounds=3, warm_seconds=1, sends=160, visible=40, transactions=40)


class System(Protocol):
    """A broker and its clients."""

    name: str

    def start(self) -> None:
        """Start the broker, and connect the clients."""

    def send(self, prefix: str, first: int, count: int) -> list[float]:
        """Send values; the seconds of each."""

    def wait(self) -> None:
        """Wait until all sent values are visible."""

    def broker_id(self) -> int:
        """The process whose costs count."""

    def process_ids(self) -> Sequence[int]:
        """All processes."""

    def visible(self) -> tuple[int, str]:
        """The number and a digest of the visible values of the rounds."""

    def stop(self) -> None:
        """End all processes."""


class Ours:
    """``txnkafka serve``, and a process for each producer."""

    def __init__(
        self, verb: Verb = "send", producers: int = 1, durability: str = "fsync", name: str = "txnkafka"
    ) -> None:
        self.name = name
        self._verb, self._count = verb, producers
        settings = SETTINGS | (TWO_PHASE if verb == "two-phase" else {})
        is_checked = verb in ("send", "send-visible")
        self._server = Txnkafka(durability, settings, name=f"{name} {verb}", resolves=is_checked)
        self._clients: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        """Start everything."""
        self._server.start()
        create_topic(self._server, 1)
        program = [sys.executable, "-m", "bench.checkback_program", self._server.bootstrap_servers]
        for number in range(self._count):
            command = [*program, f"bench-{number}"]
            client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._clients.append(client)

    def send(self, prefix: str, first: int, count: int) -> list[float]:
        """An equal share by each producer, at the same time."""
        share = count // self._count
        firsts = range(first, first + self._count * share, share)
        return self._ask([f"{self._verb} {prefix} {each} {share}" for each in firsts])

    def wait(self) -> None:
        """Return when the resolver has moved all messages."""
        self._ask(["wait"] * self._count)

    def _ask(self, commands: Sequence[str]) -> list[float]:
        for client, command in zip(self._clients, commands, strict=True):
            assert client.stdin is not None
            client.stdin.write(command + "\n")
            client.stdin.flush()
        return [each for client in self._clients for each in _answer(client)]

    def broker_id(self) -> int:
        """The server."""
        return self._server.process_id

    def process_ids(self) -> Sequence[int]:
        """The server, and the producers."""
        return self._server.process_id, *(client.pid for client in self._clients)

    def visible(self) -> tuple[int, str]:
        """As a read_committed consumer gets them."""
        found = [message.value() or b"" for some in messages(self._server, 1) for message in some]
        wanted = sorted(value for value in found if value[:1] == ROUND.encode())
        return len(wanted), hashlib.sha256(b"".join(wanted)).hexdigest()

    def stop(self) -> None:
        """The clients first."""
        for client in self._clients:
            client.communicate()
        self._server.stop()


def _answer(client: subprocess.Popen[str]) -> list[float]:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise RuntimeError("a producer of check-back messages has ended")
    found: list[float] = json.loads(line)
    return found


class Theirs:
    """RocketMQ's name server and broker, and a JVM with a thread for each producer."""

    name = "rocketmq"

    def __init__(self, producers: int, flush: FlushDiskType, *, until_visible: bool = False) -> None:
        directory = fresh(f"rocketmq {flush}")
        self._count, self._options = producers, {"visible": "true"} if until_visible else {}
        self._rocketmq = RocketMQ(directory, flush, ROCKETMQ_SETTINGS, jvm_options=SCRIPT_OPTIONS)
        options = [*MEMORY, f"-Duser.home={directory}"]
        self._start_client = partial(
            JavaProcess, options, program="CheckBackSends", libraries=rocketmq_jars()
        )
        self._client: JavaProcess

    def start(self) -> None:
        """Start everything."""
        self._rocketmq.__enter__()
        self._client = self._start_client()
        self._client.ask("open", address=self._rocketmq.address, producers=self._count)

    def send(self, prefix: str, first: int, count: int) -> list[float]:
        """An equal share by each producer, at the same time."""
        answer = self._client.ask("send", prefix=prefix, first=first, count=count, **self._options)
        return [took / 1e9 for took in answer["took_ns"]]

    def wait(self) -> None:
        """Return when the consumer has got all messages."""
        self._client.ask("wait")

    def broker_id(self) -> int:
        """The broker."""
        return self._rocketmq.process_ids[0]

    def process_ids(self) -> Sequence[int]:
        """Both servers, and the clients."""
        return *self._rocketmq.process_ids, self._client.process_id

    def visible(self) -> tuple[int, str]:
        """As RocketMQ's consumer got them."""
        answer = self._client.ask("values", prefix=ROUND)
        return answer["count"], answer["sha256"]

    def stop(self) -> None:
        """The client first."""
        try:
            self._client.close()
        finally:
            self._rocketmq.__exit__()


class SystemSide:
    """A system, in rounds."""

    output = "values"

    def __init__(self, system: System, count: int, warm_seconds: float) -> None:
        self.name = system.name
        self._system, self._count, self._warm_seconds = system, count, warm_seconds
        self._next = 0
        self._is_started = False

    def warm(self) -> None:
        """Start the system, and use it until compilers and caches have settled."""
        self._is_started = True
        self._system.start()
        deadline = time.monotonic() + self._warm_seconds
        while True:
            self._send_warm()
            if time.monotonic() > deadline:
                return

    def _send_warm(self) -> None:
        self._system.send(WARM, 0, WARM_COUNT)
        self._system.wait()

    def process_ids(self) -> Sequence[int]:
        """All of the system."""
        return self._system.process_ids()

    def run(self) -> Timing:
        """One round."""
        self._send_warm()  # all processes were stopped
        broker = self._system.broker_id()
        cpu, wall = cpu_seconds(broker), time.perf_counter()
        latencies = self._system.send(ROUND, self._next, self._count)
        wall = time.perf_counter() - wall
        self._system.wait()
        cpu = cpu_seconds(broker) - cpu
        self._next += self._count
        return Timing(cpu, wall, len(latencies), resident_bytes(broker), latencies=latencies)

    def digest(self) -> object:
        """The visible values of all rounds."""
        return self._system.visible()

    def close(self) -> None:
        """End the system."""
        if self._is_started:
            self._system.stop()


def contests(sizes: Sizes) -> list[Contest]:
    """All of them."""
    sends = [_sends(sizes, flush, producers) for flush in MODES for producers in PRODUCERS]
    return [*sends, _visible(sizes), _two_phase(sizes)]


def _sends(sizes: Sizes, flush: FlushDiskType, producers: int) -> Contest:
    durability, goal, mode = MODES[flush]
    return _contest(
        f"check-back sends, {producers} producer{'s' if producers > 1 else ''}, {mode}",
        lambda: [Ours("send", producers, durability), Theirs(producers, flush)],
        [Comparison("txnkafka", "rocketmq", goal, by_wall=True), Comparison("txnkafka", "rocketmq")],
        sizes,
        sizes.sends,
        SENDS_NOTE,
    )


def _visible(sizes: Sizes) -> Contest:
    return _contest(
        "check-back, half to visible, durable",
        lambda: [Ours("send-visible"), Theirs(1, "SYNC_FLUSH", until_visible=True)],
        [Comparison("txnkafka", "rocketmq", goal, percentile=each) for each, goal in VISIBLE_GOALS.items()],
        sizes,
        sizes.visible,
        VISIBLE_NOTE,
    )


def _two_phase(sizes: Sizes) -> Contest:
    return _contest(
        "check-back, two-phase commit of one record, durable",
        lambda: [Ours("two-phase", name="two-phase"), Ours("transact", name="one phase")],
        [Comparison("two-phase", "one phase", TWO_PHASE_GOAL, by_wall=True)],
        sizes,
        sizes.transactions,
        TWO_PHASE_NOTE,
    )


def _contest(
    name: str,
    systems: Callable[[], Sequence[System]],
    comparisons: Sequence[Comparison],
    sizes: Sizes,
    count: int,
    note: str,
) -> Contest:
    def sides() -> Sequence[Side]:
        return [SystemSide(system, count, sizes.warm_seconds) for system in systems()]

    return Contest(name, "transactions", lambda: count, sides, comparisons, sizes.rounds, note)

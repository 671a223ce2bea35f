"""Two copiers of one group and the server are killed and paused, at random, with two readers beside them."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.conformance.copiers import COPIERS, Copier, Work, Writer
from tests.conformance.copy_history import Copied, Seen, wrong
from tests.server.killed_server import KilledServer
from tests.server.kills import findings
from tests.server.transaction_load import Reader
from txnkafka import LogDir
from txnkafka import TopicPartition as Partition

__all__ = ["GROUP", "PARTITIONS", "SOURCE", "TARGET", "committed_offsets", "copy_under_kills"]

SOURCE, TARGET, GROUP, PARTITIONS = "copied", "copies", "copiers", 4
PER_SECOND = 150  # records
BETWEEN = (0.2, 2.5)  # seconds from one event to the next
LONGER_THAN_A_SESSION = (2.3, 4.5)  # seconds; sessions of the copiers are 2 s
PATIENCE = 120.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class Disturber:
    """What happens to the server and to the copiers, from a seed; ``events`` counts it."""

    def __init__(self, rng: random.Random, server: KilledServer, copiers: list[Copier]) -> None:
        self.events: Counter[str] = Counter()
        self._rng, self._server, self._copiers = rng, server, copiers
        self._happen = {
            "server killed": (self._kill_server, 4),
            "server paused": (self._pause_server, 2),
            "copier killed": (self._kill_copier, 4),
            "copier paused": (self._pause_copier, 3),
            "server killed under a paused copier": (self._kill_under_pause, 2),
            "server killed in its start": (self._kill_start, 1),
        }

    def run(self, seconds: float) -> None:
        """Do something now and then. In the end, all of them run."""
        deadline = time.monotonic() + seconds
        names, weights = list(self._happen), [weight for _, weight in self._happen.values()]
        while time.monotonic() < deadline:
            time.sleep(self._rng.uniform(*BETWEEN))
            (name,) = self._rng.choices(names, weights)
            self._happen[name][0]()
            self.events[name] += 1
            for copier in self._copiers:
                copier.start()

    def _kill_server(self) -> None:
        self._server.kill()
        if self._rng.random() < 0.3:
            time.sleep(self._rng.uniform(*LONGER_THAN_A_SESSION))
        self._server.start()

    def _kill_start(self) -> None:
        self._server.kill()
        self._server.kill_a_start()
        self._server.start()

    def _pause_server(self) -> None:
        self._server.pause(self._rng.uniform(*LONGER_THAN_A_SESSION))

    def _kill_copier(self) -> None:
        copier = self._rng.choice(self._copiers)
        copier.kill()
        if self._rng.random() < 0.5:
            time.sleep(self._rng.uniform(*LONGER_THAN_A_SESSION))

    def _pause_copier(self) -> None:
        copier = self._rng.choice(self._copiers)
        copier.pause()
        time.sleep(self._rng.uniform(*LONGER_THAN_A_SESSION))
        copier.resume()

    def _kill_under_pause(self) -> None:
        copier = self._rng.choice(self._copiers)
        copier.pause()
        time.sleep(self._rng.uniform(*LONGER_THAN_A_SESSION) / 2)
        self._kill_server()
        time.sleep(self._rng.uniform(*LONGER_THAN_A_SESSION) / 2)
        copier.resume()


def copy_under_kills(data: Path, *, seconds: float, seed: int) -> str:
    """Run so long, let the copiers finish, and stop the server. Raises AssertionError with what is wrong;
    returns counts."""
    rng = random.Random(seed)
    options = [word for pair in SETTINGS.items() for word in ("--config", "=".join(pair))]
    options += [word for topic in (SOURCE, TARGET) for word in ("--create-topic", f"{topic}:{PARTITIONS}")]
    server = KilledServer(data, rng, *options)
    copiers: list[Copier] = []
    readers: list[Reader] = []
    try:
        server.start()
        levels = ("read_committed", "read_uncommitted")
        readers = [Reader(server.address, TARGET, PARTITIONS, level) for level in levels]
        writer = Writer(server.address, SOURCE, PARTITIONS, seed, PER_SECOND)
        copiers = [Copier(name, Work(server.address, SOURCE, TARGET, GROUP), data.parent) for name in COPIERS]
        for each in (*readers, writer, *copiers):
            each.start()
        disturber = Disturber(rng, server, copiers)
        disturber.run(seconds)
        _finish(server.address, writer, copiers)
        offsets = committed_offsets(server.address)
        for reader in readers:
            reader.end()
        assert server.stop() == 0
        assert not re.search(r"\berror\b|Traceback", server.log()), server.log()[-4000:]
    finally:
        for each in copiers:
            each.kill()
        server.close()
        for reader in readers:
            reader.close()
    _check(data, writer, copiers, readers, offsets)
    return _report(seed, seconds, disturber, writer, copiers)


def _finish(server: str, writer: Writer, copiers: list[Copier]) -> None:
    """Wait until everything is copied, then let the copiers leave."""
    writer.end()
    assert not writer.failures, writer.failures[:5]
    ends = {partition: len(values) for partition, values in writer.sent.items()}
    deadline = time.monotonic() + PATIENCE
    while (found := committed_offsets(server)) != ends:
        assert time.monotonic() < deadline, f"copied up to {found} of {ends}\n{_logs(copiers)}"
        for copier in copiers:
            copier.start()
        time.sleep(0.2)
    for copier in copiers:
        copier.end()


def _logs(copiers: list[Copier]) -> str:
    return "\n".join(f"{copier.name}:\n{copier.log()}" for copier in copiers)


def committed_offsets(server: str) -> dict[int, int]:
    """Of the group, those pending in a transaction aside."""
    options = {
        "bootstrap.servers": server,
        "group.id": GROUP,
        "isolation.level": "read_uncommitted",
        "log_level": 0,
    }
    consumer, deadline = Consumer(options), time.monotonic() + PATIENCE
    wanted = [TopicPartition(SOURCE, partition) for partition in range(PARTITIONS)]
    try:
        while True:
            try:
                found = consumer.committed(wanted, 10)
                return {each.partition: max(each.offset, 0) for each in found}
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    finally:
        consumer.close()


def _check(
    data: Path, writer: Writer, copiers: list[Copier], readers: list[Reader], offsets: Mapping[int, int]
) -> None:
    for reader in readers:
        assert not reader.failures, reader.failures
    log_dir = LogDir(str(data))
    first, second = (
        {
            partition: [Seen(*both, at) for both, at in zip(records, reader.times[partition], strict=True)]
            for partition, records in reader.records.items()
        }
        for reader in readers
    )
    run = Copied(
        sent=writer.sent,
        inputs=_records(log_dir, SOURCE, "read_committed"),
        copiers={copier.name: copier.transactions() for copier in copiers},
        committed=_records(log_dir, TARGET, "read_committed"),
        everything=_records(log_dir, TARGET, "read_uncommitted"),
        committed_reader=first,
        everything_reader=second,
        offsets=offsets,
    )
    found = list(wrong(run))
    assert not found, "\n".join(found[:20])
    written = {
        partition: log_dir.committed_offsets()[GROUP, Partition(SOURCE, partition)].offset
        for partition in run.inputs
    }
    assert written == dict(offsets)
    for copier in copiers:
        assert any(each.outcome.value == "committed" for each in run.copiers[copier.name]), copier.log()
    assert not (faults := findings(data)), faults


def _records(log_dir: LogDir, topic: str, isolation_level: str) -> dict[int, list[tuple[int, str]]]:
    return {
        partition: [
            (record.offset, (record.value or b"").decode())
            for record in log_dir.partition(topic, partition).records(isolation_level=isolation_level)
        ]
        for partition in range(PARTITIONS)
    }


def _report(seed: int, seconds: float, disturber: Disturber, writer: Writer, copiers: list[Copier]) -> str:
    copied = sum(len(values) for values in writer.sent.values())
    lines = [f"{copied} records copied in {seconds:.0f} s, seed {seed}: {json.dumps(disturber.events)}"]
    return "\n".join([*lines, *(copier.report() for copier in copiers)])

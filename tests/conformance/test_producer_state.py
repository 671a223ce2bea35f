"""The producer table against Kafka's own log: random appends, the same answers, the same snapshot.

Both get the same requests: batches that follow, repeat, skip and go back, in old and new epochs, with and
without verification, end markers of all transaction versions, and restarts. Kafka's log is asked itself
(``KafkaPartition.java``); on our side the table and the verifications are put together as a log does.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.append_answer import repeats_ended
from tests.conformance.maven import kafka_jars
from tests.conftest import LONG
from tests.models.headers import data, encode, marker
from txnkafka._core.producer_table import CLIENT, COORDINATOR, ProducerTable
from txnkafka._core.scan import BatchHeader
from txnkafka._core.validate import read_batch
from txnkafka.errors import InvalidProducerEpochError
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.log.verification import NO_GUARD, VerificationState

PROGRAM = Path(__file__).with_name("KafkaPartition.java")
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
LOGS, STEPS = (400 if LONG else 40), 150
LARGEST = 2**31 - 1
ORIGINS = {CLIENT: "CLIENT", COORDINATOR: "COORDINATOR"}
NEVER = 2**62
REFUSED = (45, 48)


class Kafka:
    """The program, a line for a line."""

    def __init__(self) -> None:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", quiet, "-cp", f"{kafka_jars()}/*", str(PROGRAM)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    process = Kafka()
    yield process
    process.close()


class Ours:
    """What a log has beside its files: the table, verifications, the end offset."""

    def __init__(self) -> None:
        self.table, self.verifications = ProducerTable(), VerificationState()
        self.end_offset = 0

    def append(self, header: BatchHeader, origin: int, version: int, guard: int) -> tuple[int, ...]:
        pending = self.verifications.pending(header.producer_id)
        checked = self.table.check(
            read_batch(encode([header])), origin, version,
            verified=pending is not None and pending.matches(guard),
            lowest_sequence=None if pending is None else pending.lowest_sequence,
            supports_epoch_bump=pending is not None and pending.supports_epoch_bump,
        )  # fmt: skip
        if checked.is_duplicate:
            return 0, checked.first_offset, checked.last_offset, checked.timestamp, self.unstable()
        if checked.code:
            return checked.code, -1, -1, -1, self.unstable()
        first_offset, self.end_offset = self.end_offset, self.end_offset + header.count
        final = header._replace(base_offset=first_offset, last_offset=self.end_offset - 1)
        batch = read_batch(encode([final]))
        self.table.append(batch)
        self.verifications.on_append(batch)
        return 0, first_offset, self.end_offset - 1, -1, self.unstable()

    def unstable(self) -> int:
        offset = self.table.first_unstable_offset
        return -1 if offset is None else offset

    def restart(self) -> None:
        self.table.load(self.table.snapshot(), now_ms=0, expiration_ms=NEVER)
        self.verifications.clear()


class Story:
    """One random log, told to both."""

    def __init__(self, kafka: Kafka, seed: int) -> None:
        self.kafka, self.ours, self.random = kafka, Ours(), random.Random(seed)
        self.now_ms = time.time_ns() // 1_000_000
        self.guards: dict[int, int] = {0: NO_GUARD}  # Kafka's number → ours
        self.told: list[str] = []
        self.seen: Counter[int | str] = Counter()
        kafka.ask("reset")

    def tell(self) -> None:
        kinds = (self.produce,) * 12 + (self.end,) * 5 + (self.verify,) * 3 + (self.watermark,) * 2
        for _ in range(STEPS):
            self.random.choice((*kinds, self.commit_offsets, self.restart))()
        assert self.snapshots_agree(), self.told

    def same(self, what: str, theirs: str, ours: tuple[int, ...]) -> None:
        self.told.append(f"{what} -> {theirs}")
        assert tuple(map(int, theirs.split())) == ours, self.told[-40:]

    def snapshots_agree(self) -> bool:
        theirs = sorted(parse_producer_snapshot(bytes.fromhex(self.kafka.ask("snapshot"))))
        return theirs == self.ours.table.entries()

    def producer(self) -> tuple[int, int]:
        """A producer id, and mostly an epoch near the one it is at."""
        producer_id = self.random.choice((1, 1, 2, 3, 2**40))
        entry = self.ours.table.entry(producer_id)
        epoch = 0 if entry is None else entry.producer_epoch + self.random.choice((0,) * 9 + (-1, 1, 1))
        return producer_id, self.random.choice((min(max(epoch, 0), 32767),) * 30 + (32767,))

    def sequence(self, producer_id: int) -> tuple[int, int]:
        """A base sequence and the number of records: the next, one of the last batches, or another."""
        known = self.ours.table.known_batches(producer_id)
        chance = self.random.random()
        if known and chance < 0.25:
            again = self.random.choice(known)
            return max(again.first_sequence, 0), again.last_offset - again.first_offset + 1
        following = (known[-1].last_sequence + 1) & LARGEST if known else 0
        jump = self.random.choice((0, 1, 2, -1, LARGEST - 1)) if chance < 0.4 else 0
        return max(following + jump, 0) & LARGEST, self.random.randint(1, 3)

    def append(self, header: BatchHeader, origin: int, version: int = -1) -> None:
        number = self.random.choice((0, *self.guards, max(self.guards)))
        # offsets are the log's to give
        asked = header._replace(base_offset=0, last_offset=header.count - 1)
        before, guard = self.ours.end_offset, self.guards[number]
        theirs = self.kafka.ask("append", ORIGINS[origin], version, number, encode([asked]).hex())
        code, offset = map(int, theirs.split()[:2])
        is_duplicate = not code and offset < before
        producer = self.ours.table.entry(header.producer_id)
        ours = self.ours.append(asked, origin, version, guard)
        if is_duplicate and ours[0] in REFUSED and repeats_ended(header.attributes, producer, offset):
            self.seen["of an ended transaction"] += 1
            return
        self.same(f"append {header} {ORIGINS[origin]} {version} {number}", theirs, ours)
        self.seen[ours[0] or ("duplicate" if self.ours.end_offset == before else 0)] += 1

    def produce(self) -> None:
        producer_id, epoch = self.producer()
        sequence, records = self.sequence(producer_id)
        transactional = self.random.random() < 0.7
        timestamp = self.now_ms + self.random.randint(0, 9)
        header = data(
            producer_id, epoch, 0, sequence=sequence, last_offset=records - 1, transactional=transactional,
            max_timestamp=timestamp, base_timestamp=timestamp,
        )  # fmt: skip
        if transactional and self.random.random() < 0.6:
            self.verify(producer_id, epoch, sequence)
        self.append(header, CLIENT)

    def commit_offsets(self) -> None:
        producer_id, epoch = self.producer()
        times = {"max_timestamp": self.now_ms, "base_timestamp": self.now_ms}
        transactional = self.random.random() < 0.5
        header = data(producer_id, epoch, 0, sequence=-1, transactional=transactional, **times)
        self.append(header, COORDINATOR)

    def end(self) -> None:
        producer_id, epoch = self.producer()
        version = self.random.choice((-1, 0, 1, 1, 2, 2, 2))
        epoch = min(epoch + self.random.choice((0, version == 2)), 32767)
        header = marker(
            producer_id, epoch, 0, self.random.randrange(2),
            coordinator_epoch=self.random.choice((0, 1, 1, 2)), max_timestamp=self.now_ms,
        )  # fmt: skip
        self.append(header, COORDINATOR, version)

    def verify(self, producer_id: int = -1, epoch: int = 0, sequence: int = 0) -> None:
        if producer_id < 0:
            producer_id, epoch = self.producer()
            sequence = self.random.randrange(9)
        bump = self.random.random() < 0.5
        code, number = self.kafka.ask("verify", producer_id, epoch, sequence, str(bump).lower()).split()
        expected = pytest.raises(InvalidProducerEpochError) if code == "47" else contextlib.nullcontext()
        with expected:
            guard = self.ours.verifications.maybe_start(
                self.ours.table, producer_id, epoch, sequence, supports_epoch_bump=bump, now_ms=self.now_ms
            )
            assert (code, self.guards.setdefault(int(number), guard)) == ("0", guard), self.told[-40:]

    def watermark(self) -> None:
        offset = self.random.randint(0, self.ours.end_offset)
        self.ours.table.on_high_watermark(offset)
        self.same(f"watermark {offset}", self.kafka.ask("watermark", offset), (self.ours.unstable(),))

    def restart(self) -> None:
        """Kafka takes the high watermark for the end of the log then."""
        if self.random.random() < 0.2:
            self.kafka.ask("restart")
            self.ours.restart()
            self.guards = {0: NO_GUARD}
            assert self.snapshots_agree(), self.told[-40:]


def test_random_appends(kafka: Kafka) -> None:
    seen: Counter[int | str] = Counter()
    for number in range(LOGS):
        story = Story(kafka, SEED * 1_000_003 + number)
        story.tell()
        seen += story.seen
    print(f"{LOGS} logs from seed {SEED}: {dict(seen)}")
    kinds = (0, "duplicate", "of an ended transaction", 45, 47, 48, 52, -1)
    assert min(seen[each] for each in kinds) >= LOGS // 4, seen

"""What Apache Kafka believes of a directory that was stopped cleanly, and reads right after a hand-over."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker
from tests.unit.broker.node import NOW, Node
from tests.unit.handover.stories import (
    COMMITTED_VALUES,
    Lie,
    begins_later,
    empty,
    nothing,
    of_another_producer,
    positions_of_the_next_entry,
    story,
    timestamps_too_small,
    told,
    without_producers,
    without_the_first_abort,
    without_the_last_entry,
    without_transactions,
)
from txnkafka import LogDir
from txnkafka.coordinator.registry.metadata_records import config
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.error_codes import ErrorCode
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner

SECONDS = 30
PROPERTIES = {"producer.id.expiration.ms": str((1 << 31) - 1), "transaction.max.timeout.ms": "900000"}
BELIEVED: list[Lie] = [
    (".index", positions_of_the_next_entry),
    (".timeindex", timestamps_too_small),
    (".timeindex", without_the_last_entry),
    (".timeindex", empty),
    (".txnindex", without_the_first_abort),
    (".txnindex", begins_later),
    (".txnindex", of_another_producer),
    (".txnindex", empty),
    (".txnindex", nothing),
    (".snapshot", without_producers),
    (".snapshot", without_transactions),
    (".snapshot", nothing),
]
"""Each lie is told in all files of its kind in a partition of its own."""
FILES = LocalDataFiles()


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is not there yet."""
    broker = KafkaBroker(tmp_path, PROPERTIES, is_static=True)
    yield broker
    broker.stop()


class Reader:
    """Kafka's consumer on one partition, one question at a time."""

    def __init__(self, kafka: KafkaBroker, partition: int) -> None:
        self._partition = partition
        options = {
            "bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "log_level": 0,
            "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "error",
            "fetch.wait.max.ms": 5,
        }  # fmt: skip
        self._consumer = Consumer(options)

    def values(self) -> list[bytes | None]:
        """All committed values."""
        self._consumer.assign([Where("t", self._partition, 0)])
        found: list[bytes | None] = []
        while not (message := self._message()).error():
            found.append(message.value())
        return found

    def offset_at(self, offset: int) -> int:
        """The offset of the first record that is read from an offset on; -1 at the end."""
        self._consumer.assign([Where("t", self._partition, offset)])
        message = self._message()
        return -1 if message.error() else int(message.offset() or 0)

    def offset_of_time(self, timestamp: int) -> int:
        """The first offset at or after a time."""
        (found,) = self._consumer.offsets_for_times([Where("t", self._partition, timestamp)], SECONDS)
        return int(found.offset)

    def close(self) -> None:
        self._consumer.close()

    def _message(self):  # type: ignore[no-untyped-def]
        message = self._consumer.poll(SECONDS)
        assert message is not None, "nothing comes any more"
        return message


def right_offsets(path: str) -> dict[int, int]:
    """From each offset of the story on, the next committed record's, by our reader of the undamaged log."""
    view = LogDir(path).partition("t", 0)
    committed = [record.offset for record in view.records()]
    wanted = range(0, view.last_stable_offset, 3)
    return {offset: next((each for each in committed if each >= offset), -1) for offset in wanted}


def right_times(path: str) -> dict[int, int]:
    view = LogDir(path).partition("t", 0)
    found = {time: view.offset_for_timestamp(time) for time in range(NOW + 500, NOW + 11_000, 1000)}
    return {time: -1 if where is None else where.offset for time, where in found.items()}


def wrong_answers(kafka: KafkaBroker, offsets: dict[int, int], times: dict[int, int]) -> dict[int, list[str]]:
    """What Kafka's consumer gets wrong, by partition."""
    wrong: dict[int, list[str]] = {}
    for partition in range(len(BELIEVED)):
        reader, found = Reader(kafka, partition), list[str]()
        values = reader.values()
        if values != COMMITTED_VALUES:
            found.append(f"shows {sorted(set(values) ^ set(COMMITTED_VALUES))[:3]}")
        found += [f"begins at {got} instead of {right}" for offset, right in offsets.items()
                  if (got := reader.offset_at(offset)) != right]  # fmt: skip
        found += [f"finds {got} at {time}, not {right}" for time, right in times.items()
                  if (got := reader.offset_of_time(time)) != right]  # fmt: skip
        reader.close()
        if found:
            wrong[partition] = found
    return wrong


def test_kafka_believes_derived_files_and_reads_right_after_a_hand_over(kafka: KafkaBroker) -> None:
    path = str(kafka.log_dir)
    story(FILES, path, partitions=len(BELIEVED))
    offsets, times = right_offsets(path), right_times(path)
    for partition, lie in enumerate(BELIEVED):
        assert list(told(FILES, lie, path, f"t-{partition}")), lie
    spared = kafka.log_dir.with_name("spared")
    shutil.copytree(kafka.log_dir, spared)

    kafka.start()
    wrong = wrong_answers(kafka, offsets, times)
    kafka.stop()
    assert sorted(wrong) == list(range(len(BELIEVED)))

    shutil.rmtree(kafka.log_dir)
    spared.rename(kafka.log_dir)
    now_ms = SystemClock().now_ms()
    assert not check(FILES, path, Owner.KAFKA, now_ms=now_ms).is_ready
    assert hand_over(FILES, path, Owner.KAFKA, now_ms=now_ms).is_ready
    kafka.start()
    assert wrong_answers(kafka, offsets, times) == {}


def test_a_directory_that_was_only_formatted(tmp_path: Path) -> None:
    """It has no log yet, the voter is in a checkpoint, and nobody has stopped it cleanly. Levels that Apache
    Kafka 4.3 does not know are reported, and do not prevent the hand-over."""
    formatted = KafkaBroker(tmp_path)
    formatted.format()
    now_ms = SystemClock().now_ms()
    for to in (Owner.TXNKAFKA, Owner.KAFKA):
        report = hand_over(FILES, str(formatted.log_dir), to, now_ms=now_ms)
        found = {(each.severity, each.code) for each in report.findings}
        assert report.is_ready
        assert found <= {("warning", "needs-kafka-4.4")}
    quorum = [line for line in report.settings if line.startswith("controller.quorum")]
    assert [line.partition("=")[0] for line in quorum] == ["controller.quorum.bootstrap.servers"]
    formatted.start()
    formatted.stop()
    assert check(FILES, str(formatted.log_dir), Owner.TXNKAFKA, now_ms=now_ms).is_ready


def _foreign(path: Path) -> None:
    (path / "t-0" / "abc.snapshot").touch()


def _copied(path: Path) -> None:
    shutil.copytree(path / "t-0", path / f"t-0.{'0' * 32}-future")


def _without_a_field(path: Path) -> None:
    state = path / "__cluster_metadata-0" / "quorum-state"
    state.write_text(state.read_text().replace('"votedId": -1, ', ""))


def _nothing(path: Path) -> None:
    """The setting is enough."""


@pytest.mark.parametrize(
    ("setting", "damage", "code", "says"),
    [
        (("segment.bytes", "1000"), _nothing, "setting-refused", r"segment\.bytes"),
        (("retention.ms", "1_000"), _nothing, "setting-refused", "Not a number of type LONG"),
        (("cleanup.policy", "delete,"), _nothing, "setting-refused", "values must not be empty"),
        (None, _foreign, "foreign-file", "NumberFormatException"),
        (None, _copied, "future-directory", "Directory not empty"),
        (None, _without_a_field, "bad-quorum-state", "unable to locate field 'votedId'"),
    ],
)
def test_what_keeps_kafka_from_starting(
    kafka: KafkaBroker, setting: tuple[str, str] | None, damage: Callable[[Path], None], code: str, says: str
) -> None:
    """A topic with small segments, as brokers before Kafka 4 took them, and more."""
    node = Node(FILES, str(kafka.log_dir), now_ms=SystemClock().now_ms())
    assert node.create("t", 1) == ErrorCode.NONE
    if setting is not None:
        node.broker.metadata.append([config(2, "t", *setting)], node.now_ms)
    node.close()
    damage(kafka.log_dir)
    report = check(FILES, str(kafka.log_dir), Owner.KAFKA, now_ms=SystemClock().now_ms())
    assert [finding.code for finding in report.findings] == [code]
    with pytest.raises(RuntimeError, match="did not start"):
        kafka.start()
    assert any(re.search(says, line) for line in kafka.said())

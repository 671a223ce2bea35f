"""Transactions that Apache Kafka 4.4.0 completed at a clean stop without their end markers: ``serve`` and
``handover`` write the markers that the coordinator's log decides, also for pending offsets of groups.

The outcomes are those that Kafka's coordinator described; which producer wrote a record is in the output of
its dump tool.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Where

from tests.golden.cases import case
from tests.server.serving import Serving
from txnkafka import LogDir, TopicPartition
from txnkafka.env import LocalDataFiles
from txnkafka.handover.hand_over import check, hand_over
from txnkafka.handover.report import Owner
from txnkafka.logdir.verify import verify

CASE = case("kafka_4_4_no_markers")
STATES = {each["transactional_id"]: each["state"] for each in CASE.cluster["list_transactions"]}
OWNERS = {each["producer_id"]: each["transactional_id"] for each in CASE.cluster["list_transactions"]}
PARTITIONS = [each for each in CASE.partitions() if each.topic == "orders"]
FILES, SECONDS = LocalDataFiles(), 30


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CASE.logs, tmp_path / "logs"))


def decided(partition: TopicPartition) -> list[bytes | None]:
    """Return the values that are committed once each completed transaction has its end marker."""
    producers = {
        batch["lastOffset"]: batch["producerId"]
        for name, table in CASE.dump(partition).items()
        if name.endswith(".log")
        for batch in (dict(zip(table["columns"], row, strict=True)) for row in table["rows"])
    }
    found: list[bytes | None] = []
    for record in CASE.expected_records(partition, "read_uncommitted"):
        last_offset = min(offset for offset in producers if offset >= record["offset"])
        state = STATES.get(OWNERS.get(producers[last_offset], ""), "not transactional")
        if state == "Ongoing":
            break
        if state != "CompleteAbort":
            found.append(None if record["value"] is None else base64.b64decode(record["value"]))
    return found


def committed_offsets() -> Iterator[tuple[str, int | None]]:
    """Yield each group whose transaction is completed, with the offset that it then has."""
    for name, state in STATES.items():
        if state.startswith("Complete"):
            number = int(name.removeprefix("stop-"))
            yield f"stop-group-{number}", number + 1 if state == "CompleteCommit" else None


def check_ended(path: Path) -> None:
    """Compare the files with the outcomes of the coordinator."""
    log_dir = LogDir(str(path))
    for partition in PARTITIONS:
        values = [record.value for record in log_dir.partition(*partition).records()]
        assert values == decided(partition), partition
    found, pending = log_dir.committed_offsets(), {group for group, _ in log_dir.pending_offsets()}
    for group, offset in committed_offsets():
        assert group not in pending
        row = found.get((group, PARTITIONS[0]))
        assert (None if row is None else row.offset) == offset, group
    assert verify(log_dir).findings == []


def test_the_case_has_both_outcomes_and_committed_data_is_held_back() -> None:
    """Also in the partition of offsets. No transaction is prepared: that one would get its marker anyway."""
    assert {"CompleteCommit", "CompleteAbort"} == set(STATES.values()) - {"Ongoing"}
    log_dir = LogDir(str(CASE.logs))
    visible = {each: list(log_dir.partition(*each).records()) for each in PARTITIONS}
    assert any(len(records) < len(decided(each)) for each, records in visible.items())
    offsets = dict(committed_offsets())
    pending = {group for group, _ in log_dir.pending_offsets()} & offsets.keys()
    assert any(offsets[group] is not None for group in pending)


@pytest.mark.parametrize("owner", list(Owner))
def test_handover_writes_the_decided_markers(copy: Path, owner: Owner) -> None:
    now_ms = CASE.recorded_at_ms
    assert not check(FILES, str(copy), owner, now_ms=now_ms).is_ready
    done = hand_over(FILES, str(copy), owner, now_ms=now_ms)
    assert done.is_ready
    check_ended(copy)
    assert check(FILES, str(copy), owner, now_ms=now_ms).is_ready


def test_serve_writes_the_decided_markers(copy: Path) -> None:
    with Serving(copy) as serving:
        for group, offset in committed_offsets():
            consumer = Consumer({"bootstrap.servers": serving.address, "group.id": group, "log_level": 0})
            (found,) = consumer.committed([Where("orders", 0)], SECONDS)  # waits while an offset is pending
            consumer.close()
            assert found.offset == (-1001 if offset is None else offset), group
        assert serving.stop() == 0
    check_ended(copy)

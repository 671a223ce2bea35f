"""The coordinators' logs have limits of their own, which may change while the broker runs."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest

from tests.unit.broker.node import Node, Producer
from tests.unit.broker.test_config_alteration import BROKER, DELETE, SET, TOPIC, alter
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.coordinator.group.offsets import group_offsets
from txnkafka.coordinator.group.offsets.group_offsets import GroupOffsets
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

DAY_MS = 24 * 3_600_000
LOGGER = "txnkafka.broker"


def limited(node: Node, topic: str, limit: int) -> None:
    assert alter(node, TOPIC, topic, ("max.message.bytes", SET, str(limit))) == "NONE"


def with_ids(count: int, *, name: str = "id-{:03}") -> Node:
    node = Node(transaction_state_log_num_partitions=1)
    for number in range(count):
        Producer(node, name.format(number))
    return node


def ids(node: Node) -> int:
    return len(node.broker.transactions.coordinator.partitions[0].metadata)


def with_groups(*, limit: int | None = 1_000, partitions: int = 1) -> Node:
    node = Node(offsets_topic_num_partitions=1)
    node.create("t", partitions)
    node.request(node.broker.groups.find, "g")
    node.settle()
    if limit is not None:
        limited(node, CONSUMER_OFFSETS_TOPIC, limit)
    return node


def commit(node: Node, group: str, partition: int = 0, topic: str = "t") -> ErrorCode:
    where = TopicPartition(topic, partition)
    wanted = {where: OffsetToCommit(5)}
    call = partial(node.broker.groups.commit, version=9)
    answer: dict[TopicPartition, ErrorCode] = node.call(call, Identity(group, -1, "", None), wanted)
    return answer[where]


def fetched(node: Node, group: str, partition: int = 0) -> int:
    answers: list[Any] = []
    where = TopicPartition("t", partition)
    node.request(
        node.broker.groups.fetch, group, [where], lambda *each: answers.append(each), require_stable=False
    )
    node.settle()
    ((_, found),) = answers
    offset: int = found[where].offset
    return offset


def groups(node: Node) -> int:
    return len(node.broker.groups.listed())


def deleted(node: Node, group: str) -> ErrorCode:
    answers: list[ErrorCode] = []
    node.request(node.broker.groups.delete, group, answers.append)
    node.settle()
    return answers[0]


def wait(node: Node, days: int) -> None:
    for _ in range(2 * days):
        node.wait(DAY_MS // 2)


@pytest.mark.parametrize(
    ("kind", "name", "setting"),
    [(BROKER, "", "message.max.bytes"), (TOPIC, TRANSACTION_STATE_TOPIC, "max.message.bytes")],
)
def test_idle_ids_expire_whatever_the_limit_of_their_log_is_now(kind: int, name: str, setting: str) -> None:
    node = with_ids(60)
    assert alter(node, kind, name, (setting, SET, "500")) == "NONE"
    wait(node, 8)
    assert ids(node) == 0


def test_a_transaction_whose_end_does_not_fit_does_not_begin_whatever_the_limit_is_now() -> None:
    """Kafka accepts it; it can never end."""
    node = with_ids(1, name="x")
    node.create("t", 40)
    limited(node, TRANSACTION_STATE_TOPIC, 290)
    sent = Producer(node).send(b"", *range(40))
    assert set(sent) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert node.broker.logs[TopicPartition("t", 0)].last_stable_offset == 0
    assert alter(node, TOPIC, TRANSACTION_STATE_TOPIC, ("max.message.bytes", DELETE, None)) == "NONE"
    producer = Producer(node)
    assert (set(producer.send(b"", *range(40))), producer.end()) == ({ErrorCode.NONE}, ErrorCode.NONE)


def test_a_group_with_more_offsets_than_fit_into_a_batch_of_its_log_is_deleted() -> None:
    node = with_groups(partitions=60)
    assert {commit(node, "g", partition) for partition in range(60)} == {ErrorCode.NONE}
    assert (deleted(node, "g"), groups(node)) == (ErrorCode.NONE, 0)
    node.restart()
    assert groups(node) == 0


def test_a_group_with_more_offsets_than_fit_into_a_batch_of_its_log_expires() -> None:
    node = with_groups(partitions=60)
    assert {commit(node, "g", partition) for partition in range(60)} == {ErrorCode.NONE}
    wait(node, 8)
    assert groups(node) == 0


def test_no_group_has_an_offset_of_a_deleted_topic() -> None:
    node = with_groups()
    for number in range(60):
        assert commit(node, f"g{number:02}") == ErrorCode.NONE
    assert node.call(node.broker.topics.delete, ["t"], [])[0].error == ErrorCode.NONE
    node.create("t")
    assert {fetched(node, f"g{number:02}") for number in range(60)} == {-1}


def test_the_offsets_of_a_deleted_topic_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in each partition of the coordinator for each partition of the topic."""
    node = Node(offsets_topic_num_partitions=10)
    node.create("t", 20)
    node.request(node.broker.groups.find, "g")
    node.settle()
    for number in range(60):
        assert commit(node, f"g{number:02}", number % 20) == ErrorCode.NONE
    encoded: list[Any] = []
    keys, encode = GroupOffsets.keys_of, group_offsets.encode_offset_commit_key
    monkeypatch.setattr(
        group_offsets, "encode_offset_commit_key", lambda *names: encoded.append(names) or encode(*names)
    )
    searched: list[Any] = []
    monkeypatch.setattr(
        GroupOffsets, "keys_of", lambda *arguments: searched.append(arguments) or keys(*arguments)
    )
    assert node.call(node.broker.topics.delete, ["t"], [])[0].error == ErrorCode.NONE
    assert (len(encoded), len(searched)) == (20, 10)
    assert {fetched(node, f"g{number:02}") for number in range(60)} == {-1}


def test_a_tombstone_that_is_larger_than_the_limit_keeps_no_other_from_being_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such an offset stays, which is said, and tried again when the limit is another one."""
    node = with_groups(limit=None)
    names = ["g0", "g" * 300, "g1"]
    assert {commit(node, name) for name in names} == {ErrorCode.NONE}
    limited(node, CONSUMER_OFFSETS_TOPIC, 200)
    with caplog.at_level(logging.WARNING, LOGGER):
        assert node.call(node.broker.topics.delete, ["t"], [])[0].error == ErrorCode.NONE
        wait(node, 8)
    assert [fetched(node, name) for name in names] == [-1, 5, -1]
    assert "__consumer_offsets-0" in caplog.text
    assert "max.message.bytes is 200" in caplog.text
    assert len(caplog.records) == 1
    limited(node, CONSUMER_OFFSETS_TOPIC, 1_000)
    wait(node, 1)
    assert groups(node) == 0


def test_an_id_whose_tombstone_is_larger_than_the_limit_stays_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = with_ids(3)
    Producer(node, "x" * 300)
    limited(node, TRANSACTION_STATE_TOPIC, 200)
    with caplog.at_level(logging.WARNING, LOGGER):
        wait(node, 9)
    assert ids(node) == 1
    (record,) = caplog.records
    assert "__transaction_state-0" in record.getMessage()
    assert "max.message.bytes is 200" in record.getMessage()


def test_a_transaction_that_cannot_end_any_more_is_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    """The limit was lowered while it was open."""
    node = with_ids(1, name="x")
    node.create("t", 40)
    producer = Producer(node)
    assert set(producer.send(b"", *range(40))) == {ErrorCode.NONE}
    with caplog.at_level(logging.WARNING, LOGGER):
        limited(node, TRANSACTION_STATE_TOPIC, 200)
        for _ in range(20):
            node.wait(60_000)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    limited(node, TRANSACTION_STATE_TOPIC, 1_000)
    node.wait(60_000)
    log = node.broker.logs[TopicPartition("t", 0)]
    assert log.last_stable_offset == log.log_end_offset

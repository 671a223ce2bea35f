"""A copy that commits its records and its group's offsets in one transaction is exact after any power cut."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import LONG
from tests.unit.broker.node import Node, Producer
from txnkafka.broker.coordinators.coordinator_topic import CoordinatorTopic
from txnkafka.broker.coordinators.groups import Groups
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.coordinator.group.group_requests import CommittedOffset, Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

STATES, LEAST = (6_000, 2_000) if LONG else (250, 150)  # states that look alike count once
SOURCE = TopicPartition("source", 0)
CONFIG = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}
NONE = ErrorCode.NONE
Told = list[tuple[int, str, int]]
"""Change of the disk, ``copied`` or ``committed``, and the offset."""


def workload() -> tuple[Node, Told]:
    """Copies that commit and that abort, offsets without a transaction, a new instance, an open end."""
    node, told = Node(**CONFIG), []
    node.create("t", 1, segment_bytes="600")
    node.create("source", 1)
    assert node.request(node.broker.groups.find, "copies") != NONE
    node.settle()
    producer = Producer(node)
    for number in range(4):
        for commit in (number != 1, True) if number == 1 else (True,):
            copy(node, producer, number)
            assert producer.end(commit=commit) == NONE
        told.append((changes(node), "copied", number + 1))
        if number == 2:
            commit_plainly(node, 10, told)
            producer = Producer(node)
    copy(node, producer, 4)  # and no end: a timeout aborts it
    commit_plainly(node, 20, told)
    return node, told


def copy(node: Node, producer: Producer, number: int, value: bytes = b"") -> None:
    """One record and the offset after it, in a transaction that is not ended."""
    assert producer.send(value or b"%d" % number, 0) == [NONE]
    answers: list[dict[TopicPartition, ErrorCode]] = []
    identity = producer.identity.producer_id, producer.identity.producer_epoch
    node.request(
        node.broker.commit_in_transaction, Identity("copies"), producer.id,
        ProducerIdAndEpoch(*identity), {SOURCE: OffsetToCommit(number + 1)}, answers.append, version=5,
    )  # fmt: skip
    node.settle()
    assert answers == [{SOURCE: NONE}]


def commit_plainly(node: Node, offset: int, told: Told) -> None:
    """An offset without a transaction; what counts is the moment of the answer."""

    def answered(errors: dict[TopicPartition, ErrorCode]) -> None:
        assert errors == {SOURCE: NONE}
        told.append((changes(node), "committed", offset))

    wanted = {SOURCE: OffsetToCommit(offset)}
    node.request(node.broker.groups.commit, Identity("plain"), wanted, answered, version=9)
    node.settle()
    assert told[-1][1:] == ("committed", offset)


def changes(node: Node) -> int:
    assert isinstance(node.files, MemoryFiles)
    return len(node.files.journal)


def committed(node: Node, group: str) -> int:
    """The stable offset of a group: nothing is pending."""
    found: list[tuple[ErrorCode, dict[TopicPartition, CommittedOffset]]] = []
    node.request(
        node.broker.groups.fetch, group, [SOURCE], lambda *answer: found.append(answer), require_stable=True
    )
    node.settle()
    ((error, offsets),) = found
    assert error == NONE
    assert offsets[SOURCE].error == NONE
    return offsets[SOURCE].offset


def check(told: Told, disk: object, change: int) -> str:
    """Open what is left. Returns how much of the copy is there."""
    node = Node(MemoryFiles(base=disk), **CONFIG)  # type: ignore[arg-type]
    for _ in range(3):  # markers are written again, and transactions time out
        node.wait(70_000)
    if "__consumer_offsets" not in node.broker.image.topics:
        assert not [each for each, *_ in told if each <= change]
        return "no groups"
    copied = node.values(0)
    offset = committed(node, "copies")
    assert copied == [b"%d" % number for number in range(max(offset, 0))], "copied to where it is committed"
    promised = {what: max((at for each, kind, at in told if kind == what and each <= change), default=-1)
                for what in ("copied", "committed")}  # fmt: skip
    assert offset >= promised["copied"]
    assert committed(node, "plain") >= promised["committed"]
    producer = Producer(node)  # and so it goes on
    copy(node, producer, len(copied))
    assert producer.end() == NONE
    assert (committed(node, "copies"), len(node.values(0))) == (len(copied) + 1, len(copied) + 1)
    node.close()
    return f"{len(copied)} copied"


def explore(limit: int) -> Counter[str]:
    node, told = workload()
    assert isinstance(node.files, MemoryFiles)
    found: Counter[str] = Counter()
    for state in crash_states(node.files, limit=limit, news=[each for each, *_ in told]):
        try:
            found[check(told, state.disk, state.changes)] += 1
        except AssertionError as error:
            raise AssertionError(f"{state.name}: {error}") from error
    return found


def test_a_copy_is_exact() -> None:
    found = explore(STATES)
    print(f"{sum(found.values())} states of a copy: {dict(sorted(found.items()))}")
    assert sum(found.values()) >= LEAST
    assert {f"{count} copied" for count in range(5)} <= found.keys()


def answered_at_once(self: CoordinatorTopic, *arguments: object, **named: object) -> int:
    """An offset is acknowledged when it is appended."""
    partition, records, call = arguments
    if self.name != CONSUMER_OFFSETS_TOPIC:
        return APPEND(self, partition, records, call, **named)  # type: ignore[arg-type]
    first = APPEND(self, partition, records, lambda _: None, **named)  # type: ignore[arg-type]
    self._services.durability.soon(lambda: call(NONE))  # type: ignore[operator]
    return first


def unheard(*_: object) -> None:
    """The group coordinator does not hear of markers that are written after it was loaded."""


APPEND = CoordinatorTopic.append


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [(CoordinatorTopic, "append", answered_at_once), (Groups, "on_marker", unheard)],
)
def test_the_check_finds_it(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, instead: object) -> None:
    monkeypatch.setattr(owner, name, instead)
    with pytest.raises(AssertionError):
        explore(2_000)


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_new_topic_has_no_offsets_of_a_deleted_one(is_created_again: bool) -> None:
    """Its consumers would skip records. What is durable first is that the topic is removed."""
    node = Node(**CONFIG)
    node.create("t", 1)
    node.create("source", 1)
    assert node.request(node.broker.groups.find, "copies") != NONE
    node.settle()
    old, begin = node.broker.image.topics["source"].topic_id, commit_twice(node, is_created_again)
    node.call(node.broker.topics.delete, ["source"], [])
    if is_created_again:
        node.create("source", 1)
    found = Counter[tuple[bool, int, int]]()
    assert isinstance(node.files, MemoryFiles)
    for state in crash_states(node.files, begin=begin, limit=STATES):
        left = Node(MemoryFiles(base=state.disk), **CONFIG)
        topic = left.broker.image.topics.get("source")
        is_old = topic is not None and topic.topic_id == old
        found[is_old, committed(left, "plain"), committed(left, "copies")] += 1
    copies = -1 if is_created_again else 5
    assert found.keys() == {(True, 5, copies), (False, -1, -1)}


def commit_twice(node: Node, is_plain: bool) -> int:
    """Commit 5, without a transaction and, unless ``is_plain``, with one: such an offset does not say of
    which topic it is. Returns the number of changes of the disk."""
    if not is_plain:
        producer = Producer(node)
        copy(node, producer, 4)
        assert producer.end() == NONE
    wanted = {SOURCE: OffsetToCommit(5, topic_id=node.broker.image.topics["source"].topic_id)}
    assert node.call(
        lambda reply: node.broker.groups.commit(Identity("plain"), wanted, reply, version=9)
    ) == {SOURCE: NONE}
    return changes(node)

"""Offsets of groups: who may commit, what is pending, what expires (``OffsetMetadataManagerTest``)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group_clients import START_MS, Member, Node, stable
from txnkafka.coordinator.group.group_requests import CommittedOffset, Identity
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.error_codes import ErrorCode as E
from txnkafka.model import NO_PRODUCER_ID, ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.records.group_log import encode_group_key

FIRST, SECOND = ProducerIdAndEpoch(1000, 0), ProducerIdAndEpoch(2000, 3)
DAY_MS = 86_400_000
SUBSCRIBED_TO_T = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"


def test_a_simple_group_commits_and_fetches() -> None:
    node = Node()
    assert node.fetched() == CommittedOffset()
    assert node.commit(5, metadata="m") == E.NONE
    assert node.fetched() == CommittedOffset(5, 0, "m")
    assert (node.state, node.coordinator.listed()[0].protocol_type) == ("Empty", "")
    node.start()
    assert node.fetched() == CommittedOffset(5, 0, "m")
    assert node.fetched(topic="another") == CommittedOffset()
    assert node.fetched(group="") == CommittedOffset()
    assert node.commit(5, Identity("")) == E.NONE  # as old clients did
    assert node.fetched(group="").offset == 5
    assert node.commit(5, Identity(""), producer=FIRST) == E.INVALID_GROUP_ID


def test_a_commit_is_answered_and_shown_when_it_is_durable() -> None:
    node = Node(waits=True)
    assert node.commit(5) is None
    answers: list[object] = []
    partition = TopicPartition("t", 0)
    node.coordinator.fetch("g", [partition], lambda *answer: answers.append(answer), require_stable=False)
    assert answers == []
    node.flush()
    assert answers == [(E.NONE, {partition: CommittedOffset(5, 0, "")})]


def test_an_offset_that_is_not_durable_is_not_shown_after_a_restart() -> None:
    node = Node()
    node.commit(5)
    node.commit(6)
    node.start(count=1)
    assert node.fetched().offset == 5


def test_a_failing_log_is_told() -> None:
    node = Node(waits=True)
    node.fails = True
    assert node.commit(5) == E.NOT_COORDINATOR
    node.fails = False
    assert node.commit(6) is None
    answers: list[object] = []
    node.coordinator.fetch("g", None, lambda *answer: answers.append(answer), require_stable=False)
    node.flush(E.KAFKA_STORAGE_ERROR)
    assert answers == [(E.NOT_COORDINATOR, {})]


def test_metadata_has_a_limit() -> None:
    node = Node(metadata_max_bytes=3)
    assert [node.commit(1, metadata="abcd"), node.commit(1, metadata="abc")] == [
        E.OFFSET_METADATA_TOO_LARGE,
        E.NONE,
    ]


@pytest.mark.parametrize(
    ("version", "error"), [(8, E.ILLEGAL_GENERATION), (9, E.GROUP_ID_NOT_FOUND), (10, E.GROUP_ID_NOT_FOUND)]
)
def test_152_a_member_of_an_unknown_group(version: int, error: E) -> None:
    assert Node().commit(1, Identity("g", 3, "m"), version=version) == error


def test_members_commit_in_their_generation() -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    identity = member.identity
    assert node.commit(1, identity) == E.NONE
    assert node.commit(2, identity._replace(generation=9)) == E.ILLEGAL_GENERATION
    assert node.commit(2, identity._replace(member_id="another")) == E.UNKNOWN_MEMBER_ID
    assert node.commit(2, Identity("g")) == E.UNKNOWN_MEMBER_ID
    assert node.fetched().offset == 1
    member.join()
    assert node.commit(2, member.identity) == E.REBALANCE_IN_PROGRESS
    assert node.commit(2, member.identity, producer=FIRST) == E.NONE  # the state does not matter there
    for producer in (FIRST, None):
        assert node.commit(3, identity, producer=producer) == E.ILLEGAL_GENERATION  # of the one before


def test_a_commit_keeps_the_session_alive() -> None:
    node = Node()
    (member,) = stable(node, Member(node))
    for offset in range(5):
        node.wait(8_000)
        assert node.commit(offset, member.identity) == E.NONE


def test_148_a_pending_offset_is_not_visible_or_not_stable() -> None:
    node = Node()
    node.commit(1)
    assert node.commit(5, producer=FIRST) == E.NONE
    assert node.fetched().offset == 1
    assert node.fetched(stable=True) == CommittedOffset(error=E.UNSTABLE_OFFSET_COMMIT)
    node.end(FIRST, committed=True)
    assert node.fetched(stable=True).offset == 5


def test_an_abort_drops_what_is_pending() -> None:
    node = Node()
    node.commit(5, producer=FIRST)
    node.end(FIRST, committed=False)
    assert node.fetched(stable=True) == CommittedOffset()
    node.start()
    assert node.fetched(stable=True) == CommittedOffset()


def test_two_transactions_with_one_partition() -> None:
    node = Node()
    node.commit(5, producer=FIRST)
    node.commit(7, producer=SECOND)
    node.end(SECOND, committed=True)
    assert (node.fetched().offset, node.fetched(stable=True).error) == (7, E.UNSTABLE_OFFSET_COMMIT)
    node.end(FIRST, committed=True)  # its offset is older
    assert node.fetched(stable=True).offset == 7


def test_a_later_plain_commit_wins_over_the_transaction() -> None:
    node = Node()
    node.commit(5, producer=FIRST)
    node.commit(9)
    node.end(FIRST, committed=True)
    assert node.fetched(stable=True).offset == 9


def test_after_a_restart_a_transaction_is_still_open() -> None:
    node = Node()
    node.commit(5, producer=FIRST)
    node.start()
    assert node.fetched(stable=True).error == E.UNSTABLE_OFFSET_COMMIT
    node.end(FIRST, committed=True)
    assert node.fetched().offset == 5


def test_all_offsets_of_a_group() -> None:
    node = Node()
    for topic in ("a", "b"):
        node.commit(3, topic=topic)
    node.commit(4, topic="c", producer=FIRST)
    found: list[dict[TopicPartition, CommittedOffset]] = []
    node.coordinator.fetch("g", None, lambda _, offsets: found.append(offsets), require_stable=True)
    node.flush()
    assert {partition.topic: each.offset for partition, each in found[0].items()} == {"a": 3, "b": 3}


# without the owned partitions that its version has, of a version to come, and with a byte too many
UNUSUAL = [SUBSCRIBED_TO_T[:-4], b"\x00\x04" + SUBSCRIBED_TO_T[2:] + b"new", SUBSCRIBED_TO_T + b"?"]


@pytest.mark.parametrize("metadata", [SUBSCRIBED_TO_T, *UNUSUAL])
def test_offsets_are_deleted_unless_a_member_is_subscribed(metadata: bytes) -> None:
    """Only what all versions of a subscription begin with is read
    (``ClassicGroup.computeSubscribedTopics``)."""
    node = Node()
    (member,) = stable(node, Member(node, protocols=(("range", metadata),)))
    for topic in ("t", "u"):
        node.commit(1, member.identity, topic=topic)
    found: list[tuple[E, dict[TopicPartition, E]]] = []
    wanted = [TopicPartition("t", 0), TopicPartition("u", 0)]
    node.coordinator.delete_offsets("g", wanted, lambda *answer: found.append(answer))
    node.flush()
    assert found == [(E.NONE, dict(zip(wanted, (E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE), strict=True)))]
    node.start()
    assert [node.fetched(topic=topic).offset for topic in ("t", "u")] == [1, -1]
    node.coordinator.delete_offsets("another", wanted, lambda *answer: found.append(answer))
    node.flush()
    assert found[-1] == (E.GROUP_ID_NOT_FOUND, {})


@pytest.mark.parametrize("error", [E.NONE, E.KAFKA_STORAGE_ERROR])
def test_what_is_deleted_already_is_said_when_that_is_durable(error: E) -> None:
    """Otherwise a crash would take back what the second of two clients was told."""
    node = Node(waits=True)
    node.commit(1)
    node.flush()
    found: list[E] = []
    for _ in range(2):
        node.coordinator.delete_offsets("g", [TopicPartition("t", 0)], lambda code, _: found.append(code))
    for _ in range(2):
        node.coordinator.delete("g", found.append)
    node.coordinator.delete_offsets("g", [], lambda code, _: found.append(code))
    assert found == []
    node.flush(error)
    gone = E.GROUP_ID_NOT_FOUND
    assert found == ([E.NOT_COORDINATOR] * 5 if error else [E.NONE, E.NONE, E.NONE, gone, gone])


def test_a_group_that_only_had_offsets_is_not_there_after_a_restart() -> None:
    node = Node()
    node.commit(1)
    node.coordinator.delete_offsets("g", [TopicPartition("t", 0)], lambda *_: None)
    node.flush()
    assert node.state == "Empty"
    node.start()
    assert node.coordinator.listed() == []


def test_a_group_whose_tombstones_cannot_be_written_is_still_there() -> None:
    """The log has it: after a restart it would be back."""
    node = Node(retention_ms=1_000, retention_check_interval_ms=1_000)
    node.commit(5)
    node.fails = True
    errors: list[E] = []
    node.coordinator.delete("g", errors.append)
    node.wait(3_000)  # it does not expire either
    assert (errors, node.state, node.fetched().offset) == ([E.NOT_COORDINATOR], "Empty", 5)
    node.fails = False
    node.coordinator.delete("g", errors.append)
    node.flush()
    assert (errors[1:], node.coordinator.listed()) == ([E.NONE], [])


def test_a_group_with_more_tombstones_than_fit_into_a_batch_is_deleted_and_expires() -> None:
    for is_deleted in (True, False):
        node = Node(retention_ms=1_000, retention_check_interval_ms=1_000, max_bytes=500)
        node.max_keys = 500
        for number in range(40):
            node.commit(1, topic=f"topic-{number:010}")
        errors: list[E] = []
        if is_deleted:
            node.coordinator.delete("g", errors.append)
            node.flush()
        else:
            node.wait(3_000)
        assert (errors, node.coordinator.listed()) == ([E.NONE] * is_deleted, [])
        node.start()
        assert node.coordinator.listed() == []


def test_a_deletion_in_batches_is_answered_once() -> None:
    """Whichever of them is refused or never durable."""
    for accepted, error in ((2, E.NOT_COORDINATOR), (9, E.NOT_COORDINATOR), (9, E.NONE)):
        node = Node(waits=True, max_bytes=61 + 26 + 30)
        for number in range(5):
            node.commit(1, topic=f"topic-{number:010}")
        node.flush()
        errors: list[E] = []
        node.accepts = accepted
        node.coordinator.delete("g", errors.append)
        node.flush(E.KAFKA_STORAGE_ERROR if error else E.NONE)
        assert errors == [error]


def test_a_deleted_group_has_no_pending_offset_either() -> None:
    node = Node()
    node.commit(1)
    node.commit(5, producer=FIRST)
    errors: list[E] = []
    node.coordinator.delete("g", errors.append)
    node.flush()
    node.end(FIRST, committed=True)
    assert (errors, node.fetched()) == ([E.NONE], CommittedOffset())


def test_the_offsets_of_a_deleted_topic_go_with_it() -> None:
    """Those of all groups, also what an open transaction is about to commit."""
    node = Node()
    for topic in ("t", "u"):
        node.commit(1, topic=topic)
    node.commit(5, producer=FIRST)
    node.coordinator.delete_partitions("t", range(3), node.now_ms)
    node.coordinator.delete_partitions("nobody's", [0], node.now_ms)
    node.end(FIRST, committed=True)
    for _ in range(2):
        assert [node.fetched(topic=topic).offset for topic in ("t", "u")] == [-1, 1]
        node.start()


def test_a_deleted_topic_costs_one_batch_for_all_groups() -> None:
    node = Node(waits=True)
    for number in range(100):
        node.commit(1, Identity(f"g{number}"))
        node.commit(1, Identity(f"g{number}é"), topic="u")
    node.flush()
    node.coordinator.delete_partitions("t", range(3), node.now_ms)
    assert node.waiting == 1
    node.waits = False
    assert {node.fetched(group=f"g{number}").offset for number in range(100)} == {-1}
    assert {node.fetched(group=f"g{number}é", topic="u").offset for number in range(100)} == {1}


def test_158_offsets_of_a_simple_group_expire_after_their_commit() -> None:
    node = Node()
    node.coordinator.advance(node.now_ms)
    node.commit(1)
    node.wait(6 * DAY_MS)
    assert node.fetched().offset == 1
    node.commit(2, topic="u")
    node.wait(DAY_MS + 600_000)
    assert (node.fetched().offset, node.fetched(topic="u").offset) == (-1, 2)
    node.wait(7 * DAY_MS)
    assert node.coordinator.listed() == []
    node.start()
    assert node.coordinator.listed() == []


@pytest.mark.parametrize(
    ("metadata", "left"), [(SUBSCRIBED_TO_T, [1, -1]), (UNUSUAL[0], [1, -1]), (b"?", [1, 1])]
)
def test_offsets_of_topics_that_nobody_reads_any_more_expire(metadata: bytes, left: list[int]) -> None:
    """Unless it is not known what the members read."""
    node = Node()
    node.coordinator.advance(node.now_ms)
    (member,) = stable(node, Member(node, session_ms=1_800_000, protocols=(("range", metadata),)))
    for topic in ("t", "u"):
        node.commit(1, member.identity, topic=topic)
    for _ in range(8 * 96):
        node.wait(DAY_MS // 96)
        assert member.heartbeat() == E.NONE
    assert [node.fetched(topic=topic).offset for topic in ("t", "u")] == left


def test_offsets_of_a_group_expire_when_it_was_empty_for_long() -> None:
    node = Node()
    node.coordinator.advance(node.now_ms)
    (member,) = stable(node, Member(node))
    node.commit(1, member.identity)
    node.wait(5 * DAY_MS)  # its session is over
    assert (node.state, node.fetched().offset) == ("Empty", 1)
    node.wait(DAY_MS)
    assert node.fetched().offset == 1
    node.wait(DAY_MS + 1_200_000)
    assert node.coordinator.listed() == []


def test_offsets_of_a_group_that_an_old_broker_has_written_expire_after_their_commit() -> None:
    """Its record does not say when the group became empty; a restart is not that time."""
    node = Node()
    node.commit(1)
    group = b"\0\1\0\x08consumer\0\0\0\5\xff\xff\xff\xff\0\0\0\0"  # version 1: empty, generation 5
    node.events.append(LogEvent(len(node.events), NO_PRODUCER_ID, None, encode_group_key("g"), group))
    for _ in range(3):
        node.start()
        assert node.group().generation == 5
        node.coordinator.advance(node.now_ms)
        node.wait(3 * DAY_MS)
    assert node.fetched().offset == -1
    assert node.coordinator.listed() == []


def test_after_a_start_nothing_expires_before_the_first_interval() -> None:
    node = Node()
    node.commit(1)
    node.now_ms += 30 * DAY_MS
    node.start()
    node.wait(599_999)
    assert node.fetched().offset == 1
    node.wait(1)
    assert node.fetched().offset == -1


def test_many_groups_are_looked_at_a_few_at_a_time() -> None:
    node = Node()
    for number in range(250):
        node.commit(1, Identity(f"g{number}"))
    node.wait(0)
    node.now_ms += 8 * DAY_MS
    left = []
    while node.coordinator.advance(node.now_ms) <= node.now_ms:
        left.append(len(node.coordinator.listed()))
    assert left == [150, 50]
    assert node.coordinator.listed() == []


def test_159_what_is_pending_does_not_expire() -> None:
    node = Node()
    node.coordinator.advance(node.now_ms)
    node.commit(1)
    node.commit(2, producer=FIRST)
    node.wait(9 * DAY_MS)
    assert (node.fetched().offset, node.fetched(stable=True).error) == (1, E.UNSTABLE_OFFSET_COMMIT)
    assert [each.group_id for each in node.coordinator.listed()] == ["g"]


def test_an_explicit_time_of_expiry_counts() -> None:
    node = Node()
    node.coordinator.advance(node.now_ms)
    node.commit(1, expire_timestamp=START_MS + 1_000)
    node.wait(700_000)
    assert node.fetched() == CommittedOffset()

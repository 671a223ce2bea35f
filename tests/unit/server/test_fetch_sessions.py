"""Incremental fetch sessions (KIP-227)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.server.wire_node import WireNode
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server import fetch_sessions
from txnkafka.server.fetch_sessions import IDLE_MS, FetchSessions, Wanted
from txnkafka.wire.fields import replaced
from txnkafka.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)


class Consumer:
    """A consumer that fetches some partitions of topic t in sessions."""

    def __init__(self, partitions: int = 3, version: int = 12) -> None:
        self.node, self.version = WireNode(), version
        self.node.create("t", partitions)
        self.topic_id = self.node.broker.image.topics["t"].topic_id
        self.offsets = [0] * partitions
        self.id = self.epoch = 0

    @property
    def name(self) -> dict[str, str]:
        return {"topic_id": self.topic_id} if self.version >= 13 else {"topic": "t"}

    def fetch(self, *partitions: int, forget: tuple[int, ...] = (), **fields: Any) -> Any:
        wanted = tuple(
            FetchPartition(partition=each, fetch_offset=self.offsets[each], partition_max_bytes=1 << 20)
            for each in partitions
        )
        named = self.name
        request = {
            "session_id": self.id,
            "session_epoch": self.epoch,
            "topics": (FetchTopic(**named, partitions=wanted),) if wanted else (),
            "forgotten_topics_data": (ForgottenTopic(**named, partitions=forget),) if forget else (),
            **fields,
        }
        answer = self.node.ask("Fetch", self.version, **request)
        if not answer.error_code:
            self.id = answer.session_id
            self.epoch += 1
        return answer

    def found(self, *partitions: int, **fields: Any) -> dict[int, int]:
        """Bytes by partition of an answer."""
        answer = self.fetch(*partitions, **fields)
        assert answer.error_code == ErrorCode.NONE
        found = [each for topic in answer.responses for each in topic.partitions]
        return {each.partition_index: len(each.records) for each in found}


BATCH = len(batch_of(b"a"))


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_only_what_is_new_is_answered(version: int) -> None:
    consumer = Consumer(version=version)
    assert consumer.found(0, 1, 2) == {0: 0, 1: 0, 2: 0}
    assert consumer.id > 0
    assert consumer.found() == {}
    consumer.node.append(batch_of(b"a"), 1)
    assert consumer.found() == {1: BATCH}
    consumer.offsets[1] = 1
    assert consumer.found(1) == {}


def test_partitions_are_added_and_forgotten() -> None:
    consumer = Consumer()
    assert consumer.found(0) == {0: 0}
    assert consumer.found(1) == {1: 0}
    for partition in range(3):
        consumer.node.append(batch_of(b"a"), partition)
    assert consumer.found(forget=(0,)) == {1: BATCH}
    assert consumer.found(2) == {1: BATCH, 2: BATCH}


def test_an_error_is_answered_again_and_so_is_its_end() -> None:
    consumer = Consumer()
    consumer.offsets[0] = 5
    for _ in range(2):
        (topic,) = consumer.fetch(0, 1).responses
        codes = {each.partition_index: each.error_code for each in topic.partitions}
        assert codes[0] == ErrorCode.OFFSET_OUT_OF_RANGE
    consumer.offsets[0] = 0
    assert consumer.found(0) == {0: 0}
    assert consumer.found() == {}


def test_a_partition_is_told_again_when_its_error_is_over() -> None:
    """Its offsets are the same as before the error."""
    sessions = FetchSessions()
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(session_epoch=0, topics=(FetchTopic(topic="t", partitions=(wanted,)),))
    first = sessions.begin(request, 12, 0)
    assert not isinstance(first, ErrorCode)
    sound = PartitionData(partition_index=0, high_watermark=7, log_start_offset=2)
    failed = replaced(sound, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    key = ("t", 0)
    told = [bool(first.answer([(key, sound)]))]
    for epoch, data in enumerate((sound, failed, failed, sound, sound), 1):
        following = sessions.begin(FetchRequest(session_id=first.session_id, session_epoch=epoch), 12, 0)
        assert not isinstance(following, ErrorCode)
        told.append(bool(following.answer([(key, data)])))
    assert told == [True, False, True, True, True, False]


def test_who_was_answered_comes_last() -> None:
    consumer = Consumer()
    consumer.found(0, 1, 2)
    for partition in range(3):
        consumer.node.append(batch_of(b"a"), partition)
    turns = []
    for _ in range(6):
        turns += [number for number, size in consumer.found(max_bytes=1).items() if size]
    assert sorted(turns[:3]) == [0, 1, 2]
    assert turns[3:] == turns[:3]


def test_no_session_for_who_wants_none() -> None:
    consumer = Consumer()
    consumer.epoch = -1
    assert consumer.fetch(0).session_id == 0
    assert len(consumer.node.sessions) == 0


def test_a_session_ends() -> None:
    consumer = Consumer()
    consumer.fetch(0)
    consumer.epoch = -1
    assert consumer.found(0) == {0: 0}
    assert (consumer.id, len(consumer.node.sessions)) == (0, 0)


def test_a_new_session_takes_the_place_of_the_old_one() -> None:
    consumer = Consumer()
    consumer.fetch(0)
    old, consumer.epoch = consumer.id, 0
    consumer.fetch(0)
    assert consumer.id != old
    assert len(consumer.node.sessions) == 1


def test_a_session_without_partitions_ends() -> None:
    consumer = Consumer()
    consumer.fetch(0)
    assert consumer.fetch(forget=(0,)).session_id == 0
    assert len(consumer.node.sessions) == 0


def test_errors_of_sessions() -> None:
    consumer = Consumer()
    consumer.fetch(0)
    assert consumer.fetch(session_id=consumer.id + 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert consumer.fetch(session_epoch=9).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    consumer.version = 13
    assert consumer.fetch(1).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    consumer.version = 12
    assert consumer.found(1) == {1: 0}


def test_a_deleted_topic_in_a_session() -> None:
    consumer = Consumer(version=13)
    consumer.fetch(0)
    consumer.node.call(consumer.node.broker.topics.delete, ["t"], [])
    (topic,) = consumer.fetch().responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert TopicPartition("t", 0) not in consumer.node.broker.logs


def full(sessions: FetchSessions, now_ms: int, partitions: int = 1) -> int:
    wanted_partitions = tuple(FetchPartition(partition=number) for number in range(partitions))
    topics = (FetchTopic(topic="t", partitions=wanted_partitions),)
    wanted = sessions.begin(FetchRequest(session_epoch=0, topics=topics), 12, now_ms)
    assert isinstance(wanted, Wanted)
    return wanted.session_id


def test_sessions_are_bounded() -> None:
    sessions = FetchSessions(limit=2)
    first, second = full(sessions, 0), full(sessions, 1)
    assert full(sessions, IDLE_MS - 1) == 0  # both are in use
    assert isinstance(sessions.begin(FetchRequest(session_id=first, session_epoch=1), 12, 5), Wanted)
    third = full(sessions, IDLE_MS + 2)
    assert third not in (0, first, second)
    gone = sessions.begin(FetchRequest(session_id=second, session_epoch=1), 12, 0)
    assert gone == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 2


def again(sessions: FetchSessions, session_id: int, epoch: int, now_ms: int) -> Any:
    return sessions.begin(FetchRequest(session_id=session_id, session_epoch=epoch), 12, now_ms)


def test_a_large_session_takes_the_place_of_the_smallest_that_has_had_its_time() -> None:
    sessions = FetchSessions(limit=2)
    small, large = full(sessions, 0, 2), full(sessions, 0, 5)
    for session_id in (small, large):
        assert isinstance(again(sessions, session_id, 1, IDLE_MS), Wanted)
    assert full(sessions, IDLE_MS, 9) == 0, "they are not old enough"
    for session_id in (small, large):
        assert isinstance(again(sessions, session_id, 2, IDLE_MS + 1), Wanted)
    assert full(sessions, IDLE_MS + 2, 2) == 0, "it is not larger"
    larger = full(sessions, IDLE_MS + 2, 3)
    assert larger != 0
    assert again(sessions, small, 3, IDLE_MS + 3) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert isinstance(again(sessions, large, 3, IDLE_MS + 3), Wanted)


def test_there_may_be_no_sessions() -> None:
    assert full(FetchSessions(limit=0), 0) == 0


def test_an_epoch_begins_again_after_the_largest() -> None:
    sessions = FetchSessions()
    session_id = full(sessions, 0)
    sessions._sessions[session_id].epoch = 2**31 - 1
    for epoch in (2**31 - 1, 1, 2):
        wanted = sessions.begin(FetchRequest(session_id=session_id, session_epoch=epoch), 12, 0)
        assert isinstance(wanted, Wanted)


def test_a_session_has_a_limit_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 2)
    consumer = Consumer()
    assert consumer.found(0, 1, 2) == {0: 0, 1: 0, 2: 0}
    assert consumer.id == 0  # all of them again with the next request
    consumer.epoch = 0
    assert consumer.found(0, 1) == {0: 0, 1: 0}
    assert consumer.id > 0
    for _ in range(2):
        assert consumer.fetch(2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not consumer.node.sessions

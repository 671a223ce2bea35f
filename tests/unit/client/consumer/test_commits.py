"""Commits over scripted answers: versions, and each error of the coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.scripts import PARTITION, ScriptedBroker
from txnkafka.client.consumer import Consumer
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, KafkaTimeoutError, RebalanceInProgressError
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from txnkafka.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

PLACE = OffsetAndMetadata(7, "seven", 3)


class Coordinator(ScriptedBroker):
    """Answers commits with ``errors`` first, and fetches with ``fetch_errors``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.errors: list[ErrorCode] = []
        self.fetch_errors: list[ErrorCode] = []
        self.transport.answers["OffsetCommit"] = self._commit
        self.transport.answers["OffsetFetch"] = self._offset_fetch

    def member(self, **settings: Any) -> Consumer:
        return self.consumer(group_id="g", enable_auto_commit=False, **settings)

    def _topic(self) -> dict[str, str]:
        return {"topic_id": self.transport.topic_id("orders"), "name": "orders"}

    def _commit(self, request: Any) -> OffsetCommitResponse:
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        row = OffsetCommitResponsePartition(partition_index=0, error_code=error)
        return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(**self._topic(), partitions=(row,)),))

    def _offset_fetch(self, request: Any) -> OffsetFetchResponse:
        error = self.fetch_errors.pop(0) if self.fetch_errors else ErrorCode.NONE
        fields = {
            "partition_index": 0, "committed_offset": 7, "committed_leader_epoch": 3, "metadata": "seven",
            "error_code": error,
        }  # fmt: skip
        old = OffsetFetchResponseTopic(name="orders", partitions=(OffsetFetchResponsePartition(**fields),))
        new = OffsetFetchResponseTopics(
            **self._topic(), partitions=(OffsetFetchResponsePartitions(**fields),)
        )
        return OffsetFetchResponse(
            topics=(old,), groups=(OffsetFetchResponseGroup(group_id="g", topics=(new,)),)
        )


def test_a_commit_does_not_wait_for_a_fetch() -> None:
    """A broker answers the requests of a connection in order."""
    broker = Coordinator()
    consumer = broker.member()
    consumer.assign([PARTITION])
    broker.transport.answers["Fetch"] = lambda request: None  # until it has records
    assert consumer.poll(10) == []
    consumer.commit({PARTITION: PLACE})
    of = {request.name: request.connection for request in broker.transport.requests}
    assert of["Fetch"] is not of["OffsetCommit"]
    assert of["OffsetCommit"] is of["OffsetFetch"]


@pytest.mark.parametrize("version", [2, 5, 6, 8, 9, 10])
def test_a_commit_is_sent_in_the_version_of_the_broker(version: int) -> None:
    broker = Coordinator(versions={"OffsetCommit": version})
    with broker.member() as consumer:
        consumer.poll(100)  # the id of the topic is known then
        consumer.commit({PARTITION: PLACE})
    (request,) = broker.transport.sent("OffsetCommit")
    (topic,) = request.message.topics
    assert request.version == version
    assert (topic.name, topic.topic_id != "A" * 22) == (("orders", False) if version < 10 else ("", True))
    (row,) = topic.partitions
    assert (row.committed_offset, row.committed_metadata, row.committed_leader_epoch) == PLACE
    assert (request.message.generation_id_or_member_epoch, request.message.member_id) == (-1, "")


@pytest.mark.parametrize("version", [1, 5, 7, 8, 9, 10])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_committed_offsets_are_asked_in_the_version_of_the_broker(version: int, level: str) -> None:
    broker = Coordinator(versions={"OffsetFetch": version})
    with broker.member(isolation_level=level) as consumer:
        consumer.poll(100)
        assert consumer.committed([PARTITION]) == {PARTITION: PLACE}
    *_, request = broker.transport.sent("OffsetFetch")
    assert request.version == version
    assert request.message.require_stable == (version >= 7 and level == "read_committed")


@pytest.mark.parametrize(
    ("error", "finds_again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
    ],
)
def test_a_commit_is_repeated_after_an_error_that_passes(error: ErrorCode, finds_again: bool) -> None:
    broker = Coordinator()
    broker.errors = [error, error]
    with broker.member() as consumer:
        consumer.commit({PARTITION: 5})
    assert len(broker.transport.sent("OffsetCommit")) == 3
    assert len(broker.transport.sent("FindCoordinator")) == (3 if finds_again else 1)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.FENCED_INSTANCE_ID],
)
def test_a_commit_fails_with_an_error_that_stays(error: ErrorCode) -> None:
    broker = Coordinator()
    broker.errors = [error]
    with broker.member() as consumer, pytest.raises(KafkaError, match=f"group 'g'.*orders-0.*{error.name}"):
        consumer.commit({PARTITION: 5})
    assert len(broker.transport.sent("OffsetCommit")) == 1


def test_a_commit_during_a_rebalance_is_not_repeated() -> None:
    broker = Coordinator()
    broker.errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    with broker.member() as consumer, pytest.raises(RebalanceInProgressError):
        consumer.commit({PARTITION: 5})


def test_a_commit_gives_up_after_its_time() -> None:
    broker = Coordinator()
    broker.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100
    with broker.member() as consumer:
        with pytest.raises(KafkaTimeoutError, match="the commit of group 'g' failed for 3000 ms") as raised:
            consumer.commit({PARTITION: 5}, timeout_ms=3_000)
        assert isinstance(raised.value.__cause__, KafkaError)


def test_commit_async_is_not_repeated_and_keeps_the_order() -> None:
    broker = Coordinator()
    broker.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    errors: list[KafkaError | None] = []
    with broker.member() as consumer:
        for offset in (1, 2):
            consumer.commit_async({PARTITION: offset}, callback=lambda _, error: errors.append(error))
        consumer.commit({PARTITION: 3})
    sent = [
        each.message.topics[0].partitions[0].committed_offset
        for each in broker.transport.sent("OffsetCommit")
    ]
    assert sent == [1, 2, 3]
    assert [error and error.code for error in errors] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None]


def test_offsets_in_open_transactions_are_waited_for() -> None:
    broker = Coordinator()
    broker.fetch_errors = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 3
    with broker.member() as consumer:
        assert consumer.position(PARTITION) == 7
        assert len(broker.transport.sent("OffsetFetch")) == 4
        broker.fetch_errors = [ErrorCode.UNSTABLE_OFFSET_COMMIT]
        assert consumer.committed([PARTITION]) == {PARTITION: PLACE}


def test_a_committed_offset_has_the_epoch_of_its_fetch() -> None:
    broker = Coordinator()
    with broker.member() as consumer:
        consumer.poll(100)
    (wanted,) = broker.transport.sent("Fetch")[0].message.topics[0].partitions
    assert (wanted.fetch_offset, wanted.last_fetched_epoch) == (7, 3)

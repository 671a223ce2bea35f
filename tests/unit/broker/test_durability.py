"""Who is called back when something is durable, and in which order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, batch_of
from txnkafka.broker.durability import error_code
from txnkafka.broker.requests import NewTopic, ProduceRequest
from txnkafka.env import LocalDataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTimestampError, KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition

T0 = TopicPartition("t", 0)


def test_the_page_cache_acknowledges_in_the_order_of_the_log() -> None:
    """An append that needs no flush does not overtake one that does: the coordinator's records would take
    effect in another order than they have in its log."""
    node = Node(durability="page_cache")
    node.create(segment_bytes="260")
    answers: list[Any] = []
    for value in (b"a" * 100, b"b" * 100):
        node.broker.call(
            node.broker.produce, ProduceRequest({T0: batch_of(value)}), answers.append, now_ms=NOW
        )
    flush = node.broker.begin_flush()  # of the first segment; then the second one gets its name
    assert flush is not None
    node.broker.finish_flush(flush, flush.run(), now_ms=NOW)
    assert node.broker.logs[T0].active.is_named
    assert len(answers) == 1
    node.broker.call(node.broker.produce, ProduceRequest({T0: batch_of(b"c")}), answers.append, now_ms=NOW)
    node.settle()
    assert [answer[T0].base_offset for answer in answers] == [0, 1, 2]


def test_a_file_that_cannot_be_read_is_the_storage_s_error() -> None:
    """As in an append that looks for its duplicate in the log; with any other code clients give up."""
    assert error_code(LogDirError("cannot read")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert error_code(OSError("cannot read")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert error_code(InvalidTimestampError("too late")) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("durability", ["fsync", "page_cache"])
def test_who_waits_for_a_log_that_has_failed_hears_of_it(durability: str) -> None:
    """All that is in the log is durable, and the log may lack the records that the caller waits for."""
    node = Node(durability=durability)
    node.create()
    log = node.broker.logs[T0]
    node.append(batch_of(b"a"))
    log.flush()
    assert log.recovery_point == log.log_end_offset
    log.fence(OSError(5, "planned"))
    heard: list[ErrorCode] = []
    node.broker.durability.when_durable(log, heard.append)
    node.settle()
    assert heard == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_close_that_fails_answers_the_requests_that_wait() -> None:
    """The log that fails answers with its error, and the one that was closed acknowledges."""
    node = Node()
    node.create(partitions=2)
    answers: list[Any] = []
    for number in range(2):
        where = TopicPartition("t", number)
        request = ProduceRequest({where: batch_of(b"a")})
        node.request(node.broker.produce, request, answers.append)
    node.broker.logs[T0].guarded_by.put_up(OSError("planned"))  # as a failed append
    with pytest.raises(KafkaStorageError):
        node.broker.close()
    found = {partition: result.error for answer in answers for partition, result in answer.items()}
    assert found == {T0: ErrorCode.KAFKA_STORAGE_ERROR, TopicPartition("t", 1): ErrorCode.NONE}


def test_a_wait_for_a_failed_log_overtakes_no_earlier_one() -> None:
    node = Node()
    node.create()
    log, heard = node.broker.logs[T0], list[str]()
    node.request(node.broker.produce, ProduceRequest({T0: batch_of(b"a")}), lambda _: None)
    log.when_durable(log.log_end_offset, lambda error: heard.append(f"first: {error}"))
    log.guarded_by.put_up(OSError("planned"))  # as a failed append
    log.when_durable(log.log_end_offset, lambda error: heard.append(f"second: {error}"))
    assert heard == ["first: planned", "second: planned"]


def test_an_abandoned_broker_leaves_no_file_open_under_a_flush(tmp_path: Path) -> None:
    node = Node(LocalDataFiles(), str(tmp_path / "data"))
    node.request(node.broker.topics.create, [NewTopic("u")], lambda _: None)
    assert node.broker.begin_flush() is not None
    node.broker.abandon()
    left = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    assert [name for name in left if name.startswith(str(tmp_path))] == []

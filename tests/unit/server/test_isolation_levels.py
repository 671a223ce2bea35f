"""An isolation level that there is not is an error of its request, as in Kafka, and one line of the log."""

from __future__ import annotations

import pytest

from tests.unit.server.wire_node import node, topic_id
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages import fetch, list_offsets


@pytest.mark.parametrize("level", [-1, 2, 127])
@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_fetch(level: int, version: int, caplog: pytest.LogCaptureFixture) -> None:
    of = node()
    topic = {"topic_id": topic_id(of)} if version >= 13 else {"topic": "t"}
    topics = (fetch.FetchTopic(partitions=(fetch.FetchPartition(partition=0),), **topic),)
    answer = of.ask("Fetch", version, topics=topics, isolation_level=level)
    ((partition,),) = (found.partitions for found in answer.responses)
    assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert f"Fetch is refused: unknown isolation level {level}" in _warning(caplog)


@pytest.mark.parametrize("level", [-1, 2])
@pytest.mark.parametrize("version", [2, 11])
def test_list_offsets(level: int, version: int, caplog: pytest.LogCaptureFixture) -> None:
    partition = list_offsets.ListOffsetsPartition(timestamp=-1)
    topics = (list_offsets.ListOffsetsTopic(name="t", partitions=(partition,)),)
    answer = node().ask("ListOffsets", version, topics=topics, isolation_level=level)
    ((found,),) = (topic.partitions for topic in answer.topics)
    assert (found.error_code, found.offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
    assert f"ListOffsets is refused: unknown isolation level {level}" in _warning(caplog)


def _warning(caplog: pytest.LogCaptureFixture) -> str:
    """The only line of the log."""
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    return record.getMessage()

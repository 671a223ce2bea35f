"""Whatever a request says, it is answered once or refused as a whole, and the broker goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.server.wire_node import WireNode, node
from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidRequestError
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import SERVED
from txnkafka.server.peer import CloseConnection
from txnkafka.wire.messages import APIS
from txnkafka.wire.messages import write_txn_markers as markers

LONGEST_MS = 1 << 32  # beyond every wait of a request
COUNT = 20  # of messages in each version


def answered(of: WireNode, api: Any, version: int, number: int) -> list[Any]:
    """The answers of one random request; none where its connection would be closed."""
    message = random_message(Message(api, "Request", version), number)
    fields = {name: getattr(message, name) for name in message.__slots__}
    answers: list[Any] = []
    try:
        of.send(api.name, version, fields, answers.append)
    except InvalidRequestError:
        assert answers == []
        return [CloseConnection("refused")]
    of.settle()
    of.wait(LONGEST_MS)
    return answers


@pytest.mark.parametrize("api", [APIS[key] for key in sorted(SERVED)], ids=lambda api: api.name)
def test_every_request_is_answered_once(api: Any) -> None:
    of, messages = node(2), 0
    for number in range(COUNT):
        for version in range(api.min_version, api.announced[1] + 1):
            (answer,) = answered(of, api, version, number)
            assert answer is not None or api.name == "Produce"
            messages += isinstance(answer, api.response)
        if "t" in of.broker.image.topics:
            assert of.append(batch_of(b"a")).error == 0
        else:
            of.create("t", 2)
    assert messages > COUNT / 2
    of.restart()


@pytest.mark.parametrize("identity", [(-1, 0), (7, -1)])
def test_a_marker_of_no_producer_is_not_written(identity: tuple[int, int]) -> None:
    of = node()
    topics = (markers.WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),)
    marker = markers.WritableTxnMarker(
        producer_id=identity[0], producer_epoch=identity[1], topics=topics
    )
    (answer,) = of.ask("WriteTxnMarkers", 1, markers=(marker,)).markers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert of.broker.logs[TopicPartition("t", 0)].log_end_offset == 0

"""Whatever a request says, it is answered once or refused as a whole, and the broker goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.server.wire_node import WireNode, node
from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.errors import InvalidRequestError
from txnkafka.server.context import CloseConnection
from txnkafka.server.handlers import SERVED
from txnkafka.wire.messages import APIS

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

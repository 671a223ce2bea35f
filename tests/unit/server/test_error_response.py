"""Whatever a request asked for, the response that says that it failed can be written, and says so of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.error_codes import ErrorCode
from txnkafka.server.error_response import error_response
from txnkafka.server.handlers import SERVED
from txnkafka.wire.fields import fields_of, is_message
from txnkafka.wire.messages import APIS, read_response, write_response
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
MANY = 20


def codes(message: Any, version: int) -> Iterator[int]:
    for field in fields_of(type(message)):
        if not field.is_in(version):
            continue
        value = getattr(message, field.name)
        if field.name in ("error_code", "partition_error_code"):
            yield value
        elif isinstance(value, tuple):
            for each in value:
                if is_message(each):
                    yield from codes(each, version)


@pytest.mark.parametrize("api", [APIS[key] for key in sorted(SERVED)], ids=lambda api: api.name)
def test_each_api_in_each_version_can_say_that_it_failed(api: Any) -> None:
    said = 0
    for version in range(api.min_version, api.announced[1] + 1):
        for number in range(MANY):
            values = random_message(Message(api, "Request", version), number)
            request = api.request(**{name: getattr(values, name) for name in values.__slots__})
            response = error_response(api, version, request, UNKNOWN)
            if response is None:
                assert request.acks == 0
                continue
            written = b"".join(map(bytes, write_response(api, version, 7, response)))
            correlation_id, read = read_response(api, version, written[4:])
            assert correlation_id == 7
            assert set(codes(read, version)) <= {UNKNOWN}
            said += any(True for _ in codes(read, version))
    assert said > MANY / 2


def test_elements_have_the_identities_of_the_request() -> None:
    api = next(each for each in APIS.values() if each.name == "Produce")
    topic = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=3), PartitionProduceData()))
    request = ProduceRequest(acks=-1, topic_data=(topic,))
    (answer,) = error_response(api, 9, request, UNKNOWN).responses
    assert answer.name == "t"
    assert [(each.index, each.error_code) for each in answer.partition_responses] == [(3, -1), (0, -1)]
    assert error_response(api, 9, ProduceRequest(acks=0), UNKNOWN) is None

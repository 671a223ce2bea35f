"""Two independent libraries read what is written here, field by field, and write what is read here.

kio is generated from Kafka's definitions, one class a version; kafka-python interprets them.
"""

from __future__ import annotations

import dataclasses
import io
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.conftest import sampled
from tests.unit.wire.messages.frames import body_of, frame_of, header_size, message_of
from tests.unit.wire.messages.kafka_apis import MESSAGES, Message
from tests.unit.wire.messages.values import Chooser, random_message
from txnkafka.wire.fields import MessageField, fields_of, is_message, replaced
from txnkafka.wire.schema import ZERO_UUID, Scalar

SAMPLES = 5
NOT_IN_KAFKA_PYTHON = {
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "CreateDelegationToken", "RenewDelegationToken",
    "ExpireDelegationToken", "DescribeDelegationToken", "UnregisterBroker",
}  # fmt: skip
NEW_IN_4_4 = {("ApiVersions", 5), ("TxnOffsetCommit", 6), ("DeleteGroups", 3)}
"""Neither library has them; tests/conformance compares them with Apache Kafka's own classes."""
IN_LIBRARIES = [each for each in MESSAGES if (each.api.name, each.version) not in NEW_IN_4_4]


def kafka_python_classes() -> dict[str, Any]:
    """kafka-python's classes by Kafka's names."""
    for room in ("admin", "consumer", "metadata", "producer", "sasl"):
        import_module(f"kafka.protocol.{room}")
    return {cls.name: cls for cls in reversed(ApiMessage.__subclasses__())}


KAFKA_PYTHON = kafka_python_classes()


class ModestChooser(Chooser):
    """Values that kio has a Python type for: known error codes, times after 1970."""

    def scalar(self, kind: Scalar, field: MessageField) -> Any:
        if field.name.endswith("error_code"):
            return self.random.randrange(-1, 100)
        return self.random.getrandbits(41) if kind.name == "int64" else super().scalar(kind, field)


def plain(value: Any) -> Any:
    """A value of kio or kafka-python as it is here; structs become dictionaries."""
    match value:
        case timedelta():
            return value // timedelta(milliseconds=1)
        case datetime():
            return round(value.timestamp() * 1000)
        case UUID():
            return urlsafe_b64encode(value.bytes)[:22].decode()
        case tuple() | list():
            return tuple(map(plain, value))
        case DataContainer():
            present = [field.name for field in value._struct._fields if field.for_version_q(value.version)]
            return {name: plain(getattr(value, name)) for name in present}
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def agree(ours: Any, theirs: Any) -> bool:
    """Whether a value of ours has their fields. kio has None for no uuid and for the time -1; kafka-python
    has None for a struct of defaults, and numbers of bits for authorized operations."""
    match theirs:
        case tuple() if isinstance(ours, tuple):
            return len(ours) == len(theirs) and all(map(agree, ours, theirs))
        case set():
            return bool(sum(1 << bit for bit in theirs) == ours & 0xFFFFFFFF)
        case None if is_message(ours):
            return bool(ours == type(ours)())
        case None:
            return ours in (None, ZERO_UUID, -1)
        case dict():
            names = {our_name(ours, name): name for name in theirs}
            absent = (field for field in fields_of(type(ours)) if field.name not in names)
            return all(agree(getattr(ours, name), theirs[names[name]]) for name in names) and all(
                getattr(ours, field.name) == field.default for field in absent
            )
    return bool(ours == theirs)


def our_name(ours: Any, name: str) -> str:
    """kio leaves out units of time, kafka-python the resource of authorized operations."""
    fields = [field.name for field in fields_of(type(ours))]
    others = (f"{name}_ms", f"cluster_{name}", f"topic_{name}", f"{name}_or_member_epoch")
    return name if name in fields else next(each for each in fields if each in others)


@pytest.mark.parametrize("message", sampled(IN_LIBRARIES, every=5), ids=str)
def test_kio(message: Message) -> None:
    load = load_request_schema if message.kind == "Request" else load_response_schema
    cls = load(message.api.key, message.version)
    for number in range(SAMPLES):
        value = ModestChooser(f"{message} {number}", number).struct(message.cls, message.version)
        body = body_of(message, value)
        read, size = entity_reader(cls)(body, 0)
        assert size == len(body)
        assert agree(value, plain(read)), (value, read)
        written = io.BytesIO()
        entity_writer(cls)(written, read)
        header = frame_of(message, value)[: header_size(message)]
        assert message_of(message, header + written.getvalue()) == value


@pytest.mark.parametrize(
    "message",
    sampled((each for each in IN_LIBRARIES if each.api.name not in NOT_IN_KAFKA_PYTHON), every=5),
    ids=str,
)
def test_kafka_python(message: Message) -> None:
    cls = KAFKA_PYTHON[message.name]
    for number in range(SAMPLES):
        value = random_message(message, number)
        if message.name == "ApiVersionsResponse":  # which it takes for version 0 if there is an error
            value = replaced(value, error_code=0)
        body = body_of(message, value)
        read = cls.decode(body, version=message.version)
        assert agree(value, plain(read)), (value, read)
        read._header = None  # which decode() leaves unset and encode() looks at
        header = frame_of(message, value)[: header_size(message)]
        assert message_of(message, header + bytes(read.encode(version=message.version))) == value

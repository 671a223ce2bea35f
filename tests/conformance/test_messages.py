"""Kafka's own classes write the same bytes for every request and response, and read what is written here.

All APIs and versions, over random values of one seed, and the headers around them.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.fuzz.mutations import put_number, resize_bytes
from tests.unit.wire.messages.frames import body_of, frame_of, header_size, message_of
from tests.unit.wire.messages.kafka_apis import KAFKA_APIS, MESSAGES, Message, our_facts, snake
from tests.unit.wire.messages.values import random_message
from txnkafka._core.message_reader import read
from txnkafka.bounds import MAX_MESSAGE_VALUES
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.fields import ArrayOf, MessageField, fields_of
from txnkafka.wire.messages import APIS, Api, RequestHeader, read_request_header, write_request
from txnkafka.wire.schema import Scalar, SchemaError
from txnkafka.wire.tables import table_of

DAMAGED = 60
SAMPLES = 25  # of each message and version; the first have neither tagged fields nor elements
OTHER = {
    "bool": True,
    "int8": 5,
    "int16": 5,
    "int32": 5,
    "int64": 5,
    "uint16": 5,
    "float64": 5.5,
    "uuid": "AAAAAAAAAAEAAAAAAAAAAg",
    "string": "text",
    "bytes": b"bytes",
    "records": b"records",
}
EACH_MESSAGE = pytest.mark.parametrize("message", MESSAGES, ids=str)

class Kafka:
    """Messages.java, asked line by line."""

    def __init__(self) -> None:
        command = ["java", *OPTIONS, "-cp", compiled(), "Messages"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, *words: object) -> list[str]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\t".join(map(_word, words)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the Java process ended at {words}"
        return line.rstrip("\n").split("\t")

    def close(self) -> None:
        self._process.communicate()


def _word(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value) if isinstance(value, dict) else str(value)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    found = Kafka()
    yield found
    found.close()


def kafka_json(message: Message, value: Any) -> dict[str, Any]:
    """A message as Kafka's JsonConverter takes it."""
    return _struct(KAFKA_APIS[message.api.key][message.kind.lower()], message.version, value)


def _struct(fields: list[dict[str, Any]], version: int, value: Any) -> dict[str, Any]:
    found = {}
    for field in fields:
        lowest, highest = map(int, field["v"].split("-"))
        if lowest <= version <= highest:
            name = field["n"][0].lower() + field["n"][1:]
            found[name] = _value(field, version, getattr(value, snake(field["n"])))
    return found


def _value(field: dict[str, Any], version: int, value: Any) -> Any:
    if value is None:
        return None
    if field["t"] == "struct":
        return _struct(field["f"], version, value)
    if field["t"] == "[struct]":
        return [_struct(field["f"], version, element) for element in value]
    if isinstance(value, tuple):
        return list(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value


@EACH_MESSAGE
def test_kafka_writes_the_same_bytes(kafka: Kafka, message: Message) -> None:
    for number in range(SAMPLES):
        value = random_message(message, number)
        ours = body_of(message, value)
        asked = kafka_json(message, value)
        assert kafka.ask("write", message.name, message.version, asked) == [ours.hex()]


@EACH_MESSAGE
def test_kafka_reads_what_is_written(kafka: Kafka, message: Message) -> None:
    for number in range(SAMPLES):
        ours = body_of(message, random_message(message, number))
        again, left = kafka.ask("again", message.name, message.version, ours)
        assert (again, left) == (ours.hex(), "0")


@EACH_MESSAGE
def test_kafka_finds_the_message_behind_the_header(kafka: Kafka, message: Message) -> None:
    frame = frame_of(message, message.cls())
    left = str(len(frame) - header_size(message))
    if message.kind == "Request":
        wanted = [str(message.api.key), str(message.version), "7", "client", left]
        assert kafka.ask("request", frame) == wanted
    else:
        header_version = message.api.response_header_version(message.version)
        assert kafka.ask("response", header_version, frame) == ["7", left]


@EACH_MESSAGE
def test_kafka_leaves_what_follows_a_message(kafka: Kafka, message: Message) -> None:
    body = body_of(message, random_message(message))
    _, left = kafka.ask("again", message.name, message.version, body + b"left over")
    assert left == "9"


@EACH_MESSAGE
def test_kafka_refuses_and_drops_the_same_in_versions_without_a_field(kafka: Kafka, message: Message) -> None:
    for value in one_field_each(message):
        asked = kafka_json(message, value)
        for other in versions_of(message):
            answer = kafka.ask("change", message.name, message.version, other.version, asked)[0]
            ours = written(other, value)
            assert (ours is None) == answer.startswith("error"), (other.version, value, answer)
            assert ours is None or ours.hex() == answer


def written(message: Message, value: Any) -> bytes | None:
    try:
        return body_of(message, value)
    except InvalidRequestError:
        return None


def one_field_each(message: Message) -> Iterator[Any]:
    """Messages of defaults with one field that has another value, at any depth."""
    for steps in _paths(message.cls, message.version):
        yield _with_value(message, message.cls, steps)


def _paths(cls: type, version: int) -> Iterator[list[MessageField]]:
    for field in fields_of(cls):
        if field.is_in(version):
            yield [field]
            element = _element(field)
            if not isinstance(element, Scalar):
                yield from ([field, *steps] for steps in _paths(element, version))


def _element(field: MessageField) -> Scalar | type:
    kind = field.schema.type
    return kind.element if isinstance(kind, ArrayOf) else kind


def _with_value(message: Message, cls: type, steps: list[MessageField]) -> Any:
    field, *inner = steps
    element = _element(field)
    if inner:
        value = _with_value(message, element, inner)
    elif isinstance(element, Scalar):
        value = OTHER[element.name]
    else:
        value = element()
    return cls(**{field.name: (value,) if isinstance(field.schema.type, ArrayOf) else value})


def versions_of(message: Message) -> list[Message]:
    versions = range(message.api.min_version, message.api.max_version + 1)
    return [message._replace(version=version) for version in versions]


def test_a_client_id_may_be_null_and_is_never_compact(kafka: Kafka) -> None:
    for version in (0, 5):
        frame = b"".join(write_request(RequestHeader(APIS[26], version, 1), APIS[26].request()))[4:]
        assert kafka.ask("request", frame)[:4] == ["26", str(version), "1", ""]


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_kafka_announces_the_same_versions(kafka: Kafka, api: Api) -> None:
    assert tuple(map(int, kafka.ask("announced", api.key))) == api.announced


@pytest.mark.parametrize("api_key", [18, 26])
@pytest.mark.parametrize("tags", [b"\0", b"\1\0\0"])
def test_kafka_reads_the_header_of_a_later_version(kafka: Kafka, api_key: int, tags: bytes) -> None:
    frame = struct.pack(">hhih", api_key, 99, 7, 6) + b"client" + tags
    assert kafka.ask("request", frame)[:4] == [str(api_key), "99", "7", "client"]
    header, _ = read_request_header(frame)
    assert header == RequestHeader(APIS[api_key], 99, 7, "client")


STRICTER_THAN_KAFKA = re.compile(
    "string is not UTF-8|tag [0-9]+ follows tag|are left over in the tagged field|begins with 1 or -1"
    r"|length -\d+ is negative|varint has more than 32 bits|[2-4]\d{9} (elements|tagged fields) do not fit"
)
CUT_OFF = re.compile(" are left|is cut off")  # for Kafka only at the end of the message


@EACH_MESSAGE
def test_kafka_reads_and_refuses_the_same_damaged_bytes(kafka: Kafka, message: Message) -> None:
    chosen = Random(str(message))
    has_tags = any(fact.tag is not None for fact in our_facts(message))
    for number in range(DAMAGED):
        body = damaged(chosen, body_of(message, random_message(message, number % 5)))
        answer = kafka.ask("read", message.name, message.version, body)[0]
        found = read_or_error(message, body)
        if isinstance(found, SchemaError):
            stricter = STRICTER_THAN_KAFKA.search(found.reason) or (has_tags and CUT_OFF.search(found.reason))
            assert answer.startswith("error") or stricter, (body.hex(), str(found), answer)
            continue
        value, position = found
        assert answer == str(len(body) - position), (body.hex(), value, answer)
        again, _ = kafka.ask("again", message.name, message.version, body)
        ours = body_of(message, value)
        # Kafka keeps tagged fields that it does not know
        assert again == ours.hex() if len(again) == 2 * len(ours) else len(again) > 2 * len(ours)


def read_or_error(message: Message, body: bytes) -> tuple[Any, int] | SchemaError:
    table = table_of(message.cls, message.version, message.flexible)
    try:
        return read(table, memoryview(body), 0, [MAX_MESSAGE_VALUES, MAX_MESSAGE_VALUES])
    except SchemaError as error:
        return error


def damaged(chosen: Random, body: bytes) -> bytes:
    at = chosen.randrange(len(body) + 1)
    match chosen.randrange(4):
        case 0:
            return put_number(chosen, body, (at, chosen.choice((1, 2, 4))))
        case 1:
            return body[:at] + chosen.choice((b"\0", b"\1", b"\xff", b"\x80\x01")) + body[at + 1 :]
        case 2:
            return body[:at]
    return resize_bytes(chosen, body)


MANY_KEYS = f"02 0000 {800_000:08x} {'0000' * 800_000}"  # Kafka reads up to 1,000,000 in one array
TAKEN_BY_KAFKA = {
    "text that is no UTF-8": ("EndTxnRequest", 0, "0001 ff 0000000000000001 0000 01"),
    "tags that descend": ("EndTxnRequest", 3, "02 74 0000000000000001 0000 01 02 06 00 05 00"),
    "a tag twice": ("EndTxnRequest", 3, "02 74 0000000000000001 0000 01 02 05 00 05 00"),
    "a length of -2 for null": ("ProduceRequest", 3, "fffe 0000 00000000 00000000"),
    "a varint of 32 bits for null": ("MetadataRequest", 9, "ffffffff0f 01 00 00 00"),
    "a tag that is too short": ("ApiVersionsResponse", 3, "0000 01 00000000 01 01 04 0000000000000005"),
    "bytes left in a tag": ("ApiVersionsResponse", 3, "0000 01 00000000 01 01 09 0000000000000005 00"),
    "many elements": ("DescribeConfigsRequest", 1, f"00000003 {MANY_KEYS * 3} 00"),
    "a presence of 2": ("DescribeTopicPartitionsRequest", 0, "01 000007d0 02 02 74 00000000 00 00"),
}


@pytest.mark.parametrize("case", TAKEN_BY_KAFKA)
def test_kafka_takes_what_is_refused_here(kafka: Kafka, case: str) -> None:
    """The lines of DIVERGENCES.md about requests."""
    name, version, text = TAKEN_BY_KAFKA[case]
    (message,) = (each for each in MESSAGES if (each.name, each.version) == (name, version))
    body = bytes.fromhex(text)
    assert kafka.ask("read", name, version, body)[0] in ("0", "1")
    frame = frame_of(message, message.cls())[: header_size(message)] + body
    with pytest.raises(InvalidRequestError):
        message_of(message, frame)

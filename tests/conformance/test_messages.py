"""Kafka's own classes write the same bytes for every request and response, and read what is written here.

All APIs and versions, over random values of one seed, and the headers around them.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.unit.wire.messages.frames import body_of, frame_of, header_size
from tests.unit.wire.messages.kafka_apis import KAFKA_APIS, MESSAGES, Message, snake
from tests.unit.wire.messages.values import random_message
from txnkafka.errors import InvalidRequestError
from txnkafka.wire.messages import APIS, RequestHeader, read_request, read_request_header, write_request

SAMPLES = 25  # of each message and version; the first have neither tagged fields nor elements
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


def test_a_client_id_may_be_null_and_is_never_compact(kafka: Kafka) -> None:
    for version in (0, 5):
        frame = b"".join(write_request(RequestHeader(APIS[26], version, 1), APIS[26].request()))[4:]
        assert kafka.ask("request", frame)[:4] == ["26", str(version), "1", ""]

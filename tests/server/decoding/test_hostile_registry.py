"""Answers of a registry that are wrong, huge or slow are errors, within bounded memory and time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.server.decoding.registry_server import Registry, serving
from tests.unit.decoding.schemas import framed
from txnkafka.decoding import AvroDecoder, RegistryDecoder
from txnkafka.errors import DecodeError, KafkaError


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


@pytest.mark.parametrize(
    "references",
    [
        5,
        "city",
        [5],
        [{}],
        [{"subject": "city"}],
        [{"subject": 1, "version": 1}],
        [{"subject": "city", "version": "1"}],
    ],
    ids=str,
)
def test_references_that_are_none(registry: Registry, references: Any) -> None:
    registry.documents["/schemas/ids/1"] = {"schema": '"string"', "references": references}
    with pytest.raises(DecodeError, match="schema 1: its references cannot be read"):
        RegistryDecoder(registry.url)(framed(1, b""))


def test_a_subject_that_no_address_can_have(registry: Registry) -> None:
    references = [{"subject": "\ud800", "version": 1}]
    registry.documents["/schemas/ids/1"] = {"schema": '"string"', "references": references}
    with pytest.raises(DecodeError, match=r"the registry .* has no version 1 of"):
        RegistryDecoder(registry.url)(framed(1, b""))


def test_references_one_behind_the_other(registry: Registry) -> None:
    for number in range(600):
        references = [{"subject": f"s{number}", "version": 1}]
        path = f"/subjects/s{number - 1}/versions/1" if number else "/schemas/ids/1"
        registry.documents[path] = {"schema": '"string"', "references": references}
    with pytest.raises(DecodeError, match="schema 1: its references are nested too deeply"):
        RegistryDecoder(registry.url)(framed(1, b""))
    assert len(registry.asked) < 100


def test_references_are_limited_in_size(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txnkafka.decoding.registry.MAX_TEXT", 1000)
    references = [{"subject": f"s{number}", "version": 1} for number in range(9)]
    registry.documents["/schemas/ids/1"] = {"schema": '"string"', "references": references}
    for number in range(9):
        registry.documents[f"/subjects/s{number}/versions/1"] = {"schema": f"{'x' * 300}"}
    with pytest.raises(DecodeError, match="schema 1: its references have more than 1000 characters"):
        RegistryDecoder(registry.url)(framed(1, b""))
    assert len(registry.asked) == 5


def test_kept_schemas_are_limited_in_size(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txnkafka.decoding.registry.MAX_TEXT", 1000)
    for number in range(3):
        registry.documents[f"/schemas/ids/{number}"] = {"schema": " " * 400 + '"null"'}
    decode = RegistryDecoder(registry.url)
    for number in (0, 1, 2, 2, 0):
        assert decode(framed(number, b"")) is None
    assert len(registry.asked) == 4


@pytest.mark.parametrize("text", ["a", "\u1234", "===="])
def test_a_descriptor_that_is_no_base64(registry: Registry, text: str) -> None:
    registry.documents["/schemas/ids/1"] = {"schema": "", "schemaType": "PROTOBUF"}
    registry.documents["/schemas/ids/1?format=serialized"] = {"schema": text}
    with pytest.raises(DecodeError, match="schema 1: the Protobuf schema is invalid"):
        RegistryDecoder(registry.url)(framed(1, b"\0"))


@pytest.mark.parametrize("content", [b"<html>", b"[" * 200_000, b"\xff", b"9" * 5000])
def test_an_answer_that_is_no_schema(registry: Registry, content: bytes) -> None:
    registry.documents["/schemas/ids/1"] = content
    with pytest.raises(KafkaError, match="did not return a schema"):
        RegistryDecoder(registry.url)(framed(1, b""))


def test_an_answer_that_does_not_end(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time; the whole answer, which is no schema, would take five seconds."""
    monkeypatch.setattr("txnkafka.env.http.TIMEOUT_SECONDS", 0.3)
    registry.documents["/schemas/ids/1"], registry.pause = b" " * 100, 0.05
    with pytest.raises(KafkaError, match=r"/schemas/ids/1 does not answer within 0\.3 seconds"):
        RegistryDecoder(registry.url)(framed(1, b""))


@pytest.mark.parametrize("path", ["/\u00e4", "/\udcff"])
def test_an_address_that_cannot_be_asked(path: str) -> None:
    with pytest.raises(KafkaError, match="does not answer"):
        RegistryDecoder(f"http://127.0.0.1:1{path}")(framed(1, b""))


def doubled(depth: int, leaf: str) -> Any:
    """Return a record of two records of two records …"""
    found: Any = leaf
    for level in range(depth, 0, -1):
        again = leaf if level == depth else f"R{level + 1}"
        fields = [{"name": "a", "type": found}, {"name": "b", "type": again}]
        found = {"type": "record", "name": f"R{level}", "fields": fields}
    return found


@pytest.mark.parametrize("depth", [10, 60])
@pytest.mark.parametrize("within", ["record", "array"])
def test_a_datum_without_bytes_is_small(depth: int, within: str) -> None:
    record = doubled(depth, "null")
    fields = [{"name": "x", "type": "int"}, {"name": "y", "type": record}]
    schemas = {
        "record": {"type": "record", "name": "T", "fields": fields},
        "array": {"type": "array", "items": record},
    }
    with pytest.raises(KafkaError, match="which no bytes limit"):
        AvroDecoder(json.dumps(schemas[within]))


def test_doubled_records_with_content_are_decoded() -> None:
    assert AvroDecoder(doubled(3, "int"))(bytes(8))["b"]["b"] == {"a": 0, "b": 0}
    assert AvroDecoder(doubled(3, "null"))(b"")["b"]["b"] == {"a": None, "b": None}


@pytest.mark.parametrize("depth", [300, 600, 900])
def test_a_deep_schema_is_an_error_or_decodes(depth: int) -> None:
    """How deep a schema may be depends on the stack; anything else than KafkaError would be a traceback."""
    schema = '{"type":"array","items":' * depth + '"int"' + "}" * depth
    with suppress(KafkaError):
        assert AvroDecoder(schema)(b"\0") == []

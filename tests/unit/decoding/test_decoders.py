"""Decoders of keys and values: what they return, and what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from tests.unit.decoding.schemas import ORDER_AVRO, avro, order_file, order_message
from txnkafka.decoding import AvroDecoder, JsonDecoder, ProtobufDecoder
from txnkafka.decoding.avro_schema import is_recursive
from txnkafka.errors import DecodeError, KafkaError, LogDirError, MissingPackageError

ORDER = {"id": 7, "city": "Rio", "at": datetime(2026, 1, 31, tzinfo=UTC)}


def test_avro(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(ORDER_AVRO)
    decode = AvroDecoder.from_file(str(tmp_path / "order.avsc"))
    assert decode(avro(ORDER_AVRO, ORDER)) == ORDER
    assert AvroDecoder('"string"')(b"\x06abc") == "abc"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it does not match the Avro schema: it ends too early"),
        (avro(ORDER_AVRO, ORDER)[:-1], "it does not match the Avro schema"),
        (avro(ORDER_AVRO, ORDER) + b"xy", "2 bytes follow the datum"),
        (b"\x02\x7f", "it does not match the Avro schema"),
    ],
)
def test_what_is_not_of_the_avro_schema(content: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        AvroDecoder(ORDER_AVRO)(content)


RECURSIVE = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'


def test_data_that_are_nested_without_end(tmp_path: Path) -> None:
    decode = AvroDecoder(RECURSIVE)
    assert decode(b"\x02\x02\x00") == {"next": {"next": {"next": None}}}
    with pytest.raises(DecodeError, match="RecursionError"):
        decode(b"\x02" * 1_000_000)
    with pytest.raises(DecodeError, match="RecursionError"):
        AvroDecoder('"N"', [RECURSIVE])(b"\x02" * 1_000_000)


def test_references_of_a_union_as_registries_have_them() -> None:
    city = '{"type": "record", "name": "a.b.City", "fields": [{"name": "n", "type": "string"}]}'
    kind = '{"type": "enum", "name": "Kind", "namespace": "a.b", "symbols": ["X", "Y"]}'
    order = {"type": "record", "name": "Order", "namespace": "a.b", "fields": []}
    kinds = {"type": "array", "items": "Kind"}
    fields = {"at": "City", "from": ["null", "City"], "kind": "a.b.Kind", "all": kinds}
    order["fields"] = [{"name": name, "type": kind} for name, kind in fields.items()]
    references = (city, kind, json.dumps(order))
    union = '["a.b.City", "a.b.Order", "null"]'
    datum = {"at": {"n": "x"}, "from": {"n": "y"}, "kind": "Y", "all": ["X", "Y"]}
    decode = AvroDecoder(union, references)
    # the second of the union; a string of one byte; the second, a string; Y; two items, X and Y, and no more
    assert decode(b"\x02" + b"\x02x" + b"\x02\x02y" + b"\x02" + b"\x04\x00\x02\x00") == datum
    assert decode(b"\x00\x02z") == {"n": "z"}
    assert AvroDecoder('"a.b.Kind"', references)(b"\0") == "X"


@pytest.mark.parametrize(
    "items",
    [
        '"null"',
        '{"type": "null"}',
        '{"type": "record", "name": "R", "fields": []}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]}',
        '{"type": "fixed", "name": "F", "size": 0}',
    ],
)
def test_items_without_content_are_refused(items: str) -> None:
    array = f'{{"type": "array", "items": {items}}}'
    with pytest.raises(KafkaError, match="an array of items without content"):
        AvroDecoder(f'{{"type": "record", "name": "T", "fields": [{{"name": "x", "type": {array}}}]}}')


@pytest.mark.parametrize("items", ['"int"', '["null"]', RECURSIVE, '{"type": "map", "values": "null"}'])
def test_items_with_content(items: str) -> None:
    assert AvroDecoder(f'{{"type": "array", "items": {items}}}')(b"\0") == []


def test_a_type_that_is_used_twice_is_not_recursive() -> None:
    pair = json.dumps({
        "type": "record",
        "name": "Pair",
        "fields": [
            {"name": "a", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}},
            {"name": "b", "type": "P"},
        ],
    })  # fmt: skip
    names: dict[str, object] = {}
    assert not is_recursive(fastavro.parse_schema(json.loads(pair), names), names)
    assert AvroDecoder(pair)(b"\x02\x04") == {"a": {"x": 1}, "b": {"x": 2}}


def test_schemas_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="the Avro schema is invalid"):
        AvroDecoder('{"type": "nothing"}')
    with pytest.raises(KafkaError, match="the Avro schema is invalid"):
        AvroDecoder("{")
    with pytest.raises(LogDirError, match=r"the schema .*none.avsc cannot be read"):
        AvroDecoder.from_file(str(tmp_path / "none.avsc"))
    with pytest.raises(KafkaError, match="the Protobuf schema is invalid"):
        ProtobufDecoder([order_file().SerializeToString()], "shop.Refund")
    (tmp_path / "order.pb").write_bytes(b"\xff\xff")
    with pytest.raises(KafkaError, match="is not a descriptor set of protoc"):
        ProtobufDecoder.from_file(str(tmp_path / "order.pb"), "shop.Order")


def test_protobuf(tmp_path: Path) -> None:
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    files = descriptor_pb2.FileDescriptorSet(file=[timestamp, order_file()])
    (tmp_path / "order.pb").write_bytes(files.SerializeToString())
    decode = ProtobufDecoder.from_file(str(tmp_path / "order.pb"), "shop.Order")
    content = order_message("shop.Order", id=5, first_line={"at": {"seconds": 1}})
    assert decode(content) == {"id": "5", "first_line": {"at": "1970-01-01T00:00:01Z"}}
    with pytest.raises(DecodeError, match=r"it is not a shop\.Order"):
        decode(b"\xff")


def test_json() -> None:
    assert JsonDecoder()(b'{"a": [1, null]}') == {"a": [1, None]}
    for content in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(DecodeError, match="it is not JSON"):
            JsonDecoder()(content)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("txnkafka.env.packages.import_module", missing)
    with pytest.raises(MissingPackageError, match=r"Avro needs fastavro .*pip install 'txnkafka\[decode\]'"):
        AvroDecoder(ORDER_AVRO)
    with pytest.raises(MissingPackageError, match=r"Protobuf needs google.*'txnkafka\[decode\]'"):
        ProtobufDecoder([], "shop.Order")

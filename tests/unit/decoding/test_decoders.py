"""Decoders of keys and values: what they return, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from tests.unit.decoding.schemas import ORDER_AVRO, avro, order_file, order_message
from txnkafka.decoding import AvroDecoder, JsonDecoder, ProtobufDecoder
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
        (b"", "it is not of the Avro schema: it ends too early"),
        (avro(ORDER_AVRO, ORDER)[:-1], "it is not of the Avro schema"),
        (avro(ORDER_AVRO, ORDER) + b"xy", "2 bytes follow behind the datum"),
        (b"\x02\x7f", "it is not of the Avro schema"),
    ],
)
def test_what_is_not_of_the_avro_schema(content: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        AvroDecoder(ORDER_AVRO)(content)


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
    with pytest.raises(KafkaError, match="is no descriptor set of protoc"):
        ProtobufDecoder.from_file(str(tmp_path / "order.pb"), "shop.Order")


def test_protobuf(tmp_path: Path) -> None:
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    files = descriptor_pb2.FileDescriptorSet(file=[timestamp, order_file()])
    (tmp_path / "order.pb").write_bytes(files.SerializeToString())
    decode = ProtobufDecoder.from_file(str(tmp_path / "order.pb"), "shop.Order")
    content = order_message("shop.Order", id=5, first_line={"at": {"seconds": 1}})
    assert decode(content) == {"id": "5", "first_line": {"at": "1970-01-01T00:00:01Z"}}
    with pytest.raises(DecodeError, match=r"it is no shop\.Order"):
        decode(b"\xff")


def test_json() -> None:
    assert JsonDecoder()(b'{"a": [1, null]}') == {"a": [1, None]}
    for content in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(DecodeError, match="it is no JSON"):
            JsonDecoder()(content)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("txnkafka.env.packages.import_module", missing)
    with pytest.raises(MissingPackageError, match=r"Avro needs fastavro .*pip install 'txnkafka\[decode\]'"):
        AvroDecoder(ORDER_AVRO)
    with pytest.raises(MissingPackageError, match=r"Protobuf needs google.*'txnkafka\[decode\]'"):
        ProtobufDecoder([], "shop.Order")

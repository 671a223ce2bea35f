"""Schemas and encoded values for tests."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["ORDER_AVRO", "avro", "framed", "order_file", "order_message", "serialized"]

ORDER_AVRO = json.dumps({
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
})  # fmt: skip


def avro(schema: str, datum: Any, references: tuple[str, ...] = ()) -> bytes:
    named: dict[str, Any] = {}
    for text in references:
        fastavro.parse_schema(json.loads(text), named)
    output = io.BytesIO()
    fastavro.schemaless_writer(output, fastavro.parse_schema(json.loads(schema), named), datum)
    return output.getvalue()


def framed(schema_id: int, content: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + content


def order_file() -> descriptor_pb2.FileDescriptorProto:
    """shop.Empty; shop.Order {int64 id, string city, Line line} with a nested Order.Line {Timestamp at}."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Empty")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    field(line, "at", 1, 11, ".google.protobuf.Timestamp")
    field(order, "id", 1, 3)
    field(order, "city", 2, 9)
    field(order, "first_line", 3, 11, ".shop.Order.Line")
    return file


def field(message: Any, name: str, number: int, kind: int, type_name: str | None = None) -> None:
    added = message.field.add(name=name, number=number, type=kind, label=1)
    if type_name is not None:
        added.type_name = type_name


def order_message(name: str, **fields: Any) -> bytes:
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(order_file().SerializeToString())
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    content: bytes = kind(**fields).SerializeToString()
    return content


def serialized(file: descriptor_pb2.FileDescriptorProto) -> str:
    return b64encode(file.SerializeToString()).decode()

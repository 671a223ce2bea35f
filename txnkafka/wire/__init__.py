"""Kafka's message formats: schema tables, and the programs that the compiled reader and writer execute.

``wire.records`` has the records of Kafka's own logs, ``wire.messages`` its requests and responses, both with
the compiled readers and writers of ``_core``. All functions are pure functions over bytes: this package does
not use files, sockets or the broker.
"""

from __future__ import annotations

from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.scalars import read_uvarint
from txnkafka.wire.schema import Array, Field, Message, SchemaError, Struct
from txnkafka.wire.writer import write_message

__all__ = [
    "UNKNOWN_TAGGED_FIELDS",
    "Array",
    "Field",
    "Message",
    "SchemaError",
    "Struct",
    "read_message",
    "read_uvarint",
    "write_message",
]

"""Reads the tables of ``wire.schema``: bytes in, plain dictionaries out.

Every announced length and count is checked against the remaining bytes before anything of that size is
allocated. An element of three bytes becomes a dictionary of a hundred times that size, so the values of one
record are counted too: more than MAX_SCHEMA_VALUES are refused. Bytes that do not follow the table raise
``SchemaError``; no other exception leaves this module.

uuids become their 22 characters, unknown tagged fields are kept as ``(tag, bytes)`` in UNKNOWN_TAGGED_FIELDS,
known ones that are absent have their default. Two checks are stricter than Kafka's: tags must ascend, and a
known tagged field must fill its announced size.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from txnkafka._core.message_reader import read
from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire.scalars import Data
from txnkafka.wire.schema import Message, SchemaError
from txnkafka.wire.tables import log_table_of

UNKNOWN_TAGGED_FIELDS: Final = "unknown_tagged_fields"


class _Left(threading.local):
    """Number of values that the record being read in this thread may still have, and its total."""

    def __init__(self) -> None:
        self.values = [MAX_SCHEMA_VALUES, MAX_SCHEMA_VALUES]


_left = _Left()


def read_message(
    message: Message,
    version: int,
    data: Data,
    position: int = 0,
    *,
    same_record: bool = False,
) -> tuple[dict[str, Any], int]:
    """Return the fields of the message at ``position``, and the position after it.

    With ``same_record`` the message is part of the record that was read last, and its values count towards
    that record's limit."""
    left = _left.values
    if not same_record:
        left[0] = MAX_SCHEMA_VALUES
    try:
        table = log_table_of(message, version)
    except SchemaError as error:
        raise SchemaError(error.reason, 0) from None
    return read(table, data, position, left)

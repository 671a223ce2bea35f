"""Writes the tables of ``wire.schema``, the mirror of ``wire.reader``: dictionaries to bytes.

The bytes are those of Kafka's generated classes: tagged fields ascend by their tags and are left out where
they have their default, unknown ones (UNKNOWN_TAGGED_FIELDS) are written between them.  Every result of a
reader can be written. Every positional field of the version is required; a name that the version does not
have and a value that does not fit (range, length, null, type) raise a ``SchemaError`` with the path of the
field.
"""

from __future__ import annotations

from typing import Any, Final

from txnkafka._core.message_writer import write
from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.wire.reader import read_message
from txnkafka.wire.schema import Message
from txnkafka.wire.tables import log_table_of

# No table has eight values per byte, so a smaller message never has too many values for the reader.
SURELY_READABLE: Final = MAX_SCHEMA_VALUES // 8


def write_message(message: Message, version: int, fields: dict[str, Any]) -> bytes:
    """Return the bytes of a message. Raises SchemaError for more values than ``read_message`` accepts."""
    data = write(log_table_of(message, version), fields)
    if len(data) > SURELY_READABLE:
        read_message(message, version, data)
    return data

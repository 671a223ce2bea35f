"""Decodes values of control records: end markers of transactions, and KRaft's own control records.

The type is in the record's key (``ControlRecordType``), the version of the fields in the value's first two
bytes.  End markers are read as Kafka reads them: newer versions as version 0, ignoring bytes after the
fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from txnkafka.wire.records.log_record import UNKNOWN_TYPE, LogRecord, read_fields
from txnkafka.wire.schema import INT16, INT32, INT64, STRING, UINT16, UUID, Array, Field, Message, Struct
from txnkafka.wire.writer import write_message


def decode_control_body(control_type: int, value: bytes | None) -> LogRecord:
    """Decode a control record's value; never raises, see ``LogRecord.error``."""
    message = BODIES.get(control_type)
    if value is None or len(value) < 2:
        name = UNKNOWN_TYPE if message is None else message.name
        return LogRecord(name, control_type, error="the value is too short for a version", raw_value=value)
    version = int.from_bytes(value[:2], "big", signed=True)
    if message is None:
        unknown = f"control type {control_type} is not known"
        return LogRecord(UNKNOWN_TYPE, control_type, value_version=version, error=unknown, raw_value=value)
    if message.name in END_MARKERS and version >= 0:
        fields, wrong = read_fields(message, 0, value[:END_MARKER_BYTES])
    else:
        fields, wrong = read_fields(message, version, value)
    raw_value = value if wrong else None
    return LogRecord(message.name, control_type, None, version, fields, wrong, raw_value=raw_value)


def encode_leader_change(leader_id: int, voters: Sequence[int]) -> tuple[bytes, bytes]:
    """Return key and value of the record that a KRaft leader writes first (KIP-595). All voters granted."""
    ids = [{"voter_id": voter} for voter in voters]
    fields = {"leader_id": leader_id, "voters": ids, "granting_voters": ids}
    return LEADER_CHANGE_KEY, b"\0\0" + write_message(BODIES[LEADER_CHANGE], 0, fields)


def encode_voter(
    node_id: int, directory_id: str, listener: str, host: str, port: int
) -> list[tuple[bytes, bytes]]:
    """Return keys and values of the records of a quorum of one voter that is stored in the log (KIP-853):
    ``kraft.version`` 1, and the voter with the address of its controller listener."""
    endpoint = {"name": listener, "host": host, "port": port}
    supported = {"min_supported_version": 0, "max_supported_version": 1}
    voter = {
        "voter_id": node_id, "voter_directory_id": directory_id, "endpoints": [endpoint],
        "kraft_version_feature": supported,
    }  # fmt: skip
    bodies: dict[int, dict[str, Any]] = {
        KRAFT_VERSION: {"kraft_version": 1},
        KRAFT_VOTERS: {"voters": [voter]},
    }
    return [
        (kind.to_bytes(4, "big"), b"\0\0" + write_message(BODIES[kind], 0, fields))
        for kind, fields in bodies.items()
    ]


LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS = 2, 5, 6
LEADER_CHANGE_KEY = b"\0\0\0\2"
END_MARKERS: Final = ("abort", "commit")
END_MARKER_BYTES = 6

_VOTER_IDS: Final = Array.of(
    Field("voter_id", INT32),
    Field("voter_directory_id", UUID, "1+"),
)

_ENDPOINTS: Final = Array.of(
    Field("name", STRING),
    Field("host", STRING),
    Field("port", UINT16),
)

_VERSION_RANGE: Final = Struct.of(
    Field("min_supported_version", INT16),
    Field("max_supported_version", INT16),
)

_VOTERS: Final = Array.of(
    Field("voter_id", INT32),
    Field("voter_directory_id", UUID),
    Field("endpoints", _ENDPOINTS),
    Field("kraft_version_feature", _VERSION_RANGE),
)

BODIES: Final = {
    0: Message("abort", "0").of(Field("coordinator_epoch", INT32)),
    1: Message("commit", "0").of(Field("coordinator_epoch", INT32)),
    2: Message("leader_change", "0-1", flexible="0+").of(
        Field("leader_id", INT32),
        Field("voters", _VOTER_IDS),
        Field("granting_voters", _VOTER_IDS),
    ),
    3: Message("snapshot_header", "0", flexible="0+").of(Field("last_contained_log_timestamp", INT64)),
    4: Message("snapshot_footer", "0", flexible="0+").of(),
    5: Message("kraft_version", "0", flexible="0+").of(Field("kraft_version", INT16)),
    6: Message("kraft_voters", "0", flexible="0+").of(Field("voters", _VOTERS)),
}

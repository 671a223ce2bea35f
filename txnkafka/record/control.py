"""Parses control records: their keys, and the values of end transaction markers.

    key                      i16 version | i16 type
    value of ABORT, COMMIT   i16 version | i32 coordinator epoch

Only version 0 exists; higher versions are read as version 0, and additional bytes are ignored, so that newer
writers stay readable. Source: org.apache.kafka.common.record.ControlRecordType and EndTransactionMarker
(KIP-98), the KRaft types from KIP-595, KIP-630 and KIP-853.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch_header import CONTROL_ABORT, CONTROL_COMMIT, NO_CONTROL_TYPE

_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")
_END_TXN_MARKER = struct.Struct(">hi")


class ControlRecordType(enum.IntEnum):
    """The second field of a control record's key."""

    UNKNOWN = NO_CONTROL_TYPE
    ABORT = CONTROL_ABORT
    COMMIT = CONTROL_COMMIT
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @property
    def ends_transaction(self) -> bool:
        """Return whether a record of this type is an end transaction marker."""
        return self in (ControlRecordType.ABORT, ControlRecordType.COMMIT)


class EndTransactionMarker(NamedTuple):
    """The end of a transaction of the producer in the batch header."""

    type: ControlRecordType
    coordinator_epoch: int


def parse_control_key(key: bytes | memoryview | None) -> ControlRecordType:
    """Return the type; an unknown number is ``UNKNOWN``, which consumers skip."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordError(f"the key of a control record must have {_KEY.size} bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecordError(f"the key of a control record has version {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


def parse_end_txn_marker(
    key: bytes | memoryview | None, value: bytes | memoryview | None
) -> EndTransactionMarker:
    """Parse an ABORT or COMMIT marker; any other control record is an error here."""
    control_type = parse_control_key(key)
    if not control_type.ends_transaction:
        raise CorruptRecordError(f"a control record of type {control_type.name} does not end a transaction")
    if value is None or len(value) < _VERSION.size:
        raise CorruptRecordError("an end transaction marker has no version")
    if _VERSION.unpack_from(value)[0] < 0:
        raise CorruptRecordError("an end transaction marker has a negative version")
    if len(value) < _END_TXN_MARKER.size:
        raise CorruptRecordError(f"an end transaction marker must have {_END_TXN_MARKER.size} bytes")
    return EndTransactionMarker(control_type, _END_TXN_MARKER.unpack_from(value)[1])

"""The facts of the batch header: positions of its fields, attribute bits, control types, magic bytes.

A batch of magic 2 begins with a header of 61 bytes, its numbers big-endian; the records follow, compressed or
not. The constant of a field is the position of its first byte:

    position  size  field
           0     8  base_offset             i64
           8     4  batch_length            i32, the bytes behind this field: size of the batch - 12
          12     4  partition_leader_epoch  i32, -1: none
          16     1  magic                   i8
          17     4  crc                     u32, CRC-32C of everything from the attributes to the end
          21     2  attributes              i16, see below              | covered by the CRC
          23     4  last_offset_delta       i32, last offset - base     |
          27     8  base_timestamp          i64, ms, or delete horizon  |
          35     8  max_timestamp           i64, ms, -1: none           |
          43     8  producer_id             i64, -1: none               |
          51     2  producer_epoch          i16, -1: none               |
          53     4  base_sequence           i32, -1: none               |
          57     4  records_count           i32                         |
          61        records                                             |

    attributes   15 to 7    6               5        4              3               2 1 0
                 not used   delete horizon  control  transactional  LogAppendTime   codec

The CRC does not cover the fields in front of it, so a broker assigns base offset and leader epoch without
computing it again. Magic 0 and 1 have base offset, length and magic byte at the same positions.

``txnkafka/_core/batch_header.pxd`` has the same names and values for compiled code;
``tests/unit/record/test_batch_header.py`` compares the two with each other and with the drawing.

Source: ``DefaultRecordBatch``, ``RecordBatch``, ``ControlRecordType``; KIP-98, KIP-534 (delete horizon).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Buffer

# the fields of magic 2
BASE_OFFSET: Final = 0
BATCH_LENGTH: Final = 8
PARTITION_LEADER_EPOCH: Final = 12
MAGIC: Final = 16
CRC: Final = 17
ATTRIBUTES: Final = 21
LAST_OFFSET_DELTA: Final = 23
BASE_TIMESTAMP: Final = 27
MAX_TIMESTAMP: Final = 35
PRODUCER_ID: Final = 43
PRODUCER_EPOCH: Final = 51
BASE_SEQUENCE: Final = 53
RECORDS_COUNT: Final = 57
HEADER_SIZE: Final = 61

# of every magic
LOG_OVERHEAD: Final = 12  # base offset and length: the length counts the bytes after these
MIN_FRAME: Final = 17  # up to and including the magic byte: enough to recognize the format
MIN_SIZE_0: Final = 14  # length field of the smallest magic 0 and 1 entries and magic 2 batch
MIN_SIZE_1: Final = 22
MIN_SIZE_2: Final = 49

# fields of an entry of magic 0 or 1 that are at other positions in magic 2
LEGACY_CRC: Final = 12  # CRC-32 of everything from the magic byte on
LEGACY_ATTRIBUTES: Final = 17
LEGACY_TIMESTAMP: Final = 18  # magic 1
LEGACY_KEY_0: Final = 18
LEGACY_KEY_1: Final = 26

# bits of the attributes
ATTRIBUTE_CODEC: Final = 0x07
ATTRIBUTE_LOG_APPEND_TIME: Final = 0x08
ATTRIBUTE_TRANSACTIONAL: Final = 0x10
ATTRIBUTE_CONTROL: Final = 0x20
ATTRIBUTE_DELETE_HORIZON: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

# control types in a header index; ``record.control.ControlRecordType`` has all of Kafka's
NO_CONTROL_TYPE: Final = -1  # data batch, or a control batch whose key cannot be read
CONTROL_ABORT: Final = 0
CONTROL_COMMIT: Final = 1

MAGIC_0: Final = 0
MAGIC_1: Final = 1
MAGIC_2: Final = 2
UNKNOWN_MAGIC: Final = 127  # in a header index: the CRC of a magic 2 batch, but another magic byte


class HeaderFields(NamedTuple):
    """The fields of a 61-byte header of magic 2, unchecked."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int


_HEADER = struct.Struct(">qiibIhiqqqhii")


def header_fields(batch: Buffer) -> HeaderFields:
    """Return the fields of the header at the beginning of ``batch``. Raises struct.error for fewer than 61
    bytes."""
    return HeaderFields._make(_HEADER.unpack_from(batch))

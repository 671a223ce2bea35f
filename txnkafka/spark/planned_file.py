"""Finds the file that a unit was planned in, if a broker has deleted or compacted the segment since.

A broker then renames the file to ``.deleted``, and removes it after ``file.delete.delay.ms``, a minute by
default; a compacted segment may get its name.
"""

from __future__ import annotations

from typing import Final

from txnkafka.env import FileSystem
from txnkafka.errors import KafkaError
from txnkafka.logdir import ReadUnit
from txnkafka.logdir.plan import BatchIdentity
from txnkafka.storage.formats.segment_reader import LogFileReader

DELETED: Final = ".deleted"


def planned_unit(files: FileSystem, unit: ReadUnit) -> ReadUnit:
    """Return the unit with the name that its file has now; unchanged if the file is gone. Brokers rename
    local files only, so addresses are not looked up."""
    renamed = unit._replace(path=unit.path + DELETED)
    if not files.maps_files or unit.damage or not files.exists(renamed.path):
        return unit
    return next((each for each in (unit, renamed) if _is_planned(files, each)), unit)


def _is_planned(files: FileSystem, unit: ReadUnit) -> bool:
    """Return whether the bytes of a unit begin and end with the planned batches."""
    segment = LogFileReader(files, unit.path, unit.end_position)
    position, first, last = unit.start_position, None, None
    try:
        for _, _, index in segment.windows(unit.start_position, unit.end_position):
            if len(index):
                first = first or BatchIdentity(index.base_offset[0], index.crc[0])
                last = BatchIdentity(index.base_offset[len(index) - 1], index.crc[len(index) - 1])
            position = index.end_position
    except (KafkaError, OSError):
        return False
    finally:
        segment.close()
    return (position, first, last) == (unit.end_position, unit.first_batch, unit.last_batch)

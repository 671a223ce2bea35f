"""Stages one unit of an export: reads its records, writes its files and their record. Runs in a thread of the
caller or in a Spark executor; the result is the content of the record, which is stored beside the files."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import NamedTuple

from txnkafka.env import DataFiles, FileSystem
from txnkafka.errors import CorruptRecordError, KafkaError
from txnkafka.export.files import ExportedFile, UnitFiles
from txnkafka.export.options import ExportOptions
from txnkafka.export.plan import ExportUnit, fingerprint
from txnkafka.logdir.read import open_unit, read_unit
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.staging import Attempt, begin_attempt, record_attempt

__all__ = ["StagedUnit", "UnitTask", "stage_unit"]


COPIED = frozenset(("key", "value", "headers"))


class UnitTask(NamedTuple):
    """A unit to stage in ``folder``. ``mapped``: its segment, read from ``source``, may be mapped into
    memory."""

    unit: ExportUnit
    options: ExportOptions
    folder: str
    mapped: bool
    source: FileSystem


@dataclass(frozen=True, slots=True)
class StagedUnit:
    """The result of a unit. ``end_offset`` is where the next unit begins, or where a damaged batch stopped
    this one (named in ``stopped_by``); ``left_out`` are damaged batches that were skipped."""

    number: int
    name: str
    end_offset: int
    files: list[ExportedFile]
    stopped_by: str | None
    left_out: list[str]

    @property
    def rows(self) -> int:
        """The number of records in all files."""
        return sum(file.rows for file in self.files)

    def to_json(self) -> bytes:
        """Return the record of the unit."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, content: bytes) -> StagedUnit:
        """Parse the record that ``to_json`` wrote."""
        values = json.loads(content)
        return cls(**values | {"files": [ExportedFile(*file) for file in values["files"]]})


def stage_unit(files: DataFiles, task: UnitTask) -> StagedUnit:
    """Read a unit and write its files, then their record, into the folder of staged units.

    The files are not visible to readers yet, and a second attempt does not meet the files of a first one.
    Raises KafkaError when the log has changed since the plan.
    """
    number, unit, mark = task.unit
    if fingerprint(task.source, unit) != mark:
        raise KafkaError(
            f"{unit.path} is not what it was when the export was planned: between positions "
            f"{unit.start_position} and {unit.end_position} there are other bytes; "
            "export it to another directory"
        )
    attempt = begin_attempt(files, task.folder, number)
    staged = _write(files, task, attempt)
    record_attempt(files, attempt, staged.to_json())
    return staged


def _write(files: DataFiles, task: UnitTask, attempt: Attempt) -> StagedUnit:
    options, unit = task.options, task.unit.unit
    left_out: list[str] = []
    stopped_by = None
    end_offset = unit.end_offset
    segment = open_unit(task.source, unit, mapped=task.mapped)
    decoder = _decoder(options)
    output = UnitFiles(files, attempt.folder, task.unit.topic_partition, options)
    skip = options.request.on_corrupt == "skip"
    with closing(segment), closing(output):
        try:
            for columns in read_unit(
                segment, unit, decoder, (lambda error: left_out.append(_where(error))) if skip else None
            ):
                output.add(columns)
        except CorruptRecordError as error:
            if error.offset is None:  # not a damaged batch: the file has changed
                raise
            stopped_by, end_offset = _where(error), max(error.offset, unit.start_offset)
        return StagedUnit(task.unit.number, attempt.name, end_offset, output.finish(), stopped_by, left_out)


def _decoder(options: ExportOptions) -> ChunkDecoder:
    if options.is_text:
        return ChunkDecoder(headers=True)
    # without keys and values a pass that only checks records suffices, and nothing is copied
    copied = COPIED.intersection(options.file_columns)
    return ChunkDecoder(headers="headers" in copied, views=not copied)


def _where(error: CorruptRecordError) -> str:
    """Return the text of the error without the advice that is meant for Python callers."""
    return str(error).removesuffix(error.remedy).removesuffix(". ")

"""Stages one unit of an export: reads its records, writes its files and their record. Runs in a thread of the
caller or in a Spark executor; the result is the unit's record, which is stored with the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import NamedTuple

from txnkafka._core.columns import RecordColumns
from txnkafka.env import DataFiles, FileSystem
from txnkafka.errors import CorruptRecordError, KafkaError
from txnkafka.export.files import ExportedFile, UnitFiles
from txnkafka.export.options import ExportOptions
from txnkafka.export.plan import ExportUnit, fingerprint
from txnkafka.logdir.read import open_unit, read_unit
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.record.filter import RecordFilter, decoder_for
from txnkafka.staging import Attempt, begin_attempt, discard_attempt, record_attempt


class UnitTask(NamedTuple):
    """A unit to stage in ``folder``. ``mapped``: its segments, read from ``source``, may be memory-mapped."""

    unit: ExportUnit
    options: ExportOptions
    folder: str
    mapped: bool
    source: FileSystem


@dataclass(frozen=True, slots=True)
class StagedUnit:
    """The result of a unit. ``end_offset`` is the start of the next unit, or the offset where a damaged
    batch, named in ``stopped_by``, stopped this one; ``left_out`` names skipped damaged batches."""

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

    Readers do not see the files yet, and each attempt has its own files. Raises KafkaError when the log has
    changed since the plan."""
    for mark, unit in task.unit.parts:
        if fingerprint(task.source, unit) != mark:
            raise KafkaError(
                f"{unit.path} has changed since the export was planned: between positions "
                f"{unit.start_position} and {unit.end_position} it has other bytes; "
                "export it to another directory"
            )
    attempt = begin_attempt(files, task.folder, task.unit.number)
    try:
        staged = _write(files, task, attempt)
    except Exception:
        discard_attempt(files, attempt)  # the disk may be full
        raise
    record_attempt(files, attempt, staged.to_json())
    return staged


def _write(files: DataFiles, task: UnitTask, attempt: Attempt) -> StagedUnit:
    number, parts = task.unit
    left_out: list[str] = []
    stopped_by, end_offset = None, parts[-1].unit.end_offset
    output = UnitFiles(files, attempt.folder, task.unit.topic_partition, task.options)
    with closing(output):
        try:
            for columns in _records(task, left_out):
                output.add(columns)
        except _StoppedError as stop:
            stopped_by, end_offset = stop.reason, stop.offset
        return StagedUnit(number, attempt.name, end_offset, output.finish(), stopped_by, left_out)


class _StoppedError(Exception):
    """A damaged batch ends the unit at ``offset``."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


def _records(task: UnitTask, left_out: list[str]) -> Iterator[RecordColumns]:
    """Yield the selected records of all parts. A damaged batch is added to ``left_out``, or raises
    _StoppedError if the export stops at damage."""
    request = task.options.request
    decoder = _decoder(task.options)
    select = RecordFilter(request.where, task.unit.topic_partition)
    skip = request.on_corrupt == "skip"
    handler = (lambda error: left_out.append(_where(error))) if skip else None
    for _, unit in task.unit.parts:
        with closing(open_unit(task.source, unit, mapped=task.mapped)) as segment:
            try:
                for columns in read_unit(segment, unit, decoder, handler):
                    selected = select(columns)
                    if len(selected):
                        yield selected
            except CorruptRecordError as error:
                if error.offset is None:  # not a damaged batch: the file has changed
                    raise
                raise _StoppedError(_where(error), max(error.offset, unit.start_offset)) from error


def _decoder(options: ExportOptions) -> ChunkDecoder:
    if options.is_text:
        return ChunkDecoder(headers=True)
    return decoder_for(options.file_columns, options.request.where)


def _where(error: CorruptRecordError) -> str:
    """Return the text of the error without its advice for Python callers."""
    return str(error).removesuffix(error.remedy).removesuffix(". ")

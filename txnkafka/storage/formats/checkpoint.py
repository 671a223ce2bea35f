"""The small text files of a log directory: checkpoints, ``partition.metadata``, ``.kafka_cleanshutdown``.

A checkpoint is a version line (0), a line with the number of entries, and one line per entry; an empty file
has no entries. Each parser returns the whole content or raises ``CorruptFileError`` with the line: a partial
checkpoint is useless.

Source: ``CheckpointFile``, ``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``,
``PartitionMetadataFile``, ``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.topic_id import parse_topic_id

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

_NUMBER = re.compile(rb"[+-]?[0-9]{1,20}")
_LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_WHITESPACE = b" \t\n\x0b\f\r"
_INT32 = 2**31
_INT64 = 2**63
_REPAIR = "repairedAfterCleanStop"


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


class PartitionMetadata(NamedTuple):
    """The content of ``partition.metadata``; ``topic_id`` in Kafka's 22 characters."""

    version: int
    topic_id: str


class CleanShutdown(NamedTuple):
    """The content of ``.kafka_cleanshutdown``; Kafka before 3.6 wrote an empty file, without an epoch."""

    version: int
    broker_epoch: int | None


def parse_offset_checkpoint(
    data: bytes, only: Container[TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Parse any ``*-offset-checkpoint`` file to offsets by partition; the last entry of a repeated partition
    counts. With ``only``, other partitions are skipped and need no memory."""
    offsets: dict[TopicPartition, int] = {}
    for line_number, line, words in _entries(data, words=3):
        try:
            topic = words[0].decode("utf-8")
        except UnicodeDecodeError:
            raise _malformed(line_number, line) from None
        partition = _number(words[1], line_number, limit=_INT32)
        offset = _number(words[2], line_number, limit=_INT64)
        topic_partition = TopicPartition(topic, partition)
        if only is None or topic_partition in only:
            offsets[topic_partition] = offset
    return offsets


def parse_leader_epoch_checkpoint(data: bytes) -> list[EpochEntry]:
    """Parse leader epochs with their first offsets, both strictly increasing."""
    epochs: list[EpochEntry] = []
    for line_number, _, words in _entries(data, words=2):
        epoch = _number(words[0], line_number, limit=_INT32)
        entry = EpochEntry(epoch, _number(words[1], line_number, limit=_INT64))
        if epochs and not (epochs[-1].epoch < entry.epoch and epochs[-1].start_offset < entry.start_offset):
            raise CorruptFileError(
                f"line {line_number}: epoch {entry.epoch} from offset {entry.start_offset} does not follow "
                f"epoch {epochs[-1].epoch} from offset {epochs[-1].start_offset}"
            )
        epochs.append(entry)
    return epochs


def parse_partition_metadata(data: bytes) -> PartitionMetadata:
    """Parse version and topic id of ``partition.metadata``."""
    lines = data.splitlines()
    version = _number(_field(lines, 1, b"version"), 1, limit=_INT32)
    topic_id = _field(lines, 2, b"topic_id")
    try:
        return PartitionMetadata(version, parse_topic_id(topic_id.decode("ascii")))
    except ValueError:  # includes UnicodeDecodeError
        raise _malformed(2, lines[1]) from None


def parse_clean_shutdown(data: bytes) -> CleanShutdown:
    """Parse version and broker epoch of ``.kafka_cleanshutdown``; the file's existence alone means a clean
    shutdown."""
    if not data:
        return CleanShutdown(0, None)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise CorruptFileError("line 1: not a JSON object", position=0) from None
    fields = content if isinstance(content, dict) else {}
    version, broker_epoch = fields.get("version"), fields.get("brokerEpoch")
    if type(version) is not int or type(broker_epoch) is not int:
        raise CorruptFileError("line 1: 'version' and 'brokerEpoch' must be numbers", position=0)
    return CleanShutdown(version, broker_epoch)


def _entries(data: bytes, *, words: int) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Yield number, text and words of each entry line, after checking version and count; one line at a
    time."""
    lines = (match[0].rstrip(b"\r\n") for match in _LINE.finditer(data))
    version = next(lines, b"0")
    if _number(version, 1, limit=_INT32) != 0:
        raise CorruptFileError(f"line 1: version {int(version)} of the checkpoint is not known, only 0 is")
    second = next(lines, None)
    if second is None:  # Kafka reads a lone version line as an empty checkpoint
        return
    count, there = _number(second, 2, limit=_INT32), _line_count(data) - 2
    if count != there:
        raise CorruptFileError(f"line 2: the checkpoint claims {count} entries but has {there}")
    for line_number, line in enumerate(lines, start=3):
        found = line.split(None, words)
        if len(found) != words or line[0] in _WHITESPACE:
            raise _malformed(line_number, line)
        yield line_number, line, found


def _line_count(data: bytes) -> int:
    ended = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    return ended + (not data.endswith((b"\n", b"\r")))


def _field(lines: list[bytes], line_number: int, name: bytes) -> bytes:
    if len(lines) < line_number:
        raise CorruptFileError(f"line {line_number}: '{name.decode()}' is missing")
    line = lines[line_number - 1]
    match = re.fullmatch(name + rb":\s+(\S+)", line)
    if match is None:
        raise _malformed(line_number, line)
    return match[1]


def _number(text: bytes, line_number: int, *, limit: int) -> int:
    """Parse a number in 0 .. limit - 1; like Java's parser, accept a sign, but no underscores or spaces."""
    if not _NUMBER.fullmatch(text) or not 0 <= int(text) < limit:
        raise _malformed(line_number, text)
    return int(text)


def _malformed(line_number: int, line: bytes) -> CorruptFileError:
    shown = line[:80].decode("utf-8", "backslashreplace")
    return CorruptFileError(f"line {line_number}: cannot read {shown!r}")


def format_offset_checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Format the content of a ``*-offset-checkpoint`` file."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return _checkpoint(lines)


def format_leader_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """Format the content of ``leader-epoch-checkpoint``."""
    return _checkpoint([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def parse_repair(data: bytes) -> bool | None:
    """Return True if the broker had stopped cleanly before the repair that wrote this
    ``.kafka_cleanshutdown``; None if no repair wrote it. Kafka ignores the field."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    found = content.get(_REPAIR) if isinstance(content, dict) else None
    return found if isinstance(found, bool) else None


def format_partition_metadata(topic_id: str) -> bytes:
    """Format the content of ``partition.metadata``, version 0."""
    return f"version: 0\ntopic_id: {parse_topic_id(topic_id)}".encode("ascii")


def format_clean_shutdown(broker_epoch: int, repair: bool | None = None) -> bytes:
    """Format the content of ``.kafka_cleanshutdown``, version 0; ``repair`` is for ``parse_repair``."""
    content: dict[str, int] = {"version": 0, "brokerEpoch": broker_epoch}
    if repair is not None:
        content[_REPAIR] = repair
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def _checkpoint(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()

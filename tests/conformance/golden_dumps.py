"""Kafka's DumpLogSegments on the partitions of a directory, in the form in which golden cases keep it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.broker import java

__all__ = ["decoded", "tables", "text_of"]

KINDS = (".index", ".log", ".timeindex", ".txnindex", ".snapshot")
DECODERS = {"__consumer_offsets": "--offsets-decoder", "__transaction_state": "--transaction-log-decoder"}
SNAPSHOT_COLUMNS = (
    "producerId", "producerEpoch", "coordinatorEpoch", "currentTxnFirstOffset", "lastTimestamp",
    "firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp",
)  # fmt: skip
FIELD = re.compile(r"(\w+): (\S+)")
OPTIONAL = re.compile(r"Optional(?:Long)?\[(-?\d+)\]")

Json = Any


def text_of(folder: Path, *options: str) -> str:
    """Return the output of the dump tool for the files of a partition."""
    return _dump(folder, [path.name for path in _files(folder)], *options)


def decoded(folder: Path) -> str | None:
    """A coordinator's log, through the tool's decoder for it; None for other topics."""
    decoder = DECODERS.get(folder.name.rpartition("-")[0])
    if decoder is None:
        return None
    names = [f"{folder.name}/{path.name}" for path in _files(folder) if path.suffix == ".log"]
    return _dump(folder.parent, names, decoder)


def tables(text: str) -> dict[str, Json]:
    """The text of the tool as columns and rows, file by file."""
    parts = re.split(r"^Dumping (\S+)\n", text, flags=re.MULTILINE)
    return {
        name: _table(name, body.splitlines()) for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in KINDS)


def _dump(folder: Path, names: Sequence[str], *options: str) -> str:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    tool = java("-Xmx256m", quiet, "org.apache.kafka.tools.DumpLogSegments")
    command = [*tool, *options, "--files", ",".join(names)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _table(name: str, lines: list[str]) -> Json:
    rows = [dict(_fields(line)) for line in lines if re.match(r"[a-zA-Z]+: ", line) and "| " not in line[:2]]
    columns = list(rows[0]) if rows else []
    if name.endswith(".snapshot"):  # a row without a last batch has fewer
        columns = list(SNAPSHOT_COLUMNS)
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}


def _fields(line: str) -> Iterator[tuple[str, Json]]:
    for name, text in FIELD.findall(line):
        number = OPTIONAL.fullmatch(text)
        yield name, _value(number[1] if number else text)


def _value(text: str) -> Json:
    if text in ("None", "OptionalLong.empty", "Optional.empty"):
        return None
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text

"""Whole commands: txnkafka's command line compared with kafka-dump-log, including the start of Python and of
the JVM.

Timed rounds write to /dev/null; the output of one more, untimed run of each is compared. CPU is user and
system time of the process and of the children it waited for.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.digest import DigestBuilder
from bench.harness import Timing
from bench.java import dump_log_segments

__all__ = ["ProcessSide", "cat", "cat_digest", "dump_digest", "dump_headers", "dump_records", "verify"]

TXNKAFKA = [sys.executable, "-c", "from txnkafka.cli.main import main; main()"]
BATCH_LINE = re.compile(r"baseOffset: \d+ lastOffset: \d+ count: (\d+) ")
RECORD_LINE = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) .*?"
    r"headerKeys: \[\](?: key: (\S*))? payload: (.*)"
)


class ProcessSide:
    """One command. ``units`` is the reported number, since the output is not read in timed rounds."""

    output = "output"

    def __init__(
        self, name: str, command: Sequence[str], units: int, parse: Callable[[Iterable[str]], object]
    ) -> None:
        self.name = name
        self._command = command
        self._units = units
        self._parse = parse

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        wall = time.perf_counter()
        process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(
                f"{self.name} ended with status {process.returncode}: {' '.join(self._command)}"
            )
        return Timing(usage.ru_utime + usage.ru_stime, time.perf_counter() - wall, self._units)

    def digest(self) -> object:
        with subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            return self._parse(process.stdout)

    def close(self) -> None:
        pass


def verify(segment: Path, units: int) -> ProcessSide:
    return ProcessSide(
        "txnkafka verify", [*TXNKAFKA, "verify", str(segment), "--format", "json"], units, _verify_totals
    )


def cat(segment: Path, units: int) -> ProcessSide:
    options = ["--isolation-level", "read_uncommitted", "--format", "jsonl", "--encoding", "base64"]
    return ProcessSide("txnkafka cat", [*TXNKAFKA, "cat", str(segment), *options], units, cat_digest)


def dump_headers(segment: Path, units: int) -> ProcessSide:
    return ProcessSide("kafka-dump-log", dump_log_segments("--files", str(segment)), units, _dump_totals)


def dump_records(segment: Path, units: int) -> ProcessSide:
    command = dump_log_segments("--files", str(segment), "--print-data-log")
    return ProcessSide("kafka-dump-log", command, units, dump_digest)


def _verify_totals(lines: Iterable[str]) -> object:
    report = json.loads("".join(lines))
    return {"batches": report["batches"], "records": report["records"]}


def _dump_totals(lines: Iterable[str]) -> object:
    counts = [int(match[1]) for line in lines if (match := BATCH_LINE.match(line))]
    return {"batches": len(counts), "records": sum(counts)}


def cat_digest(lines: Iterable[str]) -> object:
    builder = DigestBuilder()
    for line in lines:
        record = json.loads(line)
        key, value = (_decoded(record[name]) for name in ("key", "value"))
        builder.add_record(record["offset"], record["timestamp"], key, value)
    return builder.digest()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def dump_digest(lines: Iterable[str]) -> object:
    builder = DigestBuilder()
    for line in lines:
        if match := RECORD_LINE.match(line):
            offset, timestamp, key_size, value_size, key, value = match.groups()
            sized = [
                None if int(size) < 0 else text.encode()
                for size, text in ((key_size, key), (value_size, value))
            ]
            builder.add_record(int(offset), int(timestamp), *sized)
    return builder.digest()

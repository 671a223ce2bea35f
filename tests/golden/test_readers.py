"""Each golden and each damaged input is read by C functions and by bindings, in one thread and in
two. Records, findings, reports of damage and errors are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.damage.image import SEGMENTS, log
from tests.damage.mutations import mutations
from tests.fuzz.campaign import CORPUS
from tests.fuzz.codecs import CODECS
from tests.golden.answers import record_row
from tests.golden.cases import ISOLATION_LEVELS
from tests.golden.damage import DAMAGED, TABLE
from tests.golden.directories import INTACT
from tests.models.builder import Batch, PlainRecord
from tests.models.framing_cases import CASES, RECORD_COUNT
from tests.unit.logdir.logs import write_log
from txnkafka import CorruptRecordError, KafkaError, LogDir
from txnkafka.logdir import Finding, read_ahead
from txnkafka.model import TopicPartition

READERS = [(codecs, threads) for codecs in ("functions", "bindings") for threads in (1, 2)]
MUTATIONS = 40  # of a segment
BUILT = TopicPartition("t", 0)


class Input(NamedTuple):
    """One partition; ``write`` makes the log directory, if it does not exist yet."""

    name: str
    partition: TopicPartition
    write: Callable[[Path], Path]


def golden() -> Iterator[Input]:
    for each in INTACT:
        yield Input(f"golden/{each}", each.partition, lambda _, path=Path(each.path): path)
    for row in TABLE:
        yield Input(f"golden/{row}", DAMAGED, lambda _, path=Path(row.path): path)


def compressed(base_offset: int, codec: int) -> bytes:
    records = [PlainRecord(b"key", b"value of %d" % (base_offset + i), 1000 + i) for i in range(20)]
    return Batch(records=records, base_offset=base_offset, codec=codec).encode()


def between_sound_batches(codec: int, payload: bytes) -> Callable[[Path], Path]:
    """Return the writer of a log whose third batch has ``payload``; the sound batches around it make several
    units."""

    def write(root: Path) -> Path:
        damaged = Batch(codec=codec, payload=payload, count=RECORD_COUNT, base_offset=40).encode()
        batches = [compressed(0, codec), compressed(20, codec), damaged]
        batches += [compressed(base_offset, codec) for base_offset in range(60, 400, 20)]
        write_log(root, "t-0", {0: batches})
        return root

    return write


def payloads() -> Iterator[Input]:
    for case in CASES:
        if case.magic == 2:
            yield Input(f"framing/{case.name}", BUILT, between_sound_batches(case.codec, case.payload))
    for codec, number in CODECS.items():
        for path in sorted((CORPUS / codec).iterdir()):
            yield Input(
                f"corpus/{codec}/{path.name}", BUILT, between_sound_batches(number, path.read_bytes()[1:])
            )


def with_segment(base_offset: int, content: bytes) -> Callable[[Path], Path]:
    def write(root: Path) -> Path:
        write_log(root, "t-0", {each: [content if each == base_offset else log(each)] for each in SEGMENTS})
        return root

    return write


def mutated() -> Iterator[Input]:
    """Yield the log of tests/damage with single flipped bits and shorter segments."""
    for base_offset in SEGMENTS:
        content = log(base_offset)
        changes = list(mutations(content, 1))
        for change in changes[:: len(changes) // MUTATIONS]:
            changed = with_segment(base_offset, change.of(content))
            yield Input(f"mutated/{base_offset}/{change}", BUILT, changed)


def observed(path: Path, partition: TopicPartition, threads: int, on_corrupt: str) -> list[Any]:
    """Read in both isolation levels. Return records, findings, reports and errors in their order."""
    seen: list[Any] = []

    def report(error: CorruptRecordError) -> None:
        seen.append(f"report: {error}")

    log_dir = LogDir(str(path), threads=threads)
    for level in ISOLATION_LEVELS:
        findings: list[Finding] = []
        try:
            view = log_dir.partition(*partition)
            view.plan(isolation_level=level, findings=findings)
            damage = report if on_corrupt == "report" else on_corrupt
            for record in view.records(isolation_level=level, on_corrupt=damage):
                seen.append(record_row(record))
            view.close()
        except KafkaError as error:
            seen.append(f"{type(error).__name__}: {error}")
        seen.extend(findings)
    return [*seen, *log_dir.findings]


INPUTS = [*golden(), *payloads(), *mutated()]


@pytest.mark.parametrize("source", INPUTS, ids=[each.name for each in INPUTS])
def test_every_reader_returns_the_same(
    source: Input, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD_UNIT_BYTES", 1 << 10)
    path = source.write(tmp_path)
    for on_corrupt in ("stop", "report"):
        found = {}
        for codecs, threads in READERS:
            monkeypatch.setenv("TXNKAFKA_CODECS", codecs)
            found[codecs, threads] = observed(path, source.partition, threads, on_corrupt)
        expected = found.pop(READERS[0])
        for reader, seen in found.items():
            assert seen == expected, reader

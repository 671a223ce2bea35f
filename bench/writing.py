"""Records to batches: ours from columns and from Python records, aiokafka's builder from the latter.

A side encodes the same batch repeatedly, as a producer fills batch after batch; its columns exist before, as
from Arrow or from decoding. Batches are small and stay in the cache: only the encoding is compared.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from bench.digest import Digest, DigestBuilder
from bench.harness import Comparison, Contest, Side, Timing, timed
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import decode_batches
from txnkafka._core.encode import encode_batch, set_producer
from txnkafka._core.read_committed import select
from txnkafka._core.record_input import InputColumns
from txnkafka._core.scan import scan

__all__ = ["contests"]

T0 = 1_700_000_000_000
KEY_BYTES = 16
TOGETHER = 40_000  # least number of records per round, so that it can be timed
Record = tuple[bytes | None, bytes, int]


@dataclass(frozen=True)
class Shape:
    """The records of one batch; goals of columns and of Python records relative to aiokafka."""

    records: int
    value_bytes: int
    key_bytes: int = KEY_BYTES
    goals: tuple[float | None, float | None] = (None, None)

    @property
    def name(self) -> str:
        return f"{self.records} x {self.value_bytes} B"


SHAPES = (Shape(140, 100, goals=(20.0, 2.5)), Shape(875, 10, key_bytes=0), Shape(15, 1024))


def made_up(shape: Shape) -> list[Record]:
    source = random.Random(shape.name)
    return [
        (
            source.randbytes(shape.key_bytes) if shape.key_bytes else None,
            source.randbytes(shape.value_bytes),
            T0 + i // 4,
        )
        for i in range(shape.records)
    ]


def columns_of(records: Sequence[Record]) -> InputColumns:
    """Columns in Arrow's layout."""
    columns: dict[str, Any] = {"timestamps": array("q", [timestamp for _, _, timestamp in records])}
    for place, name in enumerate(("key", "value")):
        contents = [record[place] for record in records]
        if None not in contents:
            columns[f"{name}_offsets"] = array("i", accumulate(map(len, contents), initial=0))
            columns[f"{name}_data"] = b"".join(contents)
    return InputColumns(**columns)


class EncodeSide:
    """Encodes one batch ``repeat`` times."""

    output = "batch"

    def __init__(self, name: str, records: Sequence[Record], encode: Callable[[], bytes | bytearray]) -> None:
        self.name = name
        self._count = len(records)
        self._repeat = -(-TOGETHER // len(records))
        self._encode = encode

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        encode = self._encode
        with timed(timing):
            for _ in range(self._repeat):
                encode()
        return Timing(*timing[0], self._repeat * self._count)

    def digest(self) -> Digest:
        """Read the records back, with a check of the CRC."""
        batch = self._encode()
        index, columns, builder = scan(batch), RecordColumns(), DigestBuilder()
        decode_batches(batch, index, select(index), 0, len(index), columns)
        builder.add_copies(columns)
        return builder.digest()

    def close(self) -> None:
        """Do nothing: no file is open."""


def aiokafka_encoder(records: Sequence[Record]) -> Callable[[], bytes]:
    """The compiled builder, called as aiokafka's own producer calls it."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    if "_crecords" not in DefaultRecordBatchBuilder.__module__:
        raise RuntimeError("aiokafka runs without its compiled builder")

    def encode() -> bytes:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        append = builder.append
        for offset, (key, value, timestamp) in enumerate(records):
            append(offset, timestamp, key, value, headers=[])
        batch: bytes = builder.build()
        return batch

    return encode


def contests(plan: object) -> list[Contest]:
    """Return the contests that encode each shape, with ``plan.rounds`` rounds."""
    rounds: int = plan.rounds  # type: ignore[attr-defined]  # bench.rows.Plan, which imports this
    return [_encode(shape, rounds) for shape in SHAPES] + [_change(rounds)]


def _encode(shape: Shape, rounds: int) -> Contest:
    records = made_up(shape)

    def sides() -> Sequence[Side]:
        columns = columns_of(records)
        return [
            EncodeSide("columns", records, partial(encode_batch, columns)),
            EncodeSide("python records", records, partial(encode_batch, records)),
            EncodeSide("aiokafka", records, aiokafka_encoder(records)),
        ]

    comparisons = [
        Comparison(side, "aiokafka", goal)
        for side, goal in zip(("columns", "python records"), shape.goals, strict=True)
    ]
    return Contest(f"encode {shape.name}", "records", lambda: rounded(shape), sides, comparisons, rounds)


def rounded(shape: Shape) -> int:
    return -(-TOGETHER // shape.records) * shape.records


def _change(rounds: int) -> Contest:
    """Compare setting a producer's fields in a finished batch with encoding the batch again."""
    shape = SHAPES[0]
    records = made_up(shape)
    fields = {"producer_id": 4000, "producer_epoch": 7, "base_sequence": 99}

    def sides() -> Sequence[Side]:
        columns, batch = columns_of(records), encode_batch(columns_of(records))

        def in_place() -> bytearray:
            set_producer(batch, **fields)
            return batch

        return [
            EncodeSide("set_producer", records, in_place),
            EncodeSide("encoded again", records, partial(encode_batch, columns, **fields)),
        ]

    return Contest(
        f"change the producer of a batch of {shape.name}",
        "records",
        lambda: rounded(shape),
        sides,
        [Comparison("set_producer", "encoded again")],
        rounds,
    )

"""Every golden directory streams exactly as it batch-reads, whatever the size of a trigger. The reader is
called as Spark calls it; test_stream.py has Spark call it."""

from __future__ import annotations

import json

import pytest

from tests.conftest import LONG
from tests.golden.cases import ISOLATION_LEVELS
from tests.spark.test_golden import Expected, expected
from tests.unit.spark.stream_logs import Stream
from txnkafka.spark.source import TxnKafkaDataSource

SIZES = (
    {},
    {"maxOffsetsPerTrigger": "7"},
    {"maxOffsetsPerTrigger": "100"},
    {"maxBytesPerTrigger": "1k"},
    {"maxBytesPerTrigger": "40k", "maxOffsetsPerTrigger": "1000", "minPartitions": "3"},
)
STEP = 1 if LONG else 13  # in make test every thirteenth directory: the whole set takes minutes
SAMPLE = [(size, place) for place in range(len(SIZES)) for size in [SIZES[place]]]
Rows = list[tuple[str, int, int, bytes | None, bytes | None]]


def options(each: Expected, level: str) -> dict[str, str]:
    return {
        "isolation.level": level,
        "assign": json.dumps(each.assign()),
        "failOnDataLoss": str(not each.damaged).lower(),
        "columns": "topic,partition,offset,key,value",
    }


def batch(each: Expected, level: str) -> Rows:
    source = TxnKafkaDataSource({"path": each.path, **options(each, level)})
    reader = source.reader(source.schema())
    found = [batch for task in reader.partitions() for batch in reader.read(task)]
    return sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())


def streamed(each: Expected, level: str, size: dict[str, str]) -> tuple[Rows, int]:
    stream = Stream(None, path=each.path, **options(each, level), **size)
    rows: Rows = []
    batches = 0
    while (end := stream.end()) != stream.start:
        for task in stream.reader.partitions(stream.start, end):
            rows += (tuple(row.values()) for batch in stream.reader.read(task) for row in batch.to_pylist())
        stream.start, batches = end, batches + 1
    stream.reader.stop()
    return sorted(rows), batches


@pytest.mark.parametrize("level", ISOLATION_LEVELS)
@pytest.mark.parametrize(("size", "place"), SAMPLE)
def test_streams_are_batches(size: dict[str, str], place: int, level: str) -> None:
    most = 0
    for each in expected(level)[place::STEP]:
        found, batches = streamed(each, level, size)
        assert found == batch(each, level), each.name
        most = max(most, batches)
    assert most > 1 if size else most == 1

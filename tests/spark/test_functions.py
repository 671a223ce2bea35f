"""Functions for columns of bytes: golden segments through Spark's ``binaryFile``, compared with the output of
the Java consumer and of the broker's dump tool; and bytes of all other kinds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, StructType

from tests.golden.cases import Case, cases
from tests.golden.damage import BATCH_OF_88, DAMAGED
from tests.models.builder import Batch, PlainRecord, control_batch, legacy_wrapper
from tests.models.builder import legacy_entry as entry
from tests.spark.answers import Json, line
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import LogDir, TopicPartition
from txnkafka.spark import arrow_functions, register, table
from txnkafka.spark.functions import (
    control_type,
    crc_valid,
    decode_committed_record_batches,
    decode_record_batches,
    try_decode_record_batches,
)
from txnkafka.spark.record_batches import RECORD_TYPE, RecordBatchesDecoder

SOUND = [each for each in cases() if each.damage is None]
RECORDS = 15_721


def files(spark: SparkSession, *paths: object) -> DataFrame:
    reader = spark.read.format("binaryFile").option("pathGlobFilter", "*.log")
    return reader.option("recursiveFileLookup", "true").load([str(path) for path in paths])


def values(spark: SparkSession, *contents: bytes | None) -> DataFrame:
    schema = StructType([StructField("content", BinaryType())])
    return spark.createDataFrame([(each,) for each in contents], schema).coalesce(1)


@pytest.fixture(scope="module")
def decoded(spark: SparkSession) -> dict[str, list[Row]]:
    """Decode the records of every segment of the intact golden directories, by path."""
    found = files(spark, *(case.answered for case in SOUND)).select(
        "path", decode_record_batches("content").alias("records")
    )
    exploded = found.selectExpr("path", "posexplode(records) as (position, record)")
    rows = exploded.selectExpr(
        "path", "position", "record.*", "unix_millis(record.timestamp) as ms"
    ).collect()
    by_path = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.path, row.position)):
        by_path[row.path.removeprefix("file:")].append(row)
    return by_path


def as_line(row: Row) -> Json:
    return {**line(row.asDict(recursive=True), row.ms), "leader_epoch": row.leaderEpoch}


def segments(
    decoded: dict[str, list[Row]], case: Case, partition: TopicPartition
) -> list[tuple[str, list[Row]]]:
    folder = f"{case.answered}/{partition}/"
    return [(path.removeprefix(folder), decoded[path]) for path in sorted(decoded) if path.startswith(folder)]


def test_records_are_those_of_the_consumer(decoded: dict[str, list[Row]]) -> None:
    compared = 0
    for case in SOUND:
        # Spark's own sources skip directories whose names begin with an underscore
        for partition in (each for each in case.partitions() if not each.topic.startswith("_")):
            expected = case.expected_records(partition, "read_uncommitted")
            start = case.facts(partition)["log_start_offset"]
            rows = [row for _, found in segments(decoded, case, partition) for row in found]
            assert [as_line(row) for row in rows if row.offset >= start] == expected, (case.name, partition)
            compared += len(expected)
    assert compared == RECORDS


def test_producers_are_those_of_the_dump_tool(decoded: dict[str, list[Row]]) -> None:
    transactional = 0
    for case in SOUND:
        for partition in case.dumped():
            dumps = case.dump(partition)
            for name, rows in segments(decoded, case, partition):
                batches = [dict(zip(dumps[name]["columns"], row, strict=True)) for row in dumps[name]["rows"]]
                for row, expected in zip(rows, producers(rows, batches), strict=True):
                    found = (row.producerId, row.producerEpoch, row.sequence, row.isTransactional)
                    assert found == expected, (case.name, name, row.offset)
                    transactional += row.isTransactional
    assert transactional > 1000


def producers(rows: list[Row], batches: list[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    """Yield the header fields of each record's batch; the tool's batches do not include older formats."""
    for row in rows:
        of = next((b for b in batches if b["baseOffset"] <= row.offset <= b["lastOffset"]), None)
        if of is None or of["producerId"] < 0:
            yield None, None, None, False
        else:
            sequence = (of["baseSequence"] + row.offset - of["baseOffset"]) % 2**31
            yield of["producerId"], of["producerEpoch"], sequence, of["isTransactional"]


def test_golden_segments_have_valid_checksums(spark: SparkSession) -> None:
    found = files(spark, *(case.answered for case in SOUND)).select(crc_valid("content")).distinct().collect()
    assert [tuple(row) for row in found] == [(True,)]


def test_damage_fails_with_its_position_or_is_null(spark: SparkSession) -> None:
    (case,) = (each for each in cases() if each.name == "clean_flip_last_payload")
    content = files(spark, case.logs / str(DAMAGED))
    with pytest.raises(PySparkException) as caught:
        content.select(decode_record_batches("content")).collect()
    assert f"position {BATCH_OF_88.position}, offset 88" in str(caught.value)
    assert "txnkafka_try_decode_record_batches gives null" in str(caught.value)
    rows = content.selectExpr("path", "content").select(
        "path", try_decode_record_batches("content").alias("records"), crc_valid("content").alias("valid")
    )
    assert {
        row.path.endswith(BATCH_OF_88.file): (row.records is None, row.valid) for row in rows.collect()
    } == {
        True: (True, False),
        False: (False, True),
    }


TORN = batch(0)[:-1]
FLIPPED = batch(0)[:-1] + b"\xff"
OTHER_MAGIC = batch(0)[:16] + b"\x03" + batch(0)[17:]
LEGACY = legacy_wrapper([entry(0, b"k", b"0"), entry(1, None, b"1")], 1, codec=1)


def control(kind: int) -> bytes:
    return control_batch(kind.to_bytes(4, "big"), b"\0\0")


CONTENTS: dict[bytes | None, tuple[list[int] | None, bool | None, str | None]] = {
    # offsets, whether the CRC is right, control type
    None: (None, None, None),
    b"": ([], True, None),
    b"\0" * 100: ([], True, None),
    b"no batch, but long enough to be one": (None, False, None),
    batch(7): ([7, 8], True, None),
    batch(7) + bytes(20): ([7, 8], True, None),
    batch(7) + marker(9, "commit", 1) + batch(3) + LEGACY + batch(5): ([7, 8, 3, 4, 0, 1, 5, 6], True, None),
    entry(4, b"k", None, magic=0) + LEGACY: ([4, 0, 1], True, None),
    entry(4, b"k", None, crc=1): (None, False, None),
    TORN: (None, False, None),
    FLIPPED: (None, False, None),
    OTHER_MAGIC: (None, False, None),
    batch(0) + FLIPPED: (None, False, None),
    Batch(records=[PlainRecord(None, b"")], count=2**31 - 1).encode(): (None, True, None),
    Batch(records=[PlainRecord(None, b"")], codec=4, payload=b"no zstd").encode(): (None, True, None),
    marker(0, "commit", 1): ([], True, "commit"),
    marker(0, "abort", 1) + batch(1): ([1, 2], True, "abort"),
    marker(0, "abort", 1)[:-1] + b"\xff": (None, False, None),
    control(2): ([], True, "leader_change"),
    control(77): ([], True, "unknown"),
    control_batch(b"\0", b""): ([], True, "unknown"),
}


def test_bytes_of_all_kinds(spark: SparkSession) -> None:
    """Tested from SQL, too."""
    register(spark)
    values(spark, *CONTENTS).createOrReplaceTempView("contents")
    found = spark.sql(
        "select content, txnkafka_try_decode_record_batches(content).offset as offsets, "
        "txnkafka_crc_valid(content) as valid, txnkafka_control_type(content) as control from contents"
    )
    got = {
        row.content and bytes(row.content): (row.offsets, row.valid, row.control) for row in found.collect()
    }
    assert got == CONTENTS
    with pytest.raises(PySparkException, match="a batch of 79 bytes begins here, but only 78 bytes follow"):
        values(spark, TORN).selectExpr("txnkafka_decode_record_batches(content)").collect()
    spark.catalog.dropTempView("contents")


def of_path(part: int) -> Column:
    """The topic (1) or the partition (2) of a segment."""
    return sf.regexp_extract("path", r".*/(.+)-(\d+)/\d+\.log$", part)


# as in docs/spark.md
HIDDEN = (
    "collect_list(struct(producerId, firstOffset, lastOffset)) "
    "filter (where outcome in ('aborted', 'undecided'))",
    "min(firstOffset) filter (where outcome = 'open')",
)


def committed_from_bytes(spark: SparkSession, log_dir: str) -> dict[TopicPartition, list[Row]]:
    """Return the records by partition: from bytes, and what the table of transactions says."""
    transactions = table(spark, "transactions", log_dir).groupBy("topic", "partition").agg(
        *map(sf.expr, HIDDEN)
    ).toDF("topic", "partition", "hidden", "lso")  # fmt: skip
    contents = files(spark, log_dir).select(
        "content", of_path(1).alias("topic"), of_path(2).cast("int").alias("partition")
    )
    decoded = contents.join(transactions, ["topic", "partition"], "left").select(
        "topic", "partition", decode_committed_record_batches("content", "hidden", "lso").alias("records")
    )
    rows = decoded.selectExpr("topic", "partition", "explode(records) as record").selectExpr(
        "topic", "partition", "record.*", "unix_millis(record.timestamp) as ms"
    )
    found = defaultdict(list)
    for row in sorted(rows.collect(), key=lambda row: row.offset):
        found[TopicPartition(row.topic, row.partition)].append(row)
    return found


@pytest.mark.parametrize("name", ["interleaved", "hanging", "compacted", "deleted", "tv1_open"])
def test_committed_records_are_those_of_the_consumer(spark: SparkSession, name: str) -> None:
    (case,) = (each for each in SOUND if each.name == name)
    found = committed_from_bytes(spark, str(case.answered))
    hidden = 0
    for partition in (each for each in case.partitions() if not each.topic.startswith("_")):
        start = case.facts(partition)["log_start_offset"]
        got = [as_line(row) for row in found[partition] if row.offset >= start]
        assert got == case.expected_records(partition, "read_committed"), partition
        hidden += len(case.expected_records(partition, "read_uncommitted")) - len(got)
    assert hidden > 0


def test_undecided_records_are_hidden_as_by_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    """A segment is missing, and with it an end of the transaction in front of it."""
    begun = batch(0, transactional=True, producer_id=1, producer_epoch=0)
    segments = {0: [begun, batch(2)], 10: [marker(10, "commit", 1), batch(11)]}
    write_log(tmp_path, "t-0", segments)
    view = LogDir(str(tmp_path)).partition("t", 0)
    assert [each.outcome for each in view.transactions()] == ["undecided"]
    wanted = [record.offset for record in view.records()]
    (found,) = committed_from_bytes(spark, str(tmp_path)).values()
    assert [row.offset for row in found] == wanted == [2, 3, 11, 12]
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    assert all(each in page.read_text(encoding="utf-8") for each in HIDDEN)


def test_committed_records_from_sql(spark: SparkSession) -> None:
    register(spark)
    content = (
        batch(0, transactional=True, producer_id=1, producer_epoch=0)
        + batch(2, transactional=True, producer_id=2, producer_epoch=0)
        + marker(4, "abort", 1)
        + batch(5)
    )
    frame = values(spark, content, None)
    decoded = "txnkafka_decode_committed_record_batches(content, {}, {}).offset as offsets"
    one = "array(struct(0L as firstOffset, 1L as lastOffset, 1L as producerId, 'x' as more))"
    answers = {
        ("null", "null"): [0, 1, 2, 3, 5, 6],
        (one, "null"): [2, 3, 5, 6],
        (one, "5L"): [2, 3],
        ("null", "0L"): [],
    }
    for (aborted, lso), wanted in answers.items():
        rows = frame.selectExpr(decoded.format(aborted, lso)).collect()
        assert [row.offsets for row in rows] == [wanted, None]
    with pytest.raises(PySparkException, match="structs with producerId, firstOffset, lastOffset"):
        frame.selectExpr(decoded.format("array(1L)", "null")).collect()


def test_python_functions_take_columns_and_names(spark: SparkSession) -> None:
    frame = values(spark, marker(0, "commit", 1))
    assert frame.select(control_type("content"), control_type(frame.content)).first() == ("commit", "commit")


@pytest.mark.parametrize("codec", [0, 4])
def test_a_last_stable_offset_inside_of_a_batch(codec: int) -> None:
    """DeleteRecords moves the log start into a batch, and with it the first offset of an open transaction."""
    content = memoryview(
        batch(0, 2, codec=codec, producer_id=1, producer_epoch=0)
        + batch(2, 4, codec=codec, producer_id=2, producer_epoch=0)
        + batch(6, 2, codec=codec, producer_id=3, producer_epoch=0)
        + batch(1, 3, codec=codec, producer_id=4, producer_epoch=0)
    )
    found = RecordBatchesDecoder().records(content, end_offset=3)
    rows = [(row["offset"], row["producerId"]) for array in found for row in array.to_pylist()]
    assert rows == [(0, 1), (1, 1), (2, 2), (1, 4), (2, 4)]


def test_a_last_stable_offset_inside_of_a_wrapper() -> None:
    found = RecordBatchesDecoder().records(memoryview(LEGACY), end_offset=1)
    assert [row["offset"] for array in found for row in array.to_pylist()] == [0]


def test_a_header_key_value_and_sequence_that_begins_again() -> None:
    records = [PlainRecord(b"k", None, 5, [(b"h", None), (b"\xff", b"1")]), PlainRecord(None, b"", 6)]
    content = Batch(records=records, producer_id=9, producer_epoch=3, base_sequence=2**31 - 1).encode()
    (found,) = RecordBatchesDecoder().records(memoryview(content))
    assert found.type == RECORD_TYPE
    first, second = found.to_pylist()
    assert first["headers"] == [{"key": "h", "value": None}, {"key": "\ufffd", "value": b"1"}]
    assert second["headers"] is None
    assert [(each["producerId"], each["producerEpoch"], each["sequence"]) for each in (first, second)] == [
        (9, 3, 2**31 - 1),
        (9, 3, 0),
    ]
    assert (first["leaderEpoch"], first["isTransactional"]) == (None, False)


def test_much_output_goes_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_functions, "OUTPUT_BYTES", 200)
    columns = [
        pa.array([batch(0), None, batch(2), batch(4), batch(6)], pa.binary()),
        pa.array([], pa.binary()),
    ]
    found = list(arrow_functions.decode_record_batches(iter(columns)))
    assert len(found) > 3
    rows = [row for each in found for row in each.to_pylist()]
    assert [row and [record["offset"] for record in row] for row in rows] == [
        [0, 1],
        None,
        [2, 3],
        [4, 5],
        [6, 7],
    ]


def test_more_than_a_row_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txnkafka.spark.record_batches.MAX_VALUE_BYTES", 100)
    with pytest.raises(ValueError, match=r'too many for one row: read the file with format\("txnkafka"\)'):
        RecordBatchesDecoder().records(memoryview(batch(0)))

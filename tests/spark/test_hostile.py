"""Malicious segments with right checksums: the task fails, and its message has the place of the bytes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.models.builder import Batch, PlainRecord
from tests.unit.logdir.logs import batch, write_log
from txnkafka.spark import batches

RECORDS = [PlainRecord(None, b"")]
RUN = struct.pack("<I", 0xEE000000 | (128 << 10) << 3 | 1 << 1)  # a zstd block of four bytes: 128 KiB of 0xEE
END = struct.pack("<I", 1 << 3 | 1)[:3] + b"."
BOMB = b"\x28\xb5\x2f\xfd\x00\x38" + 2000 * RUN + END  # window of 128 KiB, 250 MiB in all

HOSTILE = {
    "two billion records": (
        Batch(records=RECORDS, base_offset=2, count=2**31 - 1),
        "fewer records than its header says",
    ),
    "8 KB that become 250 MiB": (
        Batch(records=RECORDS, base_offset=2, codec=4, payload=BOMB),
        "exceeds its limit of 16777216 bytes",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("door", ["batches", "source"])
def test_the_driver_gets_file_and_position(spark: SparkSession, tmp_path: Path, name: str, door: str) -> None:
    hostile, reason = HOSTILE[name]
    sound = batch(0)
    path = write_log(tmp_path, "t-0", {0: [sound, hostile.encode(), batch(3)]}) / f"{0:020}.log"
    read = {
        "batches": lambda: batches(spark, tmp_path).count(),
        "source": lambda: spark.read.format("txnkafka").load(str(tmp_path)).collect(),
    }
    with pytest.raises(PySparkException) as caught:
        read[door]()
    message = str(caught.value)
    assert reason in message
    assert f"(t-0, {path}, position {len(sound)}, offset 2)" in message


def test_names_that_are_no_utf8_are_escaped(spark: SparkSession, tmp_path: Path) -> None:
    """A UnicodeEncodeError of a worker said neither the topic nor the directory."""
    topic = r"caf\xe9"
    write_log(tmp_path, os.fsdecode(b"caf\xe9-0"), {0: [batch(0), b"garbage"]})
    for name in ("records", "batches", "segments", "transactions"):
        rows = spark.read.format("txnkafka").option("table", name).load(str(tmp_path)).collect()
        assert {row.topic for row in rows} <= {topic}
    found = spark.read.format("txnkafka").option("table", "findings").load(str(tmp_path)).collect()
    assert f"{tmp_path}/{topic}-0/{0:020}.log" in {row.file for row in found}
    assert batches(spark, tmp_path, columns=["topic"]).first()["topic"].to_pylist() == [topic] * 2

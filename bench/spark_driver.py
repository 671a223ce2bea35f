"""The Spark program that bench/spark.py drives: `python -m bench.spark_driver READER CORES`.

A line on stdin is the JSON of ["run", WORK, ADDRESS], ["digest", WORK, ADDRESS] or, before a run that needs
it, ["prepare", WORK, ADDRESS], and so is the answer. WORK
is one of `WORK` below. READER is `kafka`, Spark's own Kafka source, which reads from the broker at ADDRESS;
`txnkafka`, which reads the log directory ADDRESS; `broker`, which is txnkafka's source over the broker at
ADDRESS; `crossing`, which sends ADDRESS prepared rows; or `alone`,
which does the work of a txnkafka task without Spark.
Works that write, and streams, have a number as the first word of ADDRESS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.crossing import crossing, crossing_scan
from tests.conformance.maven import spark_kafka_jars
from txnkafka.spark.read import TaskReader
from txnkafka.spark.schema import batch_schema
from txnkafka.spark.source_options import parse_source_options
from txnkafka.spark.tables import find_table

WORD = "eu-west-2"
MIDDLE = b"n"  # the middle of the first letters of the keys
TOPIC = "bench"
OF_BROKER = {"kafka": "kafka", "broker": "txnkafka"}
ALL_COLUMNS = None
Work = Callable[[SparkSession, str, str], object]
Matches = Callable[[pa.RecordBatch], pa.Array]
FEW = "offset < 1000"
TOTALS = ("count(1)", "sum(offset)", "sum(length(value))")


def session(cores: str) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{cores}]").appName("txnkafka bench")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    builder = builder.config("spark.jars", ",".join(map(str, spark_kafka_jars())))
    # as docs/spark.md recommends; set for both readers
    builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
    builder = builder.config("spark.buffer.size", str(1 << 20))
    # an empty trigger makes a progress event, and the next one follows at once
    builder = builder.config("spark.sql.streaming.noDataProgressEventInterval", "0")
    builder = builder.config("spark.sql.streaming.pollingDelay", "0")
    builder = builder.config("spark.sql.streaming.numRecentProgressUpdates", "100000")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def rows(spark: SparkSession, reader: str, address: str, schema: str | None = ALL_COLUMNS) -> DataFrame:
    """Return all records; a schema narrows ours, Spark's own source does not need one."""
    if reader in OF_BROKER:
        source = spark.read.format(OF_BROKER[reader]).option("kafka.bootstrap.servers", address)
        return source.option("subscribe", TOPIC).option("kafka.isolation.level", "read_committed").load()
    if reader == "crossing":
        return crossing(spark, int(address), schema)
    ours = spark.read.format("txnkafka").option("subscribe", TOPIC)
    return (ours.schema(schema) if schema else ours).load(address)


def scanned(spark: SparkSession, reader: str, address: str, columns: list[str]) -> DataFrame:
    from txnkafka.spark import scan

    if reader == "crossing":
        return crossing_scan(spark, int(address), columns)
    return scan(spark, address, topic=TOPIC, columns=columns)


def scan_value_bytes(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Read rows with all columns into SQL through ``scan``."""
    from txnkafka.spark.schema import KAFKA_COLUMNS

    found = scanned(spark, reader, address, list(KAFKA_COLUMNS))
    return tuple(found.selectExpr("sum(length(value))").first() or ())


def scan_totals(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    return tuple(scanned(spark, reader, address, ["offset", "value"]).selectExpr(*TOTALS).first() or ())


def scan_value(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Read the same with only that column."""
    return tuple(scanned(spark, reader, address, ["value"]).selectExpr("sum(length(value))").first() or ())


def few(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Compute totals of the first thousand offsets of each partition."""
    if reader == "kafka":
        found = rows(spark, reader, address)
    else:
        found = spark.read.format("txnkafka").option("subscribe", TOPIC)
        found = found.option("where", FEW).option("columns", "offset,value").load(address)
    return tuple(found.where(FEW).selectExpr(*TOTALS).first() or ())


def counted(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Count the records: from batch headers, or by reading them."""
    if reader == "kafka":
        return tuple(rows(spark, reader, address).selectExpr("count(1)").first() or ())
    from txnkafka.spark import count

    return (count(spark, address, topic=TOPIC),)


def batch_records(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Count them in the table of batches."""
    from txnkafka.spark import table

    found = table(spark, "batches", address, topic=TOPIC).where("visible")
    return tuple(found.selectExpr("sum(recordCount)").first() or ())


def findings(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Check every byte; return the number of findings."""
    from txnkafka.spark import table

    return (table(spark, "findings", address, topic=TOPIC).count(),)


def exported(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Export all columns to Parquet files by topic; return the number of records."""
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/out"
        if reader == "kafka":
            writer = rows(spark, reader, address).write.partitionBy("topic")
            writer.option("compression", "zstd").parquet(output)
        else:
            _export(spark, address, output)
        import pyarrow.parquet as pq

        return (sum(pq.read_metadata(path).num_rows for path in Path(output).rglob("topic=*/**/*.parquet")),)


def _export(spark: SparkSession, address: str, output: str) -> None:
    from txnkafka import LogDir
    from txnkafka.export import ExportOptions, export
    from txnkafka.spark.export import SparkEngine

    columns = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    options = ExportOptions(
        to="parquet", paths=(address,), topic=TOPIC, partition_by=("topic",), columns=columns
    )
    log_dir = LogDir(address)
    chosen = [found for found in log_dir.topic_partitions if found.topic == TOPIC]
    engine = SparkEngine(spark)
    export(log_dir, chosen, output, options, locate=lambda view: options.request, engine=engine)


def value_bytes(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Read rows with all columns into SQL, which uses one of them."""
    return tuple(rows(spark, reader, address).selectExpr("sum(length(value))").first() or ())


def narrow_value_bytes(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Read the same with a schema of that column."""
    return tuple(rows(spark, reader, address, "value binary").selectExpr("sum(length(value))").first() or ())


def offset_sum(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Read offsets only."""
    return tuple(
        rows(spark, reader, address, "offset long").selectExpr("count(1)", "sum(offset)").first() or ()
    )


def noop(spark: SparkSession, reader: str, address: str) -> None:
    """Read rows with all columns, without writing them."""
    rows(spark, reader, address).write.format("noop").mode("overwrite").save()


def totals(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    return tuple(rows(spark, reader, address).selectExpr(*TOTALS).first() or ())


def totals_where(matches: Matches, batch: pa.RecordBatch) -> tuple[int, int, int]:
    """Return number, sum of offsets and value bytes of the matching records; keys and values are not
    copied."""
    found = matches(batch)
    columns = (batch.column("offset"), pc.binary_length(batch.column("value")))
    offsets, sizes = (pc.sum(pc.filter(column, found)).as_py() or 0 for column in columns)
    return pc.sum(found).as_py() or 0, offsets, sizes


def in_upper_half(batch: pa.RecordBatch) -> pa.Array:
    return pc.greater_equal(batch.column("key"), pa.scalar(MIDDLE))


def contains_word(batch: pa.RecordBatch) -> pa.Array:
    return pc.match_substring(batch.column("value"), WORD)


def added(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def aggregate(
    spark: SparkSession,
    reader: str,
    address: str,
    matches: Matches = in_upper_half,
    sql: str = "key >= X'6E'",
) -> tuple[object, ...]:
    """Compute totals of the matching records: in the Python workers, or as SQL in the JVM, the fastest way
    for Spark's own source."""
    if reader == "kafka":
        return tuple(rows(spark, reader, address).where(sql).selectExpr(*TOTALS).first() or ())
    from txnkafka.spark import batches

    columns = ["key", "offset", "value"]
    if reader == "alone":
        return reduce(added, (totals_where(matches, batch) for batch in without_spark(address, columns)))
    found = batches(spark, address, topic=TOPIC, columns=columns)
    return found.map(partial(totals_where, matches)).reduce(added)


def without_spark(address: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that all tasks of a job read, one after the other in this process."""
    options = parse_source_options({"path": address, "subscribe": TOPIC})
    tasks = find_table("records").plan(options.paths, options.reading, 1)
    return TaskReader(batch_schema(columns), options.reading)(tasks)


def search(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Compute the same for the records whose value contains a word."""
    return aggregate(spark, reader, address, contains_word, f"contains(value, cast('{WORD}' as binary))")


class Streaming:
    """A query over all records, in batches that are not written. It is started before its time is measured,
    and waits in its first batch: a query is started once, and then goes on for weeks."""

    def __init__(self) -> None:
        self._waits, self._may_go_on = Event(), Event()
        self._query: StreamingQuery | None = None

    def prepare(self, spark: SparkSession, reader: str, address: str) -> None:
        """Start the query. ``address``: the offsets of a batch, and where to read."""
        most, address = address.split(" ", 1)
        self._waits.clear()
        self._may_go_on.clear()
        source = spark.readStream.format(OF_BROKER.get(reader, "txnkafka")).option("subscribe", TOPIC)
        source = source.option("kafka.isolation.level", "read_committed")
        source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", most)
        source = source.option("kafka.bootstrap.servers" if reader in OF_BROKER else "path", address)
        writer = source.load().writeStream.foreachBatch(self._batch).trigger(availableNow=True)
        self._query = writer.start()
        self._waits.wait()

    def _batch(self, batch: DataFrame, _: int) -> None:
        self._waits.set()
        self._may_go_on.wait()
        batch.write.format("noop").mode("overwrite").save()

    def run(self, spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
        """Wait for the end; return the number of records."""
        assert self._query
        self._may_go_on.set()
        self._query.awaitTermination()
        return (sum(progress["numInputRows"] for progress in self._query.recentProgress),)

    def digest(self, spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
        """Return the totals of a batch read."""
        return totals(spark, reader, address.split(" ", 1)[1])


STREAMING = Streaming()


def verified(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Check every byte, as a job or by ``txnkafka verify``; return 1 for a log with errors."""
    if reader == "alone":
        command = [sys.executable, "-m", "txnkafka", "verify", address, "--topic", TOPIC]
        return (subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode,)
    from txnkafka.spark import verify

    found = verify(spark, address, topic=TOPIC)
    found.findings.unpersist()
    return (int(not found.is_sound),)


def sunk(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Write rows of 100 B to a topic; return their number. ``address``: the number, and where to."""
    count, target = address.split(" ", 1)
    frame = spark.range(int(count)).selectExpr(
        "cast(id as string) as key", "lpad(cast(id * 7919 as string), 90, 'abcdefghij') as value"
    )
    writer = frame.write.format(OF_BROKER.get(reader, "txnkafka")).option("topic", TOPIC)
    if reader == "txnkafka":
        writer.mode("append").save(target)
        return (int(count),)
    writer = writer.option("kafka.bootstrap.servers", target)
    if reader == "broker":
        writer = writer.option("stagingPath", f"{tempfile.gettempdir()}/bench.staging")
    writer.mode("append").save()
    return (int(count),)


def visible(spark: SparkSession, reader: str, address: str) -> bool:
    """Return whether a reader finds all rows of some writes."""
    count, target = address.split(" ", 1)
    found = rows(spark, reader, target).count()
    return found > 0 and found % int(count) == 0


def triggered(spark: SparkSession, reader: str, address: str) -> tuple[object, ...]:
    """Wait until a stream has looked for data, in vain, a number of times. ``address``: the number, and
    where."""
    count, target = address.split(" ", 1)
    source = spark.readStream.format(OF_BROKER.get(reader, "txnkafka")).option("subscribe", TOPIC)
    source = source.option("kafka.isolation.level", "read_committed").option("startingOffsets", "latest")
    source = source.option("kafka.bootstrap.servers" if reader in OF_BROKER else "path", target)
    query = source.load().writeStream.format("noop").start()
    try:
        while len(query.recentProgress) < int(count):
            time.sleep(0.1)
        return (sum(progress["numInputRows"] for progress in query.recentProgress),)
    finally:
        query.stop()


# the timed function, and the one for the digest
WORK: dict[str, tuple[Work, Work]] = {
    "sql": (value_bytes, totals),
    "value": (narrow_value_bytes, totals),
    "noop": (noop, totals),
    "aggregate": (aggregate, aggregate),
    "search": (search, search),
    "offsets": (offset_sum, offset_sum),
    "scan": (scan_value_bytes, scan_totals),
    "scan value": (scan_value, scan_totals),
    "few": (few, few),
    "count": (counted, counted),
    "batches": (batch_records, batch_records),
    "export": (exported, exported),
    "findings": (findings, findings),
    "stream": (STREAMING.run, STREAMING.digest),
    "verify": (verified, verified),
    "sink": (sunk, visible),
    "triggers": (triggered, triggered),
}


def main() -> None:
    reader, cores = sys.argv[1:]
    spark = None if reader == "alone" else session(cores)
    for line in sys.stdin:
        what, work, address = json.loads(line)
        run, digest = WORK[work]
        function = {"run": run, "digest": digest, "prepare": STREAMING.prepare}[what]
        print(json.dumps(function(spark, reader, address)), flush=True)
    if spark:
        spark.stop()


if __name__ == "__main__":
    main()

"""The contests on Spark: work of txnkafka against Spark's own Kafka source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.harness import Comparison, Contest, Limit, Side
from bench.segments import MIB, Input, linked
from bench.served import served, sink_targets
from bench.spark import SparkSide

if TYPE_CHECKING:
    from bench.rows import Plan

__all__ = ["spark_contests"]

# work of txnkafka and of Spark's own source, name, goal
SPARK_WORK = (
    ("sql", "sql", "rows to SQL, all columns", 2.0),
    ("value", "sql", "rows to SQL, one column", 2.0),
    ("noop", "noop", "noop write, all columns", None),
    ("aggregate", "aggregate", "filtered aggregate in the workers", 12.0),
    ("search", "search", "search for a word in the workers", None),
    ("offsets", "offsets", "offsets only", None),
    ("scan", "sql", "scan() to SQL, all columns", 2.0),
    ("scan value", "sql", "scan() to SQL, one column", 2.0),
    ("few", "few", "a thousand offsets of each partition", None),
    ("count", "count", "count() from headers; kafka reads records", None),
    ("batches", "count", "table of batches; kafka counts records", None),
    ("export", "export", "export to Parquet", 3.0),
    ("stream", "stream", "stream, all columns", 2.0),
)
# those that are also run on two cores, and in a quick run
SPARK_SCALING = ("aggregate", "export")
# those beside which the mere way into the JVM is measured, and those with twice the data: a job of Spark's
# costs some 50 ms of CPU whatever it reads
SPARK_CROSSING = ("sql", "value", "noop", "scan", "scan value")
SPARK_TWICE = ("aggregate",)
# those that are also run with txnkafka's source over the broker
SPARK_BROKER = {"stream": 1.5}
FINDINGS_PARTITIONS = 8
FINDINGS_LIMIT = 0.25  # ns a byte of log: 4 GB/s
VERIFY_GOAL, SINK_GOAL, TRIGGER_GOAL = 1.7, 2.0, 1.0
TRIGGERS = 500
STREAM_BATCHES = 8
SINK_BYTES_A_ROW = 400  # of the input size of the plan: a write takes seconds


def spark_contests(plan: Plan, cores: int) -> Iterator[Contest]:
    """Yield the contests on that many cores."""
    for ours, theirs, name, goal in SPARK_WORK:
        if ours in SPARK_SCALING or (cores == 1 and (plan.spark_all or ours == "sql")):
            yield _against_kafka_source(plan, cores, ours, theirs, f"Spark local[{cores}], {name}", goal)
    if cores == 1:
        yield _findings(plan, cores)
        yield _empty_triggers(plan, cores)
    if cores == 2:
        yield _verify(plan, cores)
        yield _sink(plan, cores)


def _against_kafka_source(
    plan: Plan, cores: int, ours: str, theirs: str, name: str, goal: float | None
) -> Contest:
    partitions = 8 if ours in SPARK_TWICE else 4
    source = Input("100", plan.spark * partitions // 4, partitions=partitions)
    comparisons = [Comparison("txnkafka", "kafka", goal)]
    if ours in SPARK_CROSSING:
        comparisons.append(Comparison("txnkafka", "crossing", 0.95))
    if ours in SPARK_TWICE:
        comparisons.append(Comparison("txnkafka", "alone", 0.7))
    if ours in SPARK_BROKER:
        comparisons.append(Comparison("broker", "kafka", SPARK_BROKER[ours]))

    def sides() -> Sequence[Side]:
        broker = served(source)
        wanted = [("txnkafka", ours, str(broker.log_dir)), ("kafka", theirs, broker.bootstrap_servers)]
        if ours in SPARK_CROSSING:
            wanted.append(("crossing", ours, str(source.records)))
        if ours in SPARK_TWICE:
            wanted.append(("alone", ours, str(broker.log_dir)))
        if ours in SPARK_BROKER:
            wanted.append(("broker", ours, broker.bootstrap_servers))
            most = -(-source.records // STREAM_BATCHES)
            wanted = [(reader, work, f"{most} {address}") for reader, work, address in wanted]
        return [
            SparkSide(reader, work, cores, address, source.records, plan.spark_warm_seconds)
            for reader, work, address in wanted
        ]

    return Contest(
        name,
        "records",
        lambda: source.records,
        sides,
        comparisons,
        plan.spark_rounds,
        "Spark: `kafka` is Spark's own Kafka source, which reads from a broker that serves the directory "
        "that txnkafka reads meanwhile; `crossing` sends as many rows of the same columns and sizes from "
        "Python workers that read nothing; `alone` does what the tasks do, in one process without Spark; "
        "`broker` is txnkafka's source over the broker. "
        "CPU time and memory are those of Spark (JVM and Python workers), without the broker's.",
    )


def _findings(plan: Plan, cores: int) -> Contest:
    source = Input("100", plan.verify)

    def log_bytes() -> int:
        return FINDINGS_PARTITIONS * source.segment.stat().st_size

    def sides() -> Sequence[Side]:
        log_dir = linked(source, FINDINGS_PARTITIONS)
        return [SparkSide("txnkafka", "findings", cores, str(log_dir), log_bytes(), plan.spark_warm_seconds)]

    return Contest(
        f"Spark local[{cores}], table of findings, {FINDINGS_PARTITIONS} x {plan.verify // MIB} MiB",
        "bytes",
        log_bytes,
        sides,
        [],
        plan.spark_rounds,
        note="The findings are of partitions that are links to one segment.",
        limits=[Limit("txnkafka", FINDINGS_LIMIT)],
    )


def _verify(plan: Plan, cores: int) -> Contest:
    source = Input("100", plan.verify)

    def log_bytes() -> int:
        return FINDINGS_PARTITIONS * source.segment.stat().st_size

    def sides() -> Sequence[Side]:
        log_dir = str(linked(source, FINDINGS_PARTITIONS))
        return [
            SparkSide(reader, "verify", cores, log_dir, log_bytes(), plan.spark_warm_seconds)
            for reader in ("txnkafka", "alone")
        ]

    return Contest(
        f"Spark local[{cores}], verify {FINDINGS_PARTITIONS} x {plan.verify // MIB} MiB",
        "bytes",
        log_bytes,
        sides,
        [Comparison("txnkafka", "alone", VERIFY_GOAL, by_wall=True)],
        plan.spark_rounds,
        note="`alone` is `txnkafka verify` in one process, its start included.",
    )


def _sink(plan: Plan, cores: int) -> Contest:
    count = plan.spark // SINK_BYTES_A_ROW

    def sides() -> Sequence[Side]:
        servers, directory = sink_targets(cores)
        return [
            SparkSide(reader, "sink", cores, f"{count} {target}", count, plan.spark_warm_seconds)
            for reader, target in (("txnkafka", directory), ("broker", servers), ("kafka", servers))
        ]

    return Contest(
        f"Spark local[{cores}], sink, {count:,} rows",
        "rows",
        lambda: count,
        sides,
        [
            Comparison("txnkafka", "kafka", SINK_GOAL, by_wall=True),
            Comparison("broker", "kafka", by_wall=True),
        ],
        plan.spark_rounds,
        note="`txnkafka` writes into a data directory, exactly once, and syncs; `broker` writes to Apache "
        "Kafka, exactly once; `kafka` is Spark's own sink, which writes to the same Apache Kafka at least "
        "once. Neither broker side waits for the disk.",
    )


def _empty_triggers(plan: Plan, cores: int) -> Contest:
    source = Input("100", plan.spark, partitions=4)

    def sides() -> Sequence[Side]:
        broker = served(source)
        wanted = [("txnkafka", broker.log_dir), ("broker", broker.bootstrap_servers)]
        wanted.append(("kafka", broker.bootstrap_servers))
        return [
            SparkSide(reader, "triggers", cores, f"{TRIGGERS} {where}", TRIGGERS, plan.spark_warm_seconds)
            for reader, where in wanted
        ]

    return Contest(
        f"Spark local[{cores}], stream, {TRIGGERS} empty triggers",
        "triggers",
        lambda: TRIGGERS,
        sides,
        [Comparison("txnkafka", "kafka", TRIGGER_GOAL), Comparison("broker", "kafka", TRIGGER_GOAL)],
        plan.spark_rounds,
        note="A stream is started at the end of a topic that does not grow, and asks for new data again and "
        "again.",
    )

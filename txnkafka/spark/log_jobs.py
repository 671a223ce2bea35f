"""Jobs over whole logs: ``verify``, ``transactions`` and ``copy``; the commands of ``txnkafka spark``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Unpack, get_args

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from txnkafka.env import LocalDataFiles, make_directories
from txnkafka.errors import TopicAlreadyExistsError
from txnkafka.logdir.names import without_internal
from txnkafka.spark.jobs import Path, paths_of, scan
from txnkafka.spark.options import ReadKeywords, read_options
from txnkafka.spark.plan import open_log_dir
from txnkafka.spark.selection import chosen_partitions
from txnkafka.spark.sink.sink_options import parse_sink_options
from txnkafka.spark.table_jobs import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

Shown = Literal["open", "hanging", "longest", "largest", "by-id"]
SHOWN: Final = get_args(Shown)
_COPIED: Final = ("key", "value", "headers", "topic", "partition", "timestamp")


class Verified(NamedTuple):
    """``findings`` is the table of that name, kept in the executors until ``findings.unpersist()``.
    ``severities`` counts them: ``error``, ``warning``, ``note``."""

    findings: DataFrame
    severities: Counter[str]

    @property
    def is_sound(self) -> bool:
        """Return whether no finding is an error or a warning."""
        return not self.severities["error"] and not self.severities["warning"]


def verify(spark: SparkSession, path: Path, **reading: Unpack[ReadKeywords]) -> Verified:
    """Check every byte of one or more log directories in the executors, as ``txnkafka verify`` does.
    ``reading`` selects topics."""
    findings = table(spark, "findings", path, **reading).persist()
    counts = findings.groupBy("severity").count().collect()
    return Verified(findings, Counter({row["severity"]: row["count"] for row in counts}))


def transactions(
    spark: SparkSession, path: Path, show: Shown = "open", *, limit: int = 20, **reading: Unpack[ReadKeywords]
) -> DataFrame:
    """Return at most ``limit`` rows about transactions, one per transaction and partition, with the columns
    of the table ``transactions``.

    ``open``: without a marker, oldest first. ``hanging``: the open ones that never get a marker by
    themselves, with the columns ``verdict`` and ``reason`` of ``txnkafka lso``. ``longest``: by the time from
    the first record to the marker, with the column ``milliseconds``. ``largest``: by bytes. ``by-id``: one
    row per transactional id and outcome, with sums. Raises ValueError for another ``show``."""
    if show not in SHOWN:
        raise ValueError(f"show is one of {', '.join(SHOWN)}, not {show!r}")
    found = table(spark, "transactions", path, **reading)
    is_open = F.col("outcome") == "open"
    if show == "hanging":
        rows = found.where(is_open).orderBy("firstTimestamp").collect()
        schema = StructType(found.schema.fields).add("verdict", "string").add("reason", "string")
        judged = _judged(path, reading, {(row.topic, row.partition) for row in rows})
        places = [(row.topic, row.partition, row.producerId) for row in rows]
        hanging = [(*row, *judged[place]) for row, place in zip(rows, places, strict=True) if place in judged]
        return spark.createDataFrame(hanging[:limit], schema)
    if show == "by-id":
        sums = [F.sum(name).alias(name) for name in ("batches", "records", "bytes")]
        ids = found.groupBy("transactionalId", "outcome").agg(
            F.count("*").alias("partitionTransactions"),
            *sums,
            F.max(_milliseconds()).alias("longestMilliseconds"),
        )
        return ids.orderBy(F.desc("bytes")).limit(limit)
    if show == "open":
        return found.where(is_open).orderBy("firstTimestamp").limit(limit)
    if show == "longest":
        timed = found.withColumn("milliseconds", _milliseconds()).where("milliseconds is not null")
        return timed.orderBy(F.desc("milliseconds")).limit(limit)
    return found.orderBy(F.desc("bytes")).limit(limit)


def copy(
    spark: SparkSession,
    source: Path,
    *,
    path: str | None = None,
    bootstrap_servers: str | None = None,
    names: Mapping[str, str] | None = None,
    partitions: int | None = None,
    compression: str = "none",
    transactional_id: str | None = None,
    version: int = 0,
    staging_path: str | None = None,
    kafka: Mapping[str, object] | None = None,
    **reading: Unpack[ReadKeywords],
) -> None:
    """Copy the committed records of log directories into the data directory ``path``, which is created if it
    does not exist, or to brokers, in one transaction.

    ``names`` maps topics of the source to topics of the target; others keep their names. Missing topics are
    created with as many partitions as the source has. With ``partitions`` they have this number, and keys
    choose the partition as in Java; the order of the records of a key stays. Keys, values, headers and
    timestamps stay, offsets do not. With ``transactional_id`` a repeated copy of the same ``version`` is
    skipped. ``compression``, ``staging_path`` and ``kafka`` are options of the sink; ``reading`` selects the
    records. Raises ValueError for wrong options, KafkaError and LogDirError for the two sides."""
    given = {
        "path": path,
        "kafka.bootstrap.servers": bootstrap_servers,
        "compression": compression,
        "stagingPath": staging_path,
        "txnAppId": transactional_id,
        "txnVersion": None if transactional_id is None else str(version),
        **{f"kafka.{name.removeprefix('kafka.')}": str(value) for name, value in (kafka or {}).items()},
    }
    options = {name: value for name, value in given.items() if value is not None}
    counts = _partitions_of(source, reading)
    targets = {topic: (names or {}).get(topic, topic) for topic in counts}
    _check_names(names or {}, targets)
    _create(options, {targets[topic]: partitions or count for topic, count in counts.items()})
    rows = scan(spark, source, columns=_COPIED, **reading)
    if names:
        renamed = F.create_map(*(F.lit(name) for pair in targets.items() for name in pair))
        rows = rows.withColumn("topic", renamed[F.col("topic")])
    if partitions is not None:
        rows = rows.drop("partition")
    rows.write.format("txnkafka").options(**options).mode("append").save()


def _milliseconds() -> Any:
    return F.unix_millis("markerTimestamp") - F.unix_millis("firstTimestamp")


def _judged(
    path: Path, reading: ReadKeywords, places: set[tuple[str, int]]
) -> dict[tuple[str, int, int], tuple[str, str]]:
    """Return the verdicts on hanging transactions by topic, partition and producer id. The driver judges
    them: it has the coordinator's log."""
    log_dir = open_log_dir(paths_of(path), read_options(**reading))
    return {
        (topic, number, each.transaction.producer_id): (each.verdict.value, each.reason)
        for topic, number in sorted(places)
        for each in log_dir.partition(topic, number).explain().open_transactions
        if each.verdict.needs_marker
    }


def _partitions_of(source: Path, reading: ReadKeywords) -> dict[str, int]:
    """Return the selected topics, each with its number of partitions: one more than the largest."""
    options = read_options(**reading)
    chosen = without_internal(chosen_partitions(open_log_dir(paths_of(source), options), options))
    counts: dict[str, int] = {}
    for each in chosen:
        counts[each.topic] = max(counts.get(each.topic, 0), each.partition + 1)
    return counts


def _check_names(names: Mapping[str, str], targets: Mapping[str, str]) -> None:
    unknown = sorted(set(names) - set(targets))
    if unknown:
        raise ValueError(
            f"no topic {unknown[0]} in the source, which has {', '.join(sorted(targets)) or 'none'}"
        )


def _create(options: Mapping[str, str], topics: Mapping[str, int]) -> None:
    """Create the missing topics, and the data directory."""
    from txnkafka.spark.sink.target import open_target  # loads pyarrow

    found = parse_sink_options(options, is_stream=False)
    if found.directory is not None:
        make_directories(LocalDataFiles(), found.directory)
    with open_target(found) as clients, clients.admin(**found.admin_settings()) as admin:
        for topic, count in topics.items():
            try:
                admin.create_topic(topic, count)
            except TopicAlreadyExistsError:
                continue

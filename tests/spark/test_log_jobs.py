"""Jobs over whole logs: the answers of the commands, and copies that a reader cannot tell from the source."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import case
from txnkafka import Broker, LogDir, TopicPartition
from txnkafka.logdir.verify import verify as verify_log_dir
from txnkafka.spark import copy, transactions, verify

TOPIC = "orders"

TIME = 1_700_000_000_000


def write_source(path: Path) -> None:
    """Three partitions with committed, aborted and open transactions, and records without one."""
    with Broker.open(path) as broker, broker.admin() as admin:
        admin.create_topic(TOPIC, 3)
        with broker.producer(transactional_id="shop") as producer, broker.producer() as plain:
            for number in range(60):
                try:
                    with producer.transaction():
                        producer.send(
                            TOPIC, b"%d" % number, key=b"k%d" % (number % 7), timestamp=TIME + number,
                            headers=[("number", b"%d" % number), ("none", None)],
                        )  # fmt: skip
                        if number % 5 == 4:
                            producer.flush()
                            raise KeyError
                except KeyError:
                    continue
            plain.send(TOPIC, None, key=b"k0", timestamp=TIME + 60).result()
            with broker.producer(transactional_id="open") as slow:
                slow.init_transactions()
                slow.begin_transaction()
                slow.send(TOPIC, b"undecided", partition=2).result()
                slow._core.is_closed = True  # the process ends here


def content(path: Path, topic: str, partitions: int) -> list[list[tuple[object, ...]]]:
    """Return the committed records of each partition, in order, without offsets."""
    views = [LogDir(path).partition(topic, number) for number in range(partitions)]
    return [
        [(each.key, each.value, each.timestamp, tuple(each.headers)) for each in view.records()]
        for view in views
    ]


def test_a_copy_has_the_committed_records_in_order(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    copy(spark, tmp_path / "source", path=str(tmp_path / "copy"), compression="zstd")
    assert content(tmp_path / "copy", TOPIC, 3) == content(tmp_path / "source", TOPIC, 3)


def test_a_copy_with_other_partitions_and_another_name(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    for _ in range(2):  # the second copy is skipped
        copy(
            spark, tmp_path / "source", path=str(tmp_path / "copy"), names={TOPIC: "sold"}, partitions=2,
            transactional_id="move", compression="lz4",
        )  # fmt: skip
    found = content(tmp_path / "copy", "sold", 2)
    wanted = [record for partition in content(tmp_path / "source", TOPIC, 3) for record in partition]
    assert all(found)
    assert Counter(record for partition in found for record in partition) == Counter(wanted)
    for key in {record[0] for record in wanted}:
        copied = [record for partition in found for record in partition if record[0] == key]
        assert copied == [record for record in wanted if record[0] == key]


def test_a_copy_of_a_topic_that_does_not_exist(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    with pytest.raises(ValueError, match="no topic bills in the source, which has orders"):
        copy(spark, tmp_path / "source", path=str(tmp_path / "copy"), names={"bills": "sold"})
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", ["crash", "clean_flip_last_payload", "interleaved"])
def test_verify_has_the_findings_of_the_command(spark: SparkSession, name: str) -> None:
    logs = case(name).logs
    log_dir = LogDir(logs)
    report = verify_log_dir(log_dir, log_dir.topic_partitions)
    found = verify(spark, logs)
    assert found.severities == Counter(finding.severity for finding in report.findings)
    assert found.is_sound == report.is_sound
    found.findings.unpersist()


def test_transactions(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path)
    (waiting,) = transactions(spark, tmp_path, "open").collect()
    assert (waiting.transactionalId, waiting.partition, waiting.records) == ("open", 2, 1)
    sums = {
        (row.transactionalId, row.outcome): row for row in transactions(spark, tmp_path, "by-id").collect()
    }
    assert {key: row.records for key, row in sums.items()} == {
        ("shop", "committed"): 48, ("shop", "aborted"): 12, ("open", "open"): 1,
    }  # fmt: skip
    assert sums["shop", "committed"].partitionTransactions == 48
    longest = transactions(spark, tmp_path, "longest", limit=5).collect()
    assert len(longest) == 5
    assert [row.milliseconds for row in longest] == sorted(
        (row.milliseconds for row in longest), reverse=True
    )
    sizes = [row.bytes for row in transactions(spark, tmp_path, "largest").collect()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 20
    with pytest.raises(ValueError, match="show is one of open, hanging"):
        transactions(spark, tmp_path, "slow")  # type: ignore[arg-type]


def test_hanging_transactions(spark: SparkSession) -> None:
    logs = case("hanging").logs
    log_dir = LogDir(logs)
    wanted = {
        (*place, each.transaction.producer_id, each.verdict.value)
        for place in map(TopicPartition._make, log_dir.topic_partitions)
        for each in log_dir.partition(*place).explain().open_transactions
        if each.verdict.needs_marker and not place.topic.startswith("__")
    }
    found = transactions(spark, logs, "hanging").collect()
    assert wanted
    assert {(row.topic, row.partition, row.producerId, row.verdict) for row in found} == wanted
    assert all(json.dumps(row.reason) for row in found)

"""Tables of every golden directory in one job, compared with the output of the brokers and their tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import ISOLATION_LEVELS, Case
from tests.golden.damage import DAMAGED, TABLE
from tests.golden.directories import ANSWERED, INTACT, Directory
from tests.golden.test_lso import COORDINATED, GROUPED, UNSTABLE
from tests.golden.test_models import COMPACTED, COMPACTED_TOPICS
from tests.golden.test_transactions import Aborted, batches_of, indexed
from tests.golden.test_transactions import rows as dumped
from tests.spark.answers import Json, TablePart, planned, rows_of
from txnkafka import LogDir
from txnkafka.logdir.verify import verify

Tables = dict[tuple[str, str], list[Json]]
PATHS = sorted({each.path for each in INTACT} | {row.path for row in TABLE})
GROUP_PATHS = {str(each.answered) for each in GROUPED}
TASKS = 8


def assign(path: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in {each.partition for each in INTACT if each.path == path} or {DAMAGED}:
        found[topic].append(partition)
    return found


def everything() -> Iterator[TablePart]:
    for path in PATHS:
        chosen: dict[str, Any] = {"assign": assign(path)}
        for level in ISOLATION_LEVELS:
            reading = {**chosen, "isolation_level": level, "fail_on_data_loss": False}
            yield from planned((path, level), "batches", path, **reading)
        yield from planned((path, ""), "transactions", path, **chosen)
        yield from planned((path, ""), "segments", path, **chosen)
        yield from planned((path, ""), "findings", path)
        if path in GROUP_PATHS:
            yield from planned((path, ""), "offsets", path)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    """Return rows by (path, table), or (path, isolation level) for batches."""
    parts = list(everything())
    found: Tables = defaultdict(list)
    for (path, level), name, row in (
        spark.sparkContext.parallelize(parts, TASKS).mapPartitions(rows_of).collect()
    ):
        found[path, level or name].append(row)
    return found


def of(tables: Tables, directory: Directory, name: str) -> list[Json]:
    topic, partition = directory.partition
    rows = tables[directory.path, name]
    return [row for row in rows if (row["topic"], row["partition"]) == (topic, partition)]


def open_since(directory: Directory) -> dict[int, int] | None:
    """Return the first offset of each producer's open transaction; None where the broker was not asked."""
    shown = directory.case.facts(directory.partition).get("describe_producers")
    if shown is None:
        return None
    starts = {each["producer_id"]: each["current_txn_start_offset"] for each in shown}
    return {producer_id: start for producer_id, start in starts.items() if start is not None}


# Batches


def is_magic_2(row: Json) -> bool:
    return bool(row["magic"] == 2)


def shown_as(row: Json) -> Json:
    """Return a row of the dump tool under our names."""
    log_append_time = "LogAppendTime" in row
    times = row["LogAppendTime" if log_append_time else "CreateTime"]
    known = {
        "producerId": row["producerId"],
        "producerEpoch": row["producerEpoch"],
        "baseSequence": row["baseSequence"],
        "leaderEpoch": row["partitionLeaderEpoch"],
        "maxTimestamp": times,
    }
    return {
        **{name: None if value == -1 else value for name, value in known.items()},
        **{name: row[name] for name in ("baseOffset", "lastOffset", "position", "size", "magic")},
        **{name: row[name] for name in ("isTransactional", "isControl")},
        "recordCount": row["count"],
        "codec": row["compresscodec"].lower(),
        "timestampType": int(log_append_time),
        # older tools do not print it
        **({"deleteHorizon": row["deleteHorizonMs"]} if "deleteHorizonMs" in row else {}),
    }


@pytest.mark.parametrize("level", ISOLATION_LEVELS)
def test_batches_are_those_of_the_dump_tool(tables: Tables, level: str) -> None:
    compared = 0
    for directory in ANSWERED:
        facts = directory.case.facts(directory.partition)
        end = facts["lso" if level == "read_committed" else "high_watermark"]
        expected = [
            shown_as(row)
            for row in dumped(directory, ".log")
            if row["baseOffset"] < end and row["lastOffset"] >= facts["log_start_offset"]
        ]
        found = [row for row in of(tables, directory, level) if is_magic_2(row)]
        assert [
            {name: row[name] for name in each} for row, each in zip(found, expected, strict=True)
        ] == expected, directory
        compared += len(expected)
    assert compared > 3000


@pytest.mark.parametrize("level", ISOLATION_LEVELS)
def test_visible_are_the_batches_with_a_record_that_the_consumer_got(tables: Tables, level: str) -> None:
    for directory in INTACT:
        records = {each["offset"] for each in directory.case.expected_records(directory.partition, level)}
        for row in filter(is_magic_2, of(tables, directory, level)):
            if row["recordCount"]:
                got = not records.isdisjoint(range(row["baseOffset"], row["lastOffset"] + 1))
                assert row["visible"] == got, (directory, row)


def expected_outcome(row: Json, aborted: set[Aborted], since: dict[int, int]) -> str:
    for each in aborted:
        if (
            each.producer_id == row["producerId"]
            and each.first_offset <= row["baseOffset"] <= each.last_offset
        ):
            return "aborted"
    start = since.get(row["producerId"])
    return "committed" if start is None or row["baseOffset"] < start else "open"


def test_outcomes_follow_the_transaction_index_and_the_broker(tables: Tables) -> None:
    seen = set()
    for directory in ANSWERED:
        aborted, since = indexed(directory), open_since(directory)
        for row in of(tables, directory, "read_uncommitted"):
            name, topic = directory.case.name, directory.partition.topic
            if row["isControl"] and (name in COMPACTED or (name, topic) in COMPACTED_TOPICS):
                continue  # of some transactions only the marker is left, without an entry in the index
            if not row["isTransactional"]:
                assert row["outcome"] is None
            elif since is not None and (row["recordCount"] or row["outcome"] is not None):
                assert row["outcome"] == expected_outcome(row, aborted, since), (directory, row)
                seen.add((row["outcome"], row["isControl"]))
    assert seen == {(word, control) for word in ("aborted", "committed") for control in (True, False)} | {
        ("open", False)
    }


def test_batches_of_damaged_directories_are_those_around_the_damage(tables: Tables) -> None:
    for row in TABLE:
        for level in ISOLATION_LEVELS:
            records = {each["offset"] for each in row.answer.records_around(level)}
            visible = [each for each in tables[row.path, level] if each["visible"]]
            covered = {i for each in visible for i in range(each["baseOffset"], each["lastOffset"] + 1)}
            assert records <= covered, (row, level)


# Transactions


def told(directory: Directory) -> list[Json]:
    """Return the completed transactions, in the order of their markers, from the dump tool's rows."""
    running: dict[int, list[Json]] = defaultdict(list)
    found = []
    aborted = {each.last_offset for each in indexed(directory)}
    for row in dumped(directory, ".log"):
        batches = running[row["producerId"]]
        if row["isControl"] and batches:
            found.append(
                {
                    "producerId": row["producerId"],
                    "firstOffset": batches[0]["baseOffset"],
                    "lastOffset": batches[-1]["lastOffset"],
                    "markerOffset": row["baseOffset"],
                    "outcome": "aborted" if row["baseOffset"] in aborted else "committed",
                    "batches": len(batches),
                    "records": sum(each["count"] for each in batches),
                    "bytes": sum(each["size"] for each in batches),
                }
            )
            batches.clear()
        elif row["isTransactional"] and not row["isControl"] and (batches or row["count"]):
            batches.append(row)
    return found


def test_ended_transactions(tables: Tables) -> None:
    compared = 0
    for directory in ANSWERED:
        start = directory.case.facts(directory.partition)["log_start_offset"]
        expected = [each for each in told(directory) if each["markerOffset"] >= start]
        rows = [row for row in of(tables, directory, "transactions") if row["markerOffset"] is not None]
        assert [row["markerOffset"] for row in rows] == [each["markerOffset"] for each in expected]
        # of one that began before the log start only a part is left and counted
        begun = {each["markerOffset"] for each in [*rows, *expected] if each["firstOffset"] < start}
        rows = [row for row in rows if row["markerOffset"] not in begun]
        expected = [each for each in expected if each["markerOffset"] not in begun]
        first = {each["markerOffset"]: each["firstOffset"] for each in expected}
        for row in rows:
            # the index has the first offset of an aborted one whose first records the cleaner removed
            assert row["firstOffset"] <= first[row["markerOffset"]], (directory, row)
            row["firstOffset"] = first[row["markerOffset"]]
        assert [
            {name: row[name] for name in each} for row, each in zip(rows, expected, strict=True)
        ] == expected, directory
        compared += len(expected)
    assert compared > 500


def test_aborted_transactions_are_those_of_the_transaction_indexes(tables: Tables) -> None:
    for directory in INTACT:
        facts, expected = directory.case.facts(directory.partition), indexed(directory)
        rows = of(tables, directory, "transactions")
        aborted = [row for row in rows if row["outcome"] == "aborted"]
        found = {each for each in expected if each.last_offset in {row["markerOffset"] for row in aborted}}
        assert len(found) == len(aborted), directory
        for transaction in expected - found:
            bounds = (facts["log_start_offset"], facts["high_watermark"])
            assert not batches_of(directory, transaction, *bounds), (directory, transaction)


def test_open_transactions_are_those_of_the_broker(tables: Tables) -> None:
    seen = 0
    for directory in ANSWERED:
        since = open_since(directory)
        if since is not None:
            start = directory.case.facts(directory.partition)["log_start_offset"]
            rows = [row for row in of(tables, directory, "transactions") if row["outcome"] == "open"]
            assert all(row["markerOffset"] is row["markerTimestamp"] is None for row in rows)
            found = {row["producerId"]: max(row["firstOffset"], start) for row in rows}
            assert found == {each: max(offset, start) for each, offset in since.items()}, directory
            seen += len(rows)
    assert seen > 20


def test_transactional_ids_are_those_of_the_coordinator(tables: Tables) -> None:
    named = 0
    for each in COORDINATED:
        names = {row["producer_id"]: row["transactional_id"] for row in each.cluster["list_transactions"]}
        for row in tables[str(each.answered), "transactions"]:
            if row["producerId"] in names:
                assert row["transactionalId"] == names[row["producerId"]]
                named += 1
    assert named > 500


# Offsets


@pytest.mark.parametrize("grouped", GROUPED, ids=lambda each: each.name)
def test_offsets(tables: Tables, grouped: Case) -> None:
    rows = tables[str(grouped.answered), "offsets"]
    for group, answer in grouped.cluster["groups"]["offsets"].items():
        assert {
            f"{row['topic']}-{row['partition']}": {
                "offset": row["offset"], "metadata": row["metadata"], "leader_epoch": row["leaderEpoch"]
            }
            for row in rows
            if row["group"] == group and not row["pending"]
        } == answer["not_require_stable"]["offsets"]  # fmt: skip
    unstable = {
        (group, topic["name"], each["partitionIndex"])
        for group, answer in grouped.cluster["groups"]["offsets"].items()
        for topic in answer["raw_offset_fetch_require_stable"]["topics"]
        for each in topic["partitions"]
        if each["errorCode"] == UNSTABLE
    }
    pending = [row for row in rows if row["pending"]]
    assert {(row["group"], row["topic"], row["partition"]) for row in pending} == unstable
    assert all((row["producerId"] is not None) == row["pending"] for row in rows)


# Segments and findings


def test_segments(tables: Tables) -> None:
    for directory in ANSWERED:
        rows = of(tables, directory, "segments")
        if directory.case.name.startswith("legacy"):  # the tool prints the entries inside compressed sets
            continue
        files = directory.case.dump(directory.partition)
        logs = {name: each for name, each in sorted(files.items()) if name.endswith(".log")}
        assert [Path(row["path"]).name for row in rows] == list(logs)
        for row, log in zip(rows, logs.values(), strict=True):
            batches = [dict(zip(log["columns"], each, strict=True)) for each in log["rows"]]
            data = [each for each in batches if not each["isControl"]]
            assert (row["batches"], row["controlBatches"], row["records"]) == (
                len(batches), len(batches) - len(data), sum(each["count"] for each in data)
            )  # fmt: skip
            assert row["transactionalBatches"] == sum(each["isTransactional"] for each in data)
            assert row["lastOffset"] == (batches[-1]["lastOffset"] if batches else None)
            for kind in ("index", "timeindex", "txnindex", "snapshot"):
                beside = Path(row["path"]).with_suffix(f".{kind}")
                assert row[f"{kind}Size"] == (beside.stat().st_size if beside.exists() else None)
            assert row["size"] == Path(row["path"]).stat().st_size
        assert [row["active"] for row in rows] == [False] * (len(rows) - 1) + [True]


def test_findings_are_those_of_verify(tables: Tables) -> None:
    found = 0
    for path in PATHS:
        expected = [finding._asdict() for finding in verify(LogDir(path)).findings]
        rows = tables[path, "findings"]
        names = ("file", "position", "severity", "code", "message", "remedy", "cause")
        wanted = [{name: each[name] for name in names} for each in expected]
        assert [{name: row[name] for name in names} for row in rows] == wanted, path
        found += len(rows)
    assert found > 100

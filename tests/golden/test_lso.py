"""Last stable offsets, the transactions that block them, and the coordinators' state, compared with the
broker's answers.

Hanging transactions are derived a second time here, from DescribeProducers and DescribeTransactions alone, as
in Kafka's own find-hanging.
"""

from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, case, cases
from tests.golden.directories import ANSWERED, INTACT, Directory
from txnkafka import LogDir, TopicPartition
from txnkafka.cli.main import cli
from txnkafka.logdir.explain import Explanation
from txnkafka.logdir.lso import explanation_of
from txnkafka.logdir.names import internal_last
from txnkafka.logdir.verdict import Circumstances, Verdict

Json = Any

UNSTABLE = 88
COMPLETED = ("CompleteCommit", "CompleteAbort")
CUT = 7086  # bytes of hang-2, the batches up to offset 36
COORDINATED = [
    each
    for each in cases()
    if "list_transactions" in each.cluster and (each.answered / "__transaction_state-0").is_dir()
]
GROUPED = [each for each in cases() if "groups" in each.cluster]
FIELDS = ["topic", "partition", "log_start_offset", "log_end_offset", "high_watermark", "last_stable_offset"]
FIELDS += ["verdict", "reason", "is_stuck", "waiting_records", "waiting_bytes", "waiting_segments"]
FIELDS += ["missing_offsets", "undecided_records", "judged_at", "open_transactions"]

each_answered = pytest.mark.parametrize("directory", ANSWERED, ids=str)
each_intact = pytest.mark.parametrize("directory", INTACT, ids=str)
each_coordinated = pytest.mark.parametrize("case", COORDINATED, ids=lambda case: case.name)
each_grouped = pytest.mark.parametrize("case", GROUPED, ids=lambda case: case.name)


def report(path: str, partition: TopicPartition, now_ms: int) -> Explanation:
    log_dir = LogDir(path)
    return explanation_of(log_dir.partition(*partition), log_dir.coordinator, Circumstances(now_ms))


def report_of(directory: Directory) -> Explanation:
    return report(directory.path, directory.partition, directory.case.recorded_at_ms)


def open_producers(directory: Directory) -> list[Json]:
    """Return the open producers of DescribeProducers, oldest transaction first."""
    facts = directory.case.facts(directory.partition)
    found = [each for each in facts["describe_producers"] if each["current_txn_start_offset"] is not None]
    return sorted(found, key=lambda each: each["current_txn_start_offset"])


def transactional_id(case: Case, producer_id: int) -> str | None:
    found = [each for each in case.cluster["list_transactions"] if each["producer_id"] == producer_id]
    return found[0]["transactional_id"] if found else None


def expected_verdict(case: Case, partition: TopicPartition, producer_id: int) -> str:
    """Derive the verdict from the coordinator's description of the owner of the producer id."""
    if case not in COORDINATED:
        return "UNKNOWN_NO_COORDINATOR_DATA"
    name = transactional_id(case, producer_id)
    if name is None:
        return "HANGING_NO_TRANSACTIONAL_ID"
    description = case.cluster["describe_transactions"][name]
    if description["state"].startswith("Complete") and str(partition) in case.last_prepared(name):
        return "COMPLETED_WITHOUT_MARKER"
    if str(partition) not in description["topic_partitions"]:
        return "HANGING_PARTITION_NOT_IN_TXN"
    if description["state"].startswith("Prepare"):
        return "MARKER_PENDING"
    age = case.recorded_at_ms - description["transaction_start_time_ms"]
    return "OPEN_OVERDUE" if age > description["transaction_timeout_ms"] else "OPEN_WITHIN_TIMEOUT"


@each_intact
def test_offsets(directory: Directory) -> None:
    facts, found = directory.case.facts(directory.partition), report_of(directory)
    assert found.last_stable_offset == facts["lso"]
    assert found.log_start_offset == facts["log_start_offset"]
    assert found.log_end_offset == facts["high_watermark"]
    if directory.name == directory.case.answered.name:
        assert found.high_watermark == facts["high_watermark"]


@each_answered
def test_open_transactions(directory: Directory) -> None:
    found = report_of(directory)
    facts = directory.case.facts(directory.partition)
    if "describe_producers" not in facts:  # that broker was not asked
        assert bool(found.open_transactions) == (facts["lso"] < facts["high_watermark"])
        return
    expected = open_producers(directory)
    assert [each.transaction.producer_id for each in found.open_transactions] == [
        each["producer_id"] for each in expected
    ]
    for ours, theirs in zip(found.open_transactions, expected, strict=True):
        assert ours.transaction.producer_epoch == theirs["producer_epoch"]
        assert ours.transaction.last_timestamp == theirs["last_timestamp"]
        start = theirs["current_txn_start_offset"]
        assert ours.transaction.first_offset == max(start, found.log_start_offset)
        if ours.verdict.is_hanging:
            assert f"--start-offset {start}" in (ours.repair.command or "")


@each_answered
def test_verdicts(directory: Directory) -> None:
    found = report_of(directory)
    if not found.open_transactions:
        assert found.verdict is Verdict.NOT_STUCK
        return
    assert found.verdict is found.open_transactions[0].verdict
    if directory.case.name == "kafka_2_8":  # its clients could not query the coordinator
        assert {each.verdict.value for each in found.open_transactions} == {"OPEN_WITHIN_TIMEOUT"}
        return
    for each in found.open_transactions:
        producer_id = each.transaction.producer_id
        expected = expected_verdict(directory.case, directory.partition, producer_id)
        assert each.verdict.value == expected
        if expected != "UNKNOWN_NO_COORDINATOR_DATA":
            assert each.transactional_id == transactional_id(directory.case, producer_id)


def test_every_verdict_that_a_broker_can_give_is_among_the_cases() -> None:
    found = {each.verdict for directory in ANSWERED for each in report_of(directory).open_transactions}
    assert found == {
        Verdict.OPEN_WITHIN_TIMEOUT,
        Verdict.MARKER_PENDING,
        Verdict.COMPLETED_WITHOUT_MARKER,
        Verdict.HANGING_PARTITION_NOT_IN_TXN,
        Verdict.UNKNOWN_NO_COORDINATOR_DATA,
    }


def test_hanging_and_repaired() -> None:
    found = {
        (partition.partition, each.transaction.producer_id, each.transactional_id, each.verdict.value)
        for partition in case("hanging").partitions()
        for each in report_of(Directory(case("hanging"), "logs", partition)).open_transactions
    }
    assert found == {
        (
            each["partition"],
            each["producer_id"],
            each["transactional_id"],
            "HANGING_PARTITION_NOT_IN_TXN",
        )
        for each in case("hanging").meta["hanging"]
    }
    for partition in case("hanging_repaired").partitions():
        repaired = report_of(Directory(case("hanging_repaired"), "logs", partition))
        assert repaired.verdict is Verdict.NOT_STUCK


@each_answered
def test_what_waits(directory: Directory) -> None:
    found = report_of(directory)
    lso = found.last_stable_offset
    records = directory.case.expected_records(directory.partition, "read_uncommitted")
    assert found.waiting.records == sum(each["offset"] >= lso for each in records)
    dump = directory.case.dump(directory.partition)
    logs = {name: table for name, table in sorted(dump.items()) if name.endswith(".log")}
    rows = [dict(zip(log["columns"], row, strict=True)) for log in logs.values() for row in log["rows"]]
    waiting = [row for row in rows if row["lastOffset"] >= lso and not row.get("isControl")]
    assert found.waiting.bytes == (sum(row["size"] for row in waiting) if found.waiting.records else 0)
    bases = [int(name.removesuffix(".log")) for name in logs]
    held = [f"{base:020}.log" for base, end in pairwise(bases) if end > lso]
    assert list(found.waiting.segments) == (held if lso < found.log_end_offset else [])


@each_coordinated
def test_transactional_ids(case: Case) -> None:
    found = LogDir(str(case.answered)).transactional_ids()
    assert [
        {"transactional_id": name, "producer_id": each.producer_id, "state": each.state.label}
        for name, each in sorted(found.items())
    ] == sorted(case.cluster["list_transactions"], key=lambda each: each["transactional_id"])
    for name, description in case.cluster["describe_transactions"].items():
        if "error" in description:
            assert name not in found
            continue
        each = found[name]
        start = None if each.start_timestamp < 0 else each.start_timestamp
        names = sorted(map(str, each.topic_partitions))
        assert (each.producer_epoch, each.transaction_timeout_ms, start, names) == (
            description["producer_epoch"],
            description["transaction_timeout_ms"],
            description["transaction_start_time_ms"],
            sorted(description["topic_partitions"]),
        )


@each_coordinated
def test_a_whole_topic_is_known_to_be_whole(case: Case) -> None:
    coordinator = LogDir(str(case.answered)).coordinator
    count = int(case.meta["broker_props"]["transaction.state.log.num.partitions"])
    assert coordinator.partitions == tuple(range(count))
    assert coordinator.is_complete
    assert not coordinator.missing_partitions
    assert not coordinator.findings


def offset_row(committed: Json) -> Json:
    epoch = committed.leader_epoch
    return {
        "offset": committed.offset,
        "metadata": committed.metadata,
        "leader_epoch": None if epoch < 0 else epoch,
    }


@each_grouped
def test_committed_offsets(case: Case) -> None:
    found = LogDir(str(case.answered)).committed_offsets()
    for group, answer in case.cluster["groups"]["offsets"].items():
        ours = {str(key[1]): offset_row(each) for key, each in found.items() if key[0] == group}
        assert ours == answer["not_require_stable"]["offsets"]
    assert {group for group, _ in found} <= set(case.cluster["groups"]["offsets"])


@each_grouped
def test_pending_offsets_are_the_unstable_ones(case: Case) -> None:
    log_dir = LogDir(str(case.answered))
    unstable = set()
    for group, answer in case.cluster["groups"]["offsets"].items():
        for topic in answer["raw_offset_fetch_require_stable"]["topics"]:
            for each in topic["partitions"]:
                if each["errorCode"] == UNSTABLE:
                    unstable.add((group, TopicPartition(topic["name"], each["partitionIndex"])))
    pending = log_dir.pending_offsets()
    assert set(pending) == unstable
    assert unstable
    for each in (pending_offset for found in pending.values() for pending_offset in found):
        owner = log_dir.coordinator.owner(each.producer_id)
        assert owner is not None
        states = COMPLETED if case.name == "kafka_4_4_no_markers" else ("Ongoing", "PrepareCommit")
        assert owner.state.label in states


def readers_are_blocked(report: Explanation) -> bool:
    """Return whether readers are blocked, not only by a transaction within its timeout."""
    verdicts = {each.verdict.value for each in report.open_transactions} - {"OPEN_WITHIN_TIMEOUT"}
    return bool(verdicts - {"UNKNOWN_NO_COORDINATOR_DATA"}) or (bool(verdicts) and report.waiting.records > 0)


def verdicts_at(directory: Path, *now: object) -> list[tuple[object, ...]]:
    _, text = run(directory, *now, "--format", "json")
    return [
        (row["topic"], row["partition"], row["verdict"], len(row["open_transactions"]))
        for row in json.loads(text)
    ]


@pytest.mark.parametrize("case", [each for each in cases() if not each.refused], ids=lambda case: case.name)
def test_a_copy_is_judged_by_its_own_time(case: Case) -> None:
    """Unpacked long after it was written, the directory gives the same verdicts: nothing became overdue
    since."""
    for directory in {case.logs, case.answered}:
        assert verdicts_at(directory) == verdicts_at(directory, "--now", case.recorded_at_ms)


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["lso", *map(str, arguments)], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value or 0, result.stdout


@pytest.mark.parametrize("case", [each for each in cases() if not each.refused], ids=lambda case: case.name)
def test_command_line(case: Case) -> None:
    log_dir = LogDir(str(case.answered))
    circumstances = Circumstances(case.recorded_at_ms)
    reports = [
        explanation_of(log_dir.partition(*each), log_dir.coordinator, circumstances, with_lost=True)
        for each in internal_last(log_dir.topic_partitions)
    ]
    status, text = run(case.answered, "--now", case.recorded_at_ms, "--format", "json")
    rows = json.loads(text)
    assert status == int(any(map(readers_are_blocked, reports)))
    assert rows == [each.to_dict() for each in reports]
    assert all(list(row) == FIELDS for row in rows)
    _, text = run(case.answered, "--now", case.recorded_at_ms, "--format", "jsonl")
    assert [json.loads(line) for line in text.splitlines()] == rows


def test_the_text_names_the_transaction_and_the_command() -> None:
    status, text = run(case("hanging").logs, "--topic", "hang", "--partition", 0)
    assert status == 1
    assert text.splitlines()[0] == "hang-0  HANGING_PARTITION_NOT_IN_TXN"
    for part in (
        "stands at 20, the log ends at 61: 34 records",
        "producer 2 epoch 0 of transactional id 'late-0', open since 2023-11-14T22:13:20.477Z",
        "abort --topic hang --partition 0 --start-offset 20",
        "Risk: ",
        "the newest time in this directory; --now overrides",
    ):
        assert part in text
    lines = text.splitlines()
    assert "Only if its producer is gone" in lines[-2]
    assert lines[-1].strip().startswith("kafka-transactions.sh")
    status, text = run(case("hanging").logs, "--topic", "hang", "--partition", 2)
    assert (status, text) == (0, "hang-2  NOT_STUCK: everything up to the log end 59 is stable\n")


def test_wide_has_a_row_for_each_open_transaction() -> None:
    _, text = run(case("hanging").logs, "--format", "wide")
    rows = [line.split() for line in text.splitlines()]
    assert [row[11:15] for row in rows if row[:2] == ["hang", "1"]] == [
        ["3", "0", "late-1", "28"],
        ["4", "0", "late-2", "49"],
    ]


def test_commands_name_the_partition_whatever_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = case("hanging").logs
    coordinator = logs / "__transaction_state-0"
    _, whole = run(logs / "hang-0", coordinator, "--topic", "hang")
    assert "abort --topic hang --partition 0 --start-offset 20" in whole
    monkeypatch.chdir(logs / "hang-0")
    for path in (".", "../hang-0/", "./", "../../logs/hang-0/."):
        assert run(path, "../__transaction_state-0", "--topic", "hang") == (1, whole)
    assert run(".", coordinator, "--format", "json")[1].count('"high_watermark":null') == 0


def test_no_command_for_a_partition_of_unknown_name(tmp_path: Path) -> None:
    """The name decides whether the coordinator's transaction has the partition, and which one would be
    aborted."""
    logs = case("hanging").logs
    shutil.copytree(logs / "hang-0", tmp_path / "from-the-backup")
    status, text = run(tmp_path / "from-the-backup", logs / "__transaction_state-0", "--topic", "from*")
    assert status == 1
    assert "HANGING_PARTITION_NOT_IN_TXN" in text  # no transaction of that producer has any partition
    assert "kafka-transactions.sh" not in text
    assert "find out which partition this is" in text
    logs = case("coordinator_logs").logs
    shutil.copytree(logs / "data-0", tmp_path / "data")
    options = ("--topic", "data", "--format", "wide")
    status, text = run(tmp_path / "data", logs / "__transaction_state-0", *options)
    assert "HANGING" not in text
    assert "OPEN" not in text
    assert "UNKNOWN_NO_COORDINATOR_DATA" in text


def test_a_partition_directory_alone_has_no_coordinator(tmp_path: Path) -> None:
    logs = case("hanging").logs
    status, text = run(logs / "hang-0", "--format", "json")
    (row,) = json.loads(text)
    assert (status, row["verdict"]) == (1, "UNKNOWN_NO_COORDINATOR_DATA")
    assert row["open_transactions"][0]["transactional_id"] is None
    _, text = run(logs / "hang-0", logs / "__transaction_state-0", "--topic", "hang", "--format", "json")
    assert json.loads(text)[0]["verdict"] == "HANGING_PARTITION_NOT_IN_TXN"
    shutil.copytree(logs / "hang-0", tmp_path / "hang-0")
    _, text = run(tmp_path, "--format", "json")
    assert json.loads(text)[0]["high_watermark"] is None


def test_a_high_watermark_behind_the_log_end() -> None:
    status, text = run(case("random_00").logs, "--topic", "__transaction_state")
    assert status == 0
    assert text.splitlines()[0] == "__transaction_state-0  HW_BEHIND"
    assert "the high watermark 65" in text
    assert "34 records" in text


def test_a_log_that_ends_before_what_its_broker_noted(tmp_path: Path) -> None:
    """hang-2 is cut between two batches; the markers of two transactions that ended were behind the cut."""
    shutil.copytree(case("hanging").logs, tmp_path / "logs")
    partition = tmp_path / "logs" / "hang-2"
    os.truncate(partition / f"{0:020d}.log", CUT)
    status, text = run(tmp_path / "logs", "--topic", "hang", "--partition", 2)
    assert status == 1
    assert text.splitlines()[0] == "hang-2  UNKNOWN_LOG_CUT_SHORT"
    assert "restore the end of the log" in text
    assert "kafka-transactions.sh" not in text
    arguments = ["cat", str(tmp_path / "logs"), "--topic", "hang", "--partition", "2"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.return_value == 1
    assert "stands at 59, but its log ends at offset 37 [high-watermark-beyond-log-end]" in result.stderr
    (partition / f"{0:020d}.log").unlink()
    (finding, *_) = LogDir(tmp_path / "logs").partition("hang", 2).findings
    assert finding.code == "high-watermark-beyond-log-end"

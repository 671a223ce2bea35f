"""``txnkafka lso`` run as a command: streams, exit statuses, and messages about what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.models.coordinator_log import transaction_key, transaction_value
from tests.unit.cli.conftest import Run
from tests.unit.logdir.logs import batch, write_log
from txnkafka.env import LocalFileSystem


def test_a_partition_that_cannot_be_read_leaves_the_others_alone(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0)]})
    write_log(tmp_path, "b-0", {0: [batch(0)]})
    whole = LocalFileSystem.open

    def refuse(self: LocalFileSystem, path: str) -> object:
        if "a-0" in path:
            raise PermissionError(13, "Permission denied", path)
        return whole(self, path)

    monkeypatch.setattr(LocalFileSystem, "open", refuse)
    result = run("lso", tmp_path, "--format", "jsonl")
    assert result.status == 2
    assert [json.loads(line)["topic"] for line in result.lines] == ["b"]
    assert "a-0" in result.stderr
    assert "Permission denied" in result.stderr


@pytest.mark.parametrize("command", ["lso", "show"])
def test_a_coordinators_partition_that_cannot_be_listed_leaves_the_others_alone(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Whether its producer has a transactional id is not known, so the transaction is not said to hang."""
    opened = batch(0, transactional=True, producer_id=7, producer_epoch=0)
    write_log(tmp_path, "a-0", {0: [opened]})
    for number in (0, 1):
        write_log(tmp_path, f"__transaction_state-{number}", {0: [batch(0)]})
    whole = LocalFileSystem.list

    def refuse(self: LocalFileSystem, path: str) -> object:
        if path.endswith("__transaction_state-1"):
            raise PermissionError(13, "Permission denied", path)
        return whole(self, path)

    monkeypatch.setattr(LocalFileSystem, "list", refuse)
    result = run(command, tmp_path, "--format", "jsonl")
    rows = [json.loads(line) for line in result.lines]
    assert [(row["topic"], row["partition"]) for row in rows] == [("a", 0), ("__transaction_state", 0)]
    assert rows[0]["verdict"] == "UNKNOWN_NO_COORDINATOR_DATA"
    assert result.status == 2
    assert result.stderr.count("__transaction_state-1: Permission denied") == 2  # once as a partition


def test_damage_in_the_coordinators_log_is_reported(tmp_path: Path, run: Run) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0, producer_id=7, producer_epoch=0, transactional=True)]})
    record = PlainRecord(transaction_key("shop"), b"\0\x63")
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    result = run("lso", tmp_path, "--topic", "a")
    assert result.status == 1
    assert "UNKNOWN_NO_COORDINATOR_DATA" in result.stdout
    assert "coordinator-log-damaged" in result.stderr


def test_a_wrong_choice_says_what_there_is(log_dir: Path, run: Run) -> None:
    for arguments, text in (
        (["--partition", 0], "--partition needs --topic"),
        (["--topic", "x"], "topics here: orders"),
        (["--topic", "orders", "--partition", 5], "partitions here: 0, 1"),
        (["--now", "soon"], "is not a time; a time is epoch milliseconds, ISO 8601"),
    ):
        result = run("lso", log_dir, *arguments)
        assert (result.status, result.stdout) == (2, "")
        assert text in result.stderr


def test_records_that_wait_for_a_transaction_of_nobody_known(log_dir: Path, run: Run) -> None:
    result = run("lso", log_dir)
    assert (result.status, result.stderr) == (1, "")
    assert result.lines[0] == "orders-0  UNKNOWN_NO_COORDINATOR_DATA"
    assert "1 record (72 B) waits behind it" in result.stdout
    assert "open since 2023-11-14T22:13:26.000Z by the producer's clock" in result.stdout
    assert result.lines[-2] == "orders-1  NOT_STUCK: everything up to the log end 1 is stable"
    assert result.lines[-1] == "1 of 2 partitions is stuck"


def test_the_clock_is_milliseconds_or_iso(tmp_path: Path, run: Run) -> None:
    transactional = batch(0, producer_id=7, producer_epoch=0, transactional=True)
    write_log(tmp_path, "a-0", {0: [transactional]})
    value = transaction_value(7, state=1, topics={"a": [0]}, start_ms=1_700_000_000_000 - 60_000)
    record = PlainRecord(transaction_key("shop"), value)
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    for now, verdict in (
        ("1700000000000", "OPEN_WITHIN_TIMEOUT"),
        ("2023-11-14T22:13:20Z", "OPEN_WITHIN_TIMEOUT"),
        ("2023-11-14T22:13:20.001Z", "OPEN_OVERDUE"),
    ):
        result = run("lso", tmp_path, "--topic", "a", "--now", now, "--format", "json")
        assert result.status == int(verdict == "OPEN_OVERDUE")
        assert json.loads(result.stdout)[0]["verdict"] == verdict


def test_stuck_also_counts_what_is_within_its_timeout(tmp_path: Path, run: Run) -> None:
    """Nothing is stuck at the time of a copy: only the last line shows that records wait, and the moment."""
    open_for(tmp_path, TIMEOUT)
    within = "1 has open transactions within its timeout (2 records wait), judged at 2023-11-14T22:14Z"
    answer = run("lso", tmp_path, "--stuck")
    assert (answer.status, answer.stderr, len(answer.lines)) == (0, "", 1)
    counts = "0 of 2 partitions (1 of Kafka's own topics) are stuck"
    assert answer.lines[0].startswith(f"{counts}; {within}, ")
    assert answer.lines[0].endswith(" before this machine's clock: --now now")
    chosen = run("lso", tmp_path, "--stuck", "--now", START + TIMEOUT)
    assert chosen.lines == [f"{counts}; {within}, as --now says"]
    late = run("lso", tmp_path, "--stuck", "--now", "now")
    assert (late.status, late.lines[-1]) == (1, "1 of 2 partitions (1 of Kafka's own topics) is stuck")
    assert run("lso", tmp_path, "--stuck", "--topic", "__*").lines == ["0 of 1 partition is stuck"]
    document = run("lso", tmp_path, "--stuck", "--format", "json")
    assert (document.stdout, document.status) == ("[]\n", 0)
    assert document.stderr.startswith(f"txnkafka: note: {counts}; {within}, ")


def test_missing_offsets_and_undecided_records_are_named(tmp_path: Path, run: Run) -> None:
    of = {"producer_epoch": 0, "transactional": True}
    lost = [batch(0), batch(2, 3, producer_id=7, **of)]
    write_log(tmp_path, "a-0", {0: lost, 9: [batch(9, producer_id=7, **of), batch(11, producer_id=8, **of)]})
    lines = run("lso", tmp_path).lines
    assert next(line for line in lines if "whole" in line) == (
        "  The log is not whole: offsets 5 to 8 are missing or damaged; 3 records of 1 transaction are "
        "undecided without an end marker, and held back from read_committed. 'txnkafka verify' names the "
        "files."
    )
    row = json.loads(run("lso", tmp_path, "--format", "jsonl").stdout)
    assert (row["missing_offsets"], row["undecided_records"]) == ([[5, 8]], 3)


def test_how_old_a_hanging_transaction_must_be(tmp_path: Path, run: Run) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0, 1, producer_id=7, producer_epoch=0, transactional=True)]})
    record = PlainRecord(transaction_key("shop"), transaction_value(7))
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    for minutes, status in ((2, 0), (1, 1)):  # the timestamp of the record is 1000
        arguments = ["--now", "1970-01-01T00:02:01Z", "--max-transaction-timeout", minutes]
        assert run("lso", tmp_path, *arguments).status == status


START, TIMEOUT = 1_700_000_000_000, 60_000


def open_for(root: Path, age_ms: int) -> None:
    """Write a transaction of a-0 that was open for ``age_ms`` when another one began, the last event in the
    directory."""
    write_log(root, "a-0", {0: [batch(0, producer_id=7, producer_epoch=0, transactional=True)]})
    states = {
        "shop": transaction_value(7, state=1, topics={"a": [0]}, start_ms=START, update_ms=START),
        "other": transaction_value(8, update_ms=START + age_ms),
    }
    records = [PlainRecord(transaction_key(name), value) for name, value in states.items()]
    write_log(root, "__transaction_state-0", {0: [Batch(records=records).encode()]})


def test_what_is_overdue_by_the_directorys_own_clock(tmp_path: Path, run: Run) -> None:
    open_for(tmp_path, TIMEOUT)
    young = run("lso", tmp_path, "--topic", "a")
    assert (young.status, young.lines[0]) == (0, "a-0  OPEN_WITHIN_TIMEOUT")
    judged = "Judged at 2023-11-14T22:14:20.000Z, the newest time in this directory; --now overrides."
    assert f"  {judged}" in young.lines
    assert "kafka-transactions.sh" not in young.stdout
    overdue = run("lso", tmp_path, "--topic", "a", "--now", START + TIMEOUT + 1)
    assert (overdue.status, overdue.lines[0]) == (1, "a-0  OPEN_OVERDUE")
    assert "  Judged at 2023-11-14T22:14:20.001Z, as --now says." in overdue.lines
    open_for(tmp_path, TIMEOUT + 1)
    assert run("lso", tmp_path, "--topic", "a").lines[0] == "a-0  OPEN_OVERDUE"


def test_the_command_is_last_and_after_its_condition(tmp_path: Path, run: Run) -> None:
    open_for(tmp_path, TIMEOUT + 1)
    lines = run("lso", tmp_path, "--topic", "a").lines
    assert [line.split(":")[0].split(" at ")[0].strip() for line in lines[7:]] == [
        "Why", "Judged", "What to do", "Risk",
        "Only if the coordinator runs and does not abort it (Kafka 4.0 and newer)",
        "kafka-transactions.sh --bootstrap-server HOST",
    ]  # fmt: skip
    assert "forceTerminateTransaction --transactionalId shop" in lines[-1]


def test_a_hanging_transaction_behind_a_healthy_one_is_found(tmp_path: Path, run: Run) -> None:
    open_for(tmp_path, 1)
    (tmp_path / ".kafka_cleanshutdown").touch()
    log = tmp_path / "a-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(2, producer_id=8, producer_epoch=0, transactional=True))
    answer = run("lso", tmp_path, "--topic", "a")
    assert answer.lines[0] == "a-0  OPEN_WITHIN_TIMEOUT"
    assert "Open too, HANGING_PARTITION_NOT_IN_TXN" in answer.stdout
    assert answer.status == 1

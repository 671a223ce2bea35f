"""``txnkafka txns`` and ``txnkafka groups``: columns, filters, who waits behind whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.models.coordinator_log import transaction_key, transaction_value
from tests.unit.cli.conftest import START, Run, offset
from tests.unit.logdir.logs import batch, write_log


def rows(run: Run, *arguments: object) -> list[dict[str, Any]]:
    answer = run(*arguments, "--format", "json")
    document: list[dict[str, Any]] = json.loads(answer.stdout)
    assert [json.loads(line) for line in run(*arguments, "--format", "jsonl").lines] == document
    return document


# txns


def test_transactional_ids_as_a_table(run: Run, cluster: Path) -> None:
    answer = run("txns", cluster)
    assert (answer.status, answer.stderr) == (0, "")
    assert [line.split() for line in answer.lines[:4]] == [
        [
            "TransactionalId",
            "Coordinator",
            "ProducerId",
            "TransactionState",
            "OpenFor",
            "Timeout",
            "Partitions",
        ],
        ["idle", "__transaction_state-0", "9", "Empty", "-", "-", "-"],
        ["shop", "__transaction_state-0", "7", "Ongoing", "7", "s", "1", "min", "2"],
        ["shop-2", "__transaction_state-0", "8", "CompleteAbort", "-", "-", "-"],
    ]
    assert answer.lines[4] == "3 transactional ids: 1 Empty, 1 Ongoing, 1 CompleteAbort"


def test_wide_has_the_columns_of_describe(run: Run, cluster: Path) -> None:
    head, row, _ = run("txns", cluster, "--format", "wide", "--state", "ongoing").lines
    assert head.split() == [
        "TransactionalId", "Coordinator", "ProducerId", "TransactionState", "ProducerEpoch",
        "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
        "HangsIn",
    ]  # fmt: skip
    assert row.split() == [
        "shop", "__transaction_state-0", "7", "Ongoing", "0", "60000", str(START), "7000",
        "__consumer_offsets-0", "a-0", "-",
    ]  # fmt: skip


def test_a_transaction_as_json(run: Run, cluster: Path) -> None:
    assert rows(run, "txns", cluster, "--transactional-id", "shop", "--now", START + 9) == [
        {
            "transactional_id": "shop",
            "coordinator": "__transaction_state-0",
            "producer_id": 7,
            "producer_epoch": 0,
            "transaction_state": "Ongoing",
            "transaction_timeout_ms": 60_000,
            "current_transaction_start_time_ms": START,
            "transaction_duration_ms": 9,
            "topic_partitions": ["__consumer_offsets-0", "a-0"],
            "last_update_time_ms": START + 7_000,
            "hanging_partitions": [],
        }
    ]


def test_a_transactional_id_whose_transaction_hangs_in_a_partition(run: Run, tmp_path: Path) -> None:
    """The state CompleteCommit of the id alone does not show the hanging transaction."""
    of = {"producer_epoch": 0, "transactional": True}
    write_log(tmp_path, "a-0", {0: [batch(0, producer_id=7, **of)]})
    write_log(tmp_path, "a-1", {0: [batch(0, producer_id=7, **of), batch(2, producer_id=9, **of)]})
    states = {
        "shop": transaction_value(7, state=4, topics={}, start_ms=START, update_ms=START),
        # so many that their hashes show that no partition of the coordinator's log is missing
        **{f"other-{i}": transaction_value(10 + i, update_ms=START) for i in range(12)},
    }
    records = [PlainRecord(transaction_key(name), value) for name, value in states.items()]
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=records).encode()]})
    answer = run("txns", tmp_path, "--now", "now")
    assert answer.status == 1
    assert [line.split() for line in answer.lines[12:14]] == [
        ["other-9", "__transaction_state-0", "19", "Empty", "-", "-", "-", "-"],
        ["shop", "__transaction_state-0", "7", "CompleteCommit", "-", "-", "-", "a-0", "a-1"],
    ]
    summary = "1 of 13 transactional ids has a hanging transaction, in 2 partitions"
    assert answer.lines[-1] == f"{summary}; 'txnkafka lso' shows what to do"
    no_owner = "a transaction whose producer has no transactional id here hangs in a-1"
    assert answer.stderr == f"txnkafka: warning: {no_owner}\n"
    assert rows(run, "txns", tmp_path, "--now", "now")[-1]["hanging_partitions"] == ["a-0", "a-1"]
    assert run("txns", tmp_path, "--transactional-id", "other-1").status == 0


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (["--transactional-id", "shop*"], ["shop", "shop-2"]),
        (["--transactional-id", "shop-2", "--transactional-id", "idle"], ["idle", "shop-2"]),
        (["--state", "Ongoing", "--state", "CompleteAbort"], ["shop", "shop-2"]),
        (["--state", "CompleteAbort", "--transactional-id", "idle"], []),
    ],
)
def test_chosen_transactional_ids(run: Run, cluster: Path, filters: list[str], names: list[str]) -> None:
    assert [row["transactional_id"] for row in rows(run, "txns", cluster, *filters)] == names


def test_nothing_of_the_coordinator(run: Run, log_dir: Path) -> None:
    for name, topic in (("txns", "__transaction_state"), ("groups", "__consumer_offsets")):
        answer = run(name, log_dir)
        assert (answer.status, answer.stdout) == (2, "")
        assert f"no partition of {topic} in {log_dir}" in answer.stderr


def test_a_damaged_log_of_the_coordinator(run: Run, cluster: Path) -> None:
    record = PlainRecord(transaction_key("shop"), b"\0\x63")
    write_log(cluster, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    for name in ("txns", "groups"):
        answer = run(name, cluster)
        assert answer.status == 1
        assert "coordinator-log-damaged" in answer.stderr


# groups


def test_offsets_and_who_waits(run: Run, cluster: Path) -> None:
    answer = run("groups", cluster)
    assert (answer.status, answer.stderr) == (0, "")
    assert [line.split() for line in answer.lines[:5]] == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "STABLE-OFFSET",
         "STABLE-LAG", "PENDING", "WAITS-BEHIND"],
        ["billing", "a", "0", "4", "9", "5", "4", "0", "-", "shop"],
        ["copier", "a", "0", "-", "9", "-", "4", "-", "2", "-"],
        ["late", "a", "0", "1", "9", "8", "4", "3", "-", "-"],
        ["late", "gone", "3", "5", "-", "-", "-", "-", "-", "-"],
    ]  # fmt: skip
    assert answer.lines[5].startswith(
        "a-0, last stable offset 4: behind the transaction of 'shop' (producer 7), OPEN_WITHIN_TIMEOUT, "
        "with 5 records ("
    )
    assert answer.lines[5].endswith(" to come, 1 group waits: billing")
    assert answer.lines[6:] == [
        "offsets of 'shop' (producer 7), OPEN_WITHIN_TIMEOUT, are pending; a read_committed consumer that "
        "starts now waits for their end: copier (a-0)",
        "2 of 3 groups wait: 1 at a last stable offset, 1 for pending offsets",
    ]


def test_one_group_that_does_not_wait(run: Run, cluster: Path) -> None:
    answer = run("groups", cluster, "--group", "late")
    assert answer.lines[-1] == "0 of 1 group waits at a last stable offset"


def test_a_group_as_json(run: Run, cluster: Path) -> None:
    billing, copier, *_ = rows(run, "groups", cluster)
    assert billing | {"waits_behind": None} == {
        "group": "billing",
        "topic": "a",
        "partition": 0,
        "current_offset": 4,
        "log_end_offset": 9,
        "lag": 5,
        "last_stable_offset": 4,
        "stable_lag": 0,
        "consumer_id": None,
        "host": None,
        "client_id": None,
        "leader_epoch": None,
        "metadata": "",
        "commit_timestamp": 0,
        "pending_offsets": [],
        "waits_behind": None,
        "is_stuck": False,
    }
    behind = billing["waits_behind"]
    assert (behind["transactional_id"], behind["first_offset"]) == ("shop", 4)
    assert copier["pending_offsets"] == [
        {"offset": 2, "producer_id": 7, "transactional_id": "shop", "verdict": "OPEN_WITHIN_TIMEOUT"}
    ]


def test_a_group_that_waits_for_what_does_not_end_is_status_1(run: Run, cluster: Path) -> None:
    late = ["--now", START + 60_001]
    assert run("groups", cluster, *late).status == 1
    assert run("groups", cluster, *late, "--group", "late").status == 0, "it can read on"
    assert [row["is_stuck"] for row in rows(run, "groups", cluster, *late)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (["--group", "b*", "--group", "copier"], ["billing", "copier"]),
        (["--waiting"], ["billing", "copier"]),
        (["--topic", "gone"], ["late"]),
        (["--partition", "gone-3", "--group", "billing"], []),
    ],
)
def test_chosen_groups(run: Run, cluster: Path, filters: list[str], names: list[str]) -> None:
    assert [row["group"] for row in rows(run, "groups", cluster, *filters)] == names


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("groups --group nope", "no group nope in {}; groups here: billing, copier, late"),
        ("groups --group billing --group x*", "no group x* in {}; groups here:"),
        ("groups --group biling", "no group biling in {}; did you mean billing?"),
        ("groups --topic b", "no topic b in {}; topics here: a, gone, __consumer_offsets"),
        ("groups --topic gone --partition 4", "no partition 4 of gone in {}; partitions here: 3"),
        ("groups --partition 0", "--partition needs --topic"),
        ("txns --transactional-id nope", "no transactional id nope in {}; transactional ids here:"),
        ("txns --transactional-id shop* --transactional-id y*", "no transactional id y* in {}; trans"),
        ("txns --transactional-id shop-3", "no transactional id shop-3 in {}; did you mean shop-2 or shop?"),
    ],
)
def test_what_names_nothing(run: Run, cluster: Path, command: str, message: str) -> None:
    name, *options = command.split()
    answer = run(name, cluster, *options)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"txnkafka: error: {message.format(cluster)}")


def test_groups_without_number(run: Run, tmp_path: Path) -> None:
    records = [offset(f"g{number}", "a", 0, 1) for number in range(12)]
    write_log(tmp_path, "__consumer_offsets-0", {0: [Batch(records=records).encode()]})
    answer = run("groups", tmp_path, "--group", "nope")
    assert answer.stderr.endswith("g6, g7 and 2 more, which 'txnkafka groups' lists\n")


def test_wide_has_metadata_and_verdicts(run: Run, cluster: Path) -> None:
    head, row, *_ = run("groups", cluster, "--format", "wide").lines
    assert head.split()[-7:] == [
        "VERDICT", "CONSUMER-ID", "HOST", "CLIENT-ID", "LEADER-EPOCH", "METADATA", "COMMITTED-AT",
    ]  # fmt: skip
    assert row.split()[-6:] == ["OPEN_WITHIN_TIMEOUT", "-", "-", "-", "-", "1970-01-01T00:00:00.000Z"]


def test_a_partition_that_cannot_be_read(run: Run, cluster: Path) -> None:
    (cluster / "a-0" / f"{0:020}.log").unlink()
    (cluster / "a-0" / f"{0:020}.log").mkdir()
    answer = run("groups", cluster)
    assert answer.status == 2
    assert answer.stderr.startswith("txnkafka: error: a-0: ")
    assert answer.lines[1].split() == ["billing", "a", "0", "4", "-", "-", "-", "-", "-", "-"]

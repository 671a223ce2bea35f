"""``txnkafka txn`` on a data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.clusters import broker_on, hang, rows
from tests.unit.cli.conftest import Run
from txnkafka.model import TopicPartition

ABORT = ("txn", "abort", "--topic", "orders", "--partition", 1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the topic orders, and the transactional ids idle and shop."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin:
        admin.create_topic("orders", partitions=2)
        admin.fence_producers(["shop", "idle"])
    return folder


@pytest.fixture
def hanging(data: Path) -> Path:
    """A transaction of three records hangs in orders-1, and another one after it."""
    with broker_on(data) as broker:
        for count in (3, 1):
            hang(broker, "orders", 1, count)
    return data


def test_transactional_ids_are_listed(run: Run, data: Path) -> None:
    answer = run("txn", "list", "--data", data)
    assert (answer.status, answer.stderr) == (0, "")
    head, *lines = [line.split() for line in answer.lines]
    assert head == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert [(name, state) for name, _, _, state in lines] == [("idle", "Empty"), ("shop", "Empty")]
    assert [row["transactional_id"] for row in rows(run, "txn", "list", "--data", data)] == ["idle", "shop"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--state", "empty"], ["idle", "shop"]),
        (["--state", "Ongoing"], []),
        (["--transactional-id-pattern", "s.*"], ["shop"]),
        (["--producer-id", "99"], []),
        (["--duration-filter", "5000"], ["idle", "shop"]),
    ],
)
def test_filters(run: Run, data: Path, options: list[str], names: list[str]) -> None:
    assert [row["transactional_id"] for row in rows(run, "txn", "list", *options, "--data", data)] == names


def test_a_wrong_state(run: Run) -> None:
    answer = run("txn", "list", "--state", "Ongoin", "--data", "/data")
    assert answer.status == 2
    assert "did you mean Ongoing?" in answer.stderr


def test_a_transactional_id_is_described(run: Run, data: Path) -> None:
    (row,) = rows(run, "txn", "describe", "shop", "--data", data)
    assert row == {
        "transactional_id": "shop",
        "coordinator": 1,
        "producer_id": row["producer_id"],
        "producer_epoch": 0,
        "transaction_state": "Empty",
        "transaction_timeout_ms": 30_000,
        "current_transaction_start_time_ms": None,
        "transaction_duration_ms": None,
        "topic_partitions": [],
    }
    table = run("txn", "describe", "shop", "--data", data).lines
    assert table[1].split()[0] == "shop"
    gone = run("txn", "describe", "gone", "shop", "--data", data)
    assert (gone.status, gone.stdout) == (2, "")
    assert gone.stderr.startswith("txnkafka: error: transactional id gone: TRANSACTIONAL_ID_NOT_FOUND")


def test_the_producers_of_a_topic(run: Run, hanging: Path) -> None:
    found = rows(run, "txn", "describe-producers", "--topic", "orders", "--data", hanging)
    starts = [
        (row["partition"], row["last_sequence"], row["current_transaction_start_offset"]) for row in found
    ]
    assert starts == [(1, 2, 0), (1, 0, 3)]
    one = ("txn", "describe-producers", "--topic", "orders", "--partition", 0, "--data", hanging)
    assert rows(run, *one) == []
    assert run("txn", "describe-producers", "--topic", "gone", "--data", hanging).status == 2


def test_hanging_transactions_are_found_and_aborted(run: Run, hanging: Path) -> None:
    find = ("txn", "find-hanging", "--data", hanging)
    assert run(*find).lines[-1] == "0 hanging transactions"
    answer = run(*find, "--max-transaction-timeout", 0)
    assert answer.status == 1
    head, row, _, first, second, count = answer.lines
    assert head.split()[:6] == [
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
    ]
    assert row.split()[:2] == ["orders", "1"]
    advice = "orders-1: no end marker will come; to abort: txnkafka txn abort --topic orders --partition 1"
    assert [first, second] == [f"{advice} --start-offset {offset}" for offset in (0, 3)]
    assert count == "2 hanging transactions"
    found = rows(run, *find, "--topic", "orders", "--max-transaction-timeout", 0, status=1)
    assert [(each["start_offset"], each["transactional_id"]) for each in found] == [(0, None), (3, None)]
    aborted = run(*ABORT, "--start-offset", 0, "--data", hanging)
    producer_id = found[0]["producer_id"]
    assert aborted == (0, f"orders-1: aborted: the transaction of producer {producer_id}, epoch 0\n", "")
    left = rows(run, *find, "--partition", 1, "--topic", "orders", "--max-transaction-timeout", 0, status=1)
    assert [each["start_offset"] for each in left] == [3]


def test_an_abort_by_producer(run: Run, hanging: Path) -> None:
    listing = ("txn", "describe-producers", "--topic", "orders", "--data", hanging)
    producer_id = rows(run, *listing)[0]["producer_id"]
    abort = (*ABORT, "--producer-id", producer_id, "--data", hanging)
    planned = run(*abort, "--producer-epoch", 0, "--dry-run")
    assert (
        planned.stdout == f"orders-1: would be aborted: the transaction of producer {producer_id}, epoch 0\n"
    )
    assert (
        len(rows(run, "txn", "find-hanging", "--max-transaction-timeout", 0, "--data", hanging, status=1))
        == 2
    )
    assert run(*abort, "--producer-epoch", 0).status == 0
    with broker_on(hanging) as broker, broker.admin() as admin:
        place = TopicPartition("orders", 1)
        states = admin.describe_producers([place])[place]
    assert [each.current_transaction_start_offset for each in states] == [None, 3]


def test_an_abort_without_a_transaction(run: Run, hanging: Path) -> None:
    answer = run(*ABORT, "--start-offset", 1, "--data", hanging)
    assert (answer.status, answer.stdout) == (2, "")
    assert "orders-1: no open transaction begins at offset 1; open ones begin at 0, 3" in answer.stderr
    for options in ((), ("--producer-id", 1), ("--start-offset", 0, "--producer-id", 1)):
        assert "name the transaction: --start-offset, or" in run(*ABORT, *options, "--data", hanging).stderr


def test_producers_are_fenced(run: Run, data: Path) -> None:
    (before,) = rows(run, "txn", "describe", "shop", "--data", data)
    answer = run("txn", "fence", "shop", "--data", data)
    assert answer.status == 0
    assert answer.stdout.startswith("shop: fenced; producer ")
    (after,) = rows(run, "txn", "describe", "shop", "--data", data)
    assert after["producer_epoch"] > before["producer_epoch"]


def test_a_partition_needs_its_topic(run: Run) -> None:
    answer = run("txn", "find-hanging", "--partition", 0, "--data", "/data")
    assert answer.status == 2
    assert "--partition needs --topic" in answer.stderr

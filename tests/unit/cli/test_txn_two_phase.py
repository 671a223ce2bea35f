"""``txnkafka txn``, ``txns`` and ``lso`` on a prepared transaction (KIP-939)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.clusters import rows
from tests.unit.cli.conftest import Run
from txnkafka import Broker, LogDir
from txnkafka.testing.settings import SETTINGS

ON = {**SETTINGS, "transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the prepared transaction 0:0 of shop, which is open in orders-0."""
    folder = tmp_path / "data"
    with Broker.open(folder, **ON) as broker:
        producer = broker.producer(transactional_id="shop", transaction_two_phase_commit_enable=True)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"1")
        assert str(producer.prepare_transaction()) == "0:0"
        producer.close()
    return folder


def values(data: Path) -> list[bytes | None]:
    return [record.value for record in LogDir(data).partition("orders", 0).records()]


def test_it_is_listed_and_described_without_a_time_limit(run: Run, data: Path) -> None:
    listed = run("txn", "list", "--two-phase", "--data", data)
    described = run("txn", "describe", "shop", "--data", data)
    for answer in (listed, described):
        head, row = (line.split() for line in answer.lines[:2])
        cells = dict(zip(head, row, strict=True))
        assert (cells["TransactionalId"], cells["TransactionState"]) == ("shop", "Ongoing")
        assert (cells["TransactionTimeoutMs"], cells["TopicPartitions"]) == ("none", "orders-0")
    (row_,) = rows(run, "txn", "list", "--two-phase", "--data", data)
    assert (row_["transaction_timeout_ms"], row_["coordinator"]) == (2**31 - 1, 1)
    assert rows(run, "txn", "list", "--two-phase", "--duration-filter", 60_000, "--data", data) == []
    wrong = run("txn", "list", "--two-phase", "--state", "Ongoing", "--data", data)
    assert wrong.status == 2
    assert "--two-phase excludes --state" in wrong.stderr


def test_it_does_not_hang_and_is_named(run: Run, data: Path) -> None:
    find = ("txn", "find-hanging", "--max-transaction-timeout", 0, "--data", data)
    answer = run(*find)
    text = " ".join(answer.stdout.split())
    assert answer.status == 0
    assert "shop: does not hang: it takes part in a two-phase commit, without a time limit" in text
    assert "txnkafka txn complete shop --state 0:0 commits it, txnkafka txn fence shop aborts it" in text
    assert answer.lines[-1] == "0 hanging transactions"
    for elsewhere in (("--topic", "__transaction_state"), ("--topic", "orders", "--partition", 1)):
        assert "two-phase" not in run(*find, *elsewhere).stdout
    assert rows(run, *find) == []


def test_it_is_not_aborted_in_one_partition(run: Run, data: Path) -> None:
    abort = ("txn", "abort", "--topic", "orders", "--partition", 0, "--data", data)
    for name in (("--start-offset", 0), ("--producer-id", 0, "--producer-epoch", 0)):
        answer = run(*abort, *name)
        assert (answer.status, answer.stdout) == (2, "")
        assert "'txnkafka txn fence shop' aborts it everywhere" in answer.stderr
    assert run("txn", "fence", "shop", "--data", data).status == 0
    assert rows(run, "txn", "list", "--two-phase", "--data", data) == []
    assert values(data) == []


def test_it_is_completed(run: Run, data: Path) -> None:
    complete = ("txn", "complete", "shop", "--data", data, "--state")
    wrong = run(*complete, "0")
    assert (wrong.status, "PRODUCER_ID:EPOCH" in wrong.stderr) == (2, True)
    other = run(*complete, "0:1")
    assert (other.status, other.stdout) == (2, "")
    assert "the open transaction is 0:0, and not 0:1; it stays open" in other.stderr
    assert values(data) == []
    assert run(*complete, "0:0") == (0, "shop: committed: the prepared transaction 0:0\n", "")
    assert values(data) == [b"1"]
    assert run(*complete, "0:0").status == 2


def test_the_directory_shows_how_long_it_holds_readers_back(run: Run, data: Path) -> None:
    head, row, *_ = run("txns", data).lines
    assert dict(zip(head.split()[:4], row.split()[:4], strict=True))["TransactionState"] == "Ongoing"
    assert "none" in row.split()
    started = LogDir(data).coordinator.transactions["shop"].start_timestamp
    two_days = f"{started + 2 * 86_400_000}"
    answer = run("lso", data, "--topic", "orders", "--now", two_days)
    text = " ".join(answer.stdout.split())
    assert answer.status == 0
    assert "orders-0 OPEN_WITHIN_TIMEOUT" in text
    assert (
        "'shop' (two-phase commit) in state Ongoing; it has no timeout, and has held readers back for 2 d"
        in text
    )
    report = LogDir(data).partition("orders", 0).explain(now_ms=int(two_days))
    assert not report.is_stuck
    assert report.open_transactions[0].verdict.value == "OPEN_WITHIN_TIMEOUT"

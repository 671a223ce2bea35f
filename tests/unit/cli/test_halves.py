"""``txnkafka halves`` on a data directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import broker_on, rows
from tests.unit.cli.conftest import Run
from txnkafka.checkback import (
    LocalTransactionState,
    Message,
    TransactionListener,
    TransactionMQProducer,
    TransactionParkedError,
)

ID = "order-1"


class Unknown(TransactionListener):
    def execute_local_transaction(self, msg: Any, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, msg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with an undecided half."""
    with broker_on(tmp_path / "data") as broker:
        broker.admin().create_topic("orders", partitions=1)
        with TransactionMQProducer("shop", broker, transaction_listener=Unknown()) as producer:
            producer.send_message_in_transaction(
                Message("orders", b"a \xff", keys="anna", tags="A", transaction_id=ID, timestamp=1)
            )
    return tmp_path / "data"


def test_list(run: Run, data: Path) -> None:
    (row,) = rows(run, "halves", "list", "--data", data)
    assert (row["transaction_id"], row["producer_group"], row["state"], row["asks"]) == (
        ID,
        "shop",
        "prepared",
        0,
    )
    assert rows(run, "halves", "list", "--group", "other", "--data", data) == []
    assert rows(run, "halves", "list", "--older-than", "100000", "--data", data) == []
    assert len(rows(run, "halves", "list", "--older-than", "0", "--group", "shop", "--data", data)) == 1
    table = run("halves", "list", "--data", data).lines
    assert table[0].split() == ["TRANSACTION-ID", "GROUP", "STATE", "BORN", "ASKS", "LAST-ASKED"]
    assert table[-1] == "1 half, 0 parked"


def test_show(run: Run, data: Path) -> None:
    (row,) = rows(run, "halves", "show", ID, "--data", data)
    assert row["messages"] == [
        {
            "topic": "orders", "partition": 0, "timestamp": "1970-01-01T00:00:00.001Z", "key": "anna",
            "value": "a \\xff", "value_bytes": 3, "headers": ["TAGS"],
        }
    ]  # fmt: skip
    assert row["verdict"] in ("WAITS_FOR_DECISION", "WAITS_FOR_ANSWER")  # by the age of the half
    shown = run("halves", "show", ID, "--data", data).stdout
    assert "orders" in shown
    assert f"{ID}: {row['verdict']}: " in shown
    assert f"txnkafka halves decide --data {data} {ID} commit" in shown
    gone = run("halves", "show", "other", "--data", data)
    assert (gone.status, "the log has no half other" in gone.stderr) == (2, True)


def test_the_page_names_every_field(run: Run, data: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.split("\n## halves\n", 1)[1].split("\n## ", 1)[0]
    (row,) = (
        json.loads(line) for line in run("halves", "show", ID, "--data", data, "--format", "jsonl").lines
    )
    names = {*row, *row["messages"][0]}
    assert sorted(name for name in names if f"`{name}`" not in section) == []


def test_decide(run: Run, data: Path) -> None:
    assert run("halves", "decide", ID, "commit", "--data", data).lines == [f"{ID}: commit"]
    (row,) = rows(run, "halves", "list", "--data", data)
    assert (row["state"], row["outcome"], row["decided_by"]) == ("decided", "commit", "admin")
    assert run("halves", "decide", ID, "commit", "--data", data).status == 0
    contrary = run("halves", "decide", ID, "rollback", "--data", data)
    assert (contrary.status, "was decided before: COMMIT_MESSAGE" in contrary.stderr) == (2, True)
    assert run("halves", "decide", "other", "commit", "--data", data).status == 2


def test_park_and_resume(run: Run, data: Path) -> None:
    early = run("halves", "resume", ID, "--data", data)
    assert (early.status, "is not parked" in early.stderr) == (2, True)
    assert run("halves", "park", ID, "--reason", "a test", "--data", data).lines == [f"{ID}: parked"]
    (row,) = rows(run, "halves", "list", "--data", data)
    assert (row["outcome"], row["reason"]) == ("park", "a test")
    assert "parked" in run("halves", "decide", ID, "commit", "--data", data).stderr
    with (
        broker_on(data) as broker,
        TransactionMQProducer("shop", broker, transaction_listener=Unknown()) as producer,
        pytest.raises(TransactionParkedError, match=ID),
    ):
        producer.wait_until_done(ID)
    (row,) = rows(run, "halves", "list", "--data", data)
    assert row["state"] == "parked"
    shown = run("halves", "show", ID, "--data", data)
    assert "park, decided by: admin: a test" in shown.stdout
    assert run("halves", "resume", ID, "--data", data).lines == [f"{ID}: resumed"]

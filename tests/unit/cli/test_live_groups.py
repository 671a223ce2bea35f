"""``txnkafka groups`` on a data directory that the command opens, instead of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import broker_on, rows
from tests.unit.cli.conftest import Run
from txnkafka.testing import broker_faults


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """``orders-0`` has offsets 0 to 4, of which the last two are in an open transaction. The group late has
    read one record of it, and the group idle nothing of bills-0."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin:
        admin.create_topic("orders", partitions=2)
        admin.create_topic("bills")
        broker_faults.hang_transaction(broker, "orders", records=2)
        (hanging,) = admin.find_hanging_transactions(max_transaction_timeout_ms=-1)
        admin.abort_transaction(hanging.spec)
        broker_faults.hang_transaction(broker, "orders", records=2)
        admin.alter_group_offsets("late", {("orders", 0): 1})
        admin.alter_group_offsets("idle", {("bills", 0): 0, ("orders", 1): 0})
    return folder


def offsets(run: Run, data: Path, *options: object) -> dict[str, Any]:
    found = rows(run, "groups", "--data", data, *options)
    return {f"{row['group']} {row['topic']}-{row['partition']}": row["current_offset"] for row in found}


def test_groups_with_their_lags(run: Run, data: Path) -> None:
    answer = run("groups", "--data", data)
    assert (answer.status, answer.stderr) == (0, "")
    assert [line.split() for line in answer.lines] == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "STABLE-OFFSET",
         "STABLE-LAG", "CONSUMER-ID"],
        ["idle", "bills", "0", "0", "0", "0", "0", "0", "-"],
        ["idle", "orders", "1", "0", "0", "0", "0", "0", "-"],
        ["late", "orders", "0", "1", "5", "4", "3", "2", "-"],
    ]  # fmt: skip


def test_partitions_and_groups_are_selected(run: Run, data: Path) -> None:
    assert set(offsets(run, data, "--group", "l*")) == {"late orders-0"}
    assert set(offsets(run, data, "--topic", "orders")) == {"idle orders-1", "late orders-0"}
    assert set(offsets(run, data, "--partition", "bills-0")) == {"idle bills-0"}
    answer = run("groups", "--data", data, "--group", "lat")
    assert (answer.status, answer.stderr) == (
        2,
        f"txnkafka: error: no group lat in {data}; did you mean late?\n",
    )


def test_a_group_that_has_read_a_deleted_topic(run: Run, data: Path) -> None:
    assert run("topics", "delete", "orders", "--data", data).status == 0
    assert offsets(run, data) == {"idle bills-0": 0}


def test_names_and_states(run: Run, data: Path) -> None:
    listed = rows(run, "groups", "--data", data, "--list")
    assert [(row["group"], row["state"], row["type"]) for row in listed] == [
        ("idle", "Empty", "classic"), ("late", "Empty", "classic"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "new"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 3),
        (["--to-offset", "2"], 2),
        (["--to-offset", "100"], 3),
        (["--shift-by", "1"], 2),
        (["--shift-by", "-9"], 0),
        (["--to-datetime", "2001-01-01T00:00:00Z"], 0),
        (["--to-datetime", "2901-01-01T00:00:00Z"], 3),
    ],
)
def test_offsets_are_reset(run: Run, data: Path, options: list[str], new: int) -> None:
    reset = ("groups", "--data", data, "--group", "late", "--reset-offsets", *options)
    planned = run(*reset, "--dry-run")
    assert planned.stderr == "txnkafka: note: dry run: nothing was changed\n"
    assert planned.lines[1].split() == ["late", "orders", "0", "1", str(new)]
    assert offsets(run, data)["late orders-0"] == 1
    assert run(*reset).stdout == planned.stdout
    assert offsets(run, data) == {"idle bills-0": 0, "idle orders-1": 0, "late orders-0": new}


def test_a_topic_that_a_group_has_not_read_is_reset_by_name(run: Run, data: Path) -> None:
    reset = ("groups", "--data", data, "--group", "late", "--reset-offsets", "--to-earliest")
    assert run(*reset, "--topic", "bills").status == 0
    assert offsets(run, data, "--group", "late") == {"late bills-0": 0, "late orders-0": 1}
    assert run(*reset, "--partition", "orders-0").status == 0
    assert offsets(run, data, "--group", "late") == {"late bills-0": 0, "late orders-0": 0}


def test_groups_are_deleted(run: Run, data: Path) -> None:
    delete = ("groups", "--data", data, "--group", "late", "--delete")
    assert run(*delete, "--dry-run").stdout == "late: would be deleted\n"
    assert run(*delete) == (0, "late: deleted\n", "")
    assert {each.split()[0] for each in offsets(run, data)} == {"idle"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--list", "need a cluster: --data or --bootstrap"),
        ("--dry-run", "need a cluster: --data or --bootstrap"),
        ("--data d --reset-offsets --to-earliest", "name the groups: --group GROUP"),
        ("--data d --delete", "name the groups: --group GROUP"),
        ("--data d --group g --reset-offsets", "--reset-offsets needs one of --to-earliest, --to-latest"),
        ("--data d --group g --reset-offsets --to-offset 0 --to-latest", "--reset-offsets needs one of"),
        ("--data d --group g --to-offset 0", "--to-offset needs --reset-offsets"),
        ("--data d --list --delete", "--list, --reset-offsets and --delete exclude each other"),
        ("--data d --waiting", "--waiting is about files"),
        ("--data d /logs", "LOGDIR is about files"),
        ("--data d --now now", "--now is about files"),
    ],
)
def test_options_that_exclude_each_other(run: Run, options: str, message: str) -> None:
    answer = run("groups", *options.split())
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr

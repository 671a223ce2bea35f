"""Which partitions --topic and --partition choose, and the errors for names without a partition."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.unit.cli.conftest import Run
from tests.unit.logdir.logs import batch, write_log
from txnkafka.cli.main import COMMANDS, cli

NAMES = ("__consumer_offsets-0", "order-0", "orders-0", "orders-1", "orders-3", "payments-0", "payments-1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in NAMES:
        write_log(tmp_path / "data", name, {0: [batch(0)]})
    return tmp_path / "data"


def chosen(run: Run, root: Path, options: str, command: str = "ls") -> list[str]:
    answer = run(command, root, "--format", "jsonl", *options.split())
    assert answer.status == 0, answer.stderr
    rows = [json.loads(line) for line in answer.lines]
    return list(dict.fromkeys(f"{row['topic']}-{row['partition']}" for row in rows))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [*NAMES[1:], NAMES[0]]),
        ("--topic orders", ["orders-0", "orders-1", "orders-3"]),
        ("--topic orders --topic order", ["order-0", "orders-0", "orders-1", "orders-3"]),
        ("--topic payments --topic orders --partition 1", ["orders-1", "payments-1"]),
        ("--topic orders --partition 3 --partition 0", ["orders-0", "orders-3"]),
        ("--partition orders-3", ["orders-3"]),
        ("--partition orders-3 --partition payments-0", ["orders-3", "payments-0"]),
        ("--topic order --partition payments-1", ["order-0", "payments-1"]),
        ("--topic order* --partition 0 --partition payments-1", ["order-0", "orders-0", "payments-1"]),
        ("--topic order*", ["order-0", "orders-0", "orders-1", "orders-3"]),
        ("--topic order?", ["orders-0", "orders-1", "orders-3"]),
        ("--topic *", list(NAMES[1:])),
        ("--topic __*", [NAMES[0]]),
        ("--topic [op]*s", ["orders-0", "orders-1", "orders-3", "payments-0", "payments-1"]),
    ],
)
def test_what_is_chosen(run: Run, root: Path, options: str, expected: list[str]) -> None:
    for command in ("lso", "stats"):
        assert chosen(run, root, options, command) == expected
    # lists and records of Kafka's own topics are left out where nothing is named
    for command in ("ls", "cat"):
        assert chosen(run, root, options, command) == (expected if options else list(NAMES[1:]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--topic ordrs", "no topic ordrs in {}; did you mean orders or order?"),
        ("--topic Orders", "no topic Orders in {}; did you mean orders or order?"),
        ("--topic orders --topic payment", "no topic payment in {}; did you mean payments?"),
        ("--topic x*", "no topic x* in {}; topics here: order, orders, payments, __consumer_offsets"),
        ("--topic orders-3", "no topic orders-3 in {}; did you mean --partition orders-3?"),
        ("--topic orders --partition 7", "no partition 7 of orders in {}; partitions here: 0, 1, 3"),
        ("--topic orders --partition 0 --partition 7", "no partition 7 of orders in {}"),
        ("--topic orders --partition payments-9", "no payments-9 in {}; partitions here: 0, 1"),
        ("--partition ordrs-0", "no ordrs-0 in {}; did you mean orders or order?"),
    ],
)
def test_what_names_nothing(run: Run, root: Path, options: str, message: str) -> None:
    for command in ("ls", "cat", "verify", "repair"):
        answer = run(command, root, *options.split())
        assert (answer.status, answer.stdout) == (2, "")
        assert answer.stderr.startswith(f"txnkafka: error: {message.format(root)}")


def test_two_thousand_topics_are_not_listed(run: Run, root: Path) -> None:
    for i in range(30):
        write_log(root, f"many{i:02}-0", {0: []})
    answer = run("cat", root, "--topic", "nothing-like-it")
    assert answer.stderr.endswith("many09 and 24 more, which 'txnkafka ls' lists\n")
    assert answer.stderr.count("many") == 10


@pytest.mark.parametrize("partition", ["x", "-1", "orders-", "-3", "orders-x"])
def test_what_is_no_partition(run: Run, root: Path, partition: str) -> None:
    answer = run("cat", root, f"--partition={partition}")
    assert (answer.status, answer.stdout) == (2, "")
    assert "is not a partition number or a full name such as orders-3" in answer.stderr


def test_verify_and_export_take_several(run: Run, root: Path, tmp_path: Path) -> None:
    write_log(root, "order-0", {0: [batch(0)[:-1] + b"\xff"]})
    answer = run("verify", root, "--topic", "order", "--topic", "payments", "--format", "json")
    assert (answer.status, json.loads(answer.stdout)["partitions"]) == (1, 3)
    output = tmp_path / "out"
    options = ("--topic", "payments", "--topic", "orders", "--to", "jsonl", "--format", "json")
    answer = run("export", root, *options, "--output", output)
    assert (answer.status, json.loads(answer.stdout)["partitions"]) == (0, 5)
    other_order = ("--topic", "orders", "--topic", "payments", *options[4:])
    assert run("export", root, *other_order, "--output", output).status == 0
    refused = run("export", root, *options[2:], "--output", output)
    assert (refused.status, refused.stdout) == (2, "")
    assert "(topic was orders, payments, now orders); give the same options, or export" in refused.stderr


def test_repair_takes_several(run: Run, root: Path) -> None:
    answer = run("repair", root, "--dry-run", "--topic", "order*", "--partition", 0, "--format", "json")
    assert [row["topic"] for row in json.loads(answer.stdout)["partitions"]] == ["order", "orders"]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_drops_what_was_said_before(run: Run, root: Path, name: str) -> None:
    """An option with one value refuses a second one; click would silently keep the last."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    single = [
        each
        for each in command.params
        if isinstance(each, click.Option) and not (each.is_flag or each.multiple or each.count)
    ]
    for option in single:
        words = [part for _ in range(2) for part in (option.opts[-1], _value(option))]
        answer = run(name, root, *words)
        assert (answer.status, answer.stdout) == (2, ""), option.opts
        assert f"{option.opts[-1]} is given 2 times, but takes one value" in answer.stderr
    repeated = {each.name for each in command.params if isinstance(each, click.Option) and each.multiple}
    assert repeated <= {
        "topic", "partition", "storage_options", "catalog", "config", "create_topic", "patterns", "states",
        "listen", "settings", "headers", "partitions", "bounds",
    }  # fmt: skip


def _value(option: click.Option) -> str:
    return next(iter(option.type.choices)) if isinstance(option.type, click.Choice) else "1"


def test_flags_may_be_said_twice(run: Run, root: Path) -> None:
    assert run("ls", root, "--segments", "--segments") == run("ls", root, "--segments")

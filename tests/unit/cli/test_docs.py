"""docs/cli.md names every command, option and field."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from txnkafka.cli.main import COMMANDS, cli
from txnkafka.cli.txns import STATES

TEXT = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    common = TEXT.split("\n## ls\n", 1)[0]
    return common + TEXT.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


def test_every_command() -> None:
    assert [name for name in COMMANDS if f"`{name}`" not in TEXT] == []


NAMES = [
    "ls", "cat", "dump", "verify", "handover", "lso", "show", "txns", "groups", "stats", "export", "serve",
    "produce", "consume", "topics", "txn", "halves", "resolve", "perf", "simulate",
    "spark-bundle", "vacuum",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_option(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = [command, *getattr(command, "commands", {}).values()]
    options = [option for each in commands for option in each.params if isinstance(option, click.Option)]
    words = set(re.findall(r"-{1,2}[a-zA-Z][a-z-]*", section(name)))
    assert [option for each in options for option in each.opts if option not in words] == []


@pytest.mark.parametrize("name", ["topics", "txn", "halves", "perf"])
def test_every_subcommand(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Group)
    assert [each for each in command.commands if f"txnkafka {name} {each} " not in section(name)] == []


@pytest.mark.parametrize(
    "arguments",
    ["ls", "ls --segments", "cat", "dump --records", "lso", "show", "stats", "stats --by producer"],
)
def test_every_field(run: Run, log_dir: Path, arguments: str) -> None:
    name, *options = arguments.split()
    target = log_dir / "orders-0" / FIRST_SEGMENT if name == "dump" else log_dir
    rows = [json.loads(line) for line in run(name, target, "--format", "jsonl", *options).lines]
    fields = {field for row in rows for field in row}
    assert sorted(field for field in fields if not re.search(rf'[`"]{field}["`]', section(name))) == []
    assert fields


@pytest.mark.parametrize("name", ["txns", "groups"])
def test_every_field_of_a_coordinator(run: Run, cluster: Path, name: str) -> None:
    rows = [json.loads(line) for line in run(name, cluster, "--format", "jsonl").lines]
    fields = {field for row in rows for field in row}
    assert sorted(field for field in fields if not re.search(rf'[`"]{field}["`]', section(name))) == []
    assert fields


def test_every_field_of_a_transaction(run: Run, log_dir: Path) -> None:
    (row, _) = (json.loads(line) for line in run("lso", log_dir, "--format", "jsonl").lines)
    fields = row["open_transactions"][0]
    page = TEXT + (Path(__file__).parents[3] / "docs" / "lso.md").read_text(encoding="utf-8")
    assert sorted(field for field in fields if f"`{field}`" not in page) == []


def test_the_states_of_transactions_are_those_of_the_option() -> None:
    """On the page as in --help."""
    (listed,) = re.findall(r"`--state` one of (.*?)\. Both", section("txns"), re.DOTALL)
    assert re.findall(r"`(\w+)`", listed) == list(STATES)

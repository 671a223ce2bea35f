"""The examples of README.md, on directories that Kafka wrote: they run, and print what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.golden.cases import case
from tests.pages import ROOT, Example, examples
from txnkafka import TopicPartition
from txnkafka.cli.main import cli

DATA = "/var/lib/kafka/data"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
READING, MORE_READING, WRITING, _ON_SPARK = examples("README.md")
FIRST_SCREEN = 40  # lines of a terminal


def on(name: str, example: Example) -> Example:
    return example._replace(source=example.source.replace(DATA, str(case(name).logs)))


def test_the_first_screen_shows_an_example_with_its_output() -> None:
    screen = "\n".join(TEXT.splitlines()[:FIRST_SCREEN])
    assert READING.printed
    assert f"```python\n{READING.source}```\n\n```text\n{READING.printed}```" in screen
    assert on("hanging", READING).run({}) == READING.printed


def test_the_command_of_the_first_screen() -> None:
    ((command, shown),) = re.findall(r"^```\n\$ txnkafka (lso .*)\n((?s:.*?))^```", TEXT, re.MULTILINE)
    result = CliRunner().invoke(cli, shlex.split(command.replace(DATA, str(case("hanging").logs))))
    printed, lines = result.stdout.splitlines(), shown.splitlines()
    assert len(printed) == len(lines) > 5
    for found, line in zip(printed, lines, strict=True):
        assert found.startswith(line.removesuffix("…").rstrip()), line
        assert line.endswith("…") or found == line


def test_reading_in_python() -> None:
    names: dict[str, object] = {}
    printed = on("interleaved", MORE_READING).run(names)
    records = case("interleaved").expected_records(TopicPartition("orders", 0), "read_committed")
    assert names["total"] == len(records)
    assert len(printed.splitlines()) == sum(record["offset"] >= 100 for record in records)


def test_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert WRITING.printed
    assert WRITING.run({}) == WRITING.printed

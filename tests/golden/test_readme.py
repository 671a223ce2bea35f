"""README.md: every example runs as it stands there, beside ``demo``, and prints what the page shows. With
TXNKAFKA_REWRITE=1 the page gets what they print. Those on Spark are in tests/spark/test_docs.py, those with
Kafka's clients in tests/server/test_docs.py."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from demo.record import CONSUMED
from tests.pages import ROOT, examples
from txnkafka import LogDir
from txnkafka.cli.main import cli

PAGE = ROOT / "README.md"
COLUMNS = 120  # longer lines are cut
FIRST_SCREEN = 40  # lines of a terminal
COMMANDS = re.compile(r"^```\n(\$ .*?)^```\n", re.MULTILINE | re.DOTALL)


@pytest.fixture
def beside_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # as new as in a clone: LogDir judges by the times of files where a broker left them
    shutil.copytree(ROOT / "demo", tmp_path / "demo", copy_function=shutil.copyfile)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def shown(line: str) -> str:
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1].rstrip()}…"


def ran(block: str) -> str:
    """The commands of a block, each with its output."""
    found = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        program, *arguments = shlex.split(command)
        assert program == "txnkafka"
        result = CliRunner().invoke(cli, arguments, prog_name=program, standalone_mode=False)
        assert result.exception is None, (command, result.exception)
        found += [f"$ {command}", *map(shown, result.stdout.splitlines())]
    return "".join(f"{line}\n" for line in found)


@pytest.mark.usefixtures("beside_the_demo")
def test_the_commands() -> None:
    text = PAGE.read_text(encoding="utf-8")
    now = COMMANDS.sub(lambda found: f"```\n{ran(found[1])}```\n", text)
    if os.environ.get("TXNKAFKA_REWRITE"):
        PAGE.write_text(now, encoding="utf-8")
    assert len(COMMANDS.findall(text)) == 2
    assert PAGE.read_text(encoding="utf-8") == now


@pytest.mark.usefixtures("beside_the_demo")
def test_the_programs() -> None:
    elsewhere = ("spark", "confluent_kafka")
    found = [each for each in examples("README.md") if not any(word in each.source for word in elsewhere)]
    assert len(found) == 2
    for example in found:
        printed = example.run({})
        if os.environ.get("TXNKAFKA_REWRITE"):
            before = f"```python\n{example.source}```\n\n```text\n"
            text = PAGE.read_text(encoding="utf-8")
            text = text.replace(f"{before}{example.printed}```", f"{before}{printed}```")
            PAGE.write_text(text, encoding="utf-8")
        assert example.run({}) == printed  # twice: what it writes is in no way of it
        assert f"```python\n{example.source}```\n\n```text\n{printed}```" in PAGE.read_text(encoding="utf-8")


def test_the_first_screen_shows_what_it_is_and_what_it_prints() -> None:
    screen = "\n".join(PAGE.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN])
    assert "$ txnkafka show demo/payments --partition payments-0\n" in screen
    assert "read_committed 6 records\n```" in screen


def test_kafka_has_read_the_same() -> None:
    """What the demo's directory gives is what Kafka's own Java consumer got."""
    wanted = json.loads(CONSUMED.read_text(encoding="utf-8"))
    found = {
        str(view.topic_partition): [
            {"offset": each.offset, "key": (each.key or b"").decode(), "value": (each.value or b"").decode()}
            for each in view.records()
        ]
        for view in LogDir(ROOT / "demo" / "payments").partitions("payments")
    }
    assert found == wanted

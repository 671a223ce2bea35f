"""The output and the exit status of ``txnkafka spark``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.spark.test_log_jobs import TOPIC, content, write_source
from txnkafka.cli.main import main


class Answer(NamedTuple):
    status: Any
    stdout: str
    stderr: str


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command in the session of the tests."""

    def run(*words: object) -> Answer:
        with pytest.raises(SystemExit) as end:
            main(["spark", *map(str, words)])
        return Answer(end.value.code, *capsys.readouterr())

    return run


def test_verify(run: Any) -> None:
    damaged = case("clean_flip_last_payload").logs
    answer = run("verify", damaged, "--format", "jsonl")
    assert answer.status == 1
    findings = [json.loads(line) for line in answer.stdout.splitlines()]
    assert any(each["severity"] == "error" and each["position"] is not None for each in findings)
    answer = run("verify", damaged)
    assert answer.stdout.splitlines()[-1].startswith("1 error, ")
    answer = run("verify", damaged, "--topic", "no-such-topic")
    assert (answer.status, answer.stdout) == (2, "")
    assert "no-such-topic" in answer.stderr


def test_transactions(run: Any) -> None:
    hanging = case("hanging").logs
    answer = run("transactions", hanging, "--show", "hanging")
    assert answer.status == 1
    assert "HANGING_" in answer.stdout
    assert run("transactions", case("interleaved").logs, "--show", "hanging").status == 0
    rows = json.loads(
        run("transactions", hanging, "--show", "largest", "--limit", 3, "--format", "json").stdout
    )
    assert [*rows[0]][:3] == ["topic", "partition", "transactionalId"]
    assert rows[0]["firstTimestamp"].startswith("20")


def test_copy(run: Any, tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    words = ("copy", tmp_path / "source", "--to", tmp_path / "copy", "--rename", f"{TOPIC}=sold")
    assert run(*words, "--transactional-id", "move").status == 0
    assert run(*words, "--transactional-id", "move").status == 0
    assert content(tmp_path / "copy", "sold", 3) == content(tmp_path / "source", TOPIC, 3)


def test_errors_are_one_line(run: Any, tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    answer = run("copy", tmp_path / "source", "--to", tmp_path / "copy", "--rename", "bills=sold")
    assert answer.status == 2
    assert answer.stderr.splitlines()[0] == "txnkafka: error: no topic bills in the source, which has orders"
    answer = run("copy", tmp_path / "source")
    assert (answer.status, answer.stdout) == (2, "")
    assert "give --to, a data directory, or --bootstrap" in answer.stderr

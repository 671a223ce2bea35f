"""``txnkafka lso`` when something cannot be read, and what its text says of a log without open transactions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.models.builder import Batch, PlainRecord
from tests.models.coordinator_log import transaction_key
from tests.unit.logdir.logs import batch, write_log
from txnkafka.cli.main import cli
from txnkafka.env import LocalFileSystem


def lso(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["lso", *map(str, arguments)], standalone_mode=False)
    assert result.exception is None, result.exception
    return result


def test_a_partition_that_cannot_be_read_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0)]})
    write_log(tmp_path, "b-0", {0: [batch(0)]})
    whole = LocalFileSystem.open

    def refuse(self: LocalFileSystem, path: str) -> object:
        if "a-0" in path:
            raise PermissionError(13, "Permission denied", path)
        return whole(self, path)

    monkeypatch.setattr(LocalFileSystem, "open", refuse)
    result = lso(tmp_path, "--format", "jsonl")
    assert result.return_value == 2
    assert [json.loads(line)["topic"] for line in result.stdout.splitlines()] == ["b"]
    assert "a-0" in result.stderr
    assert "Permission denied" in result.stderr


def test_damage_in_the_coordinators_log_is_told(tmp_path: Path) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0, producer_id=7, producer_epoch=0, transactional=True)]})
    record = PlainRecord(transaction_key("shop"), b"\0\x63")
    write_log(tmp_path, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    result = lso(tmp_path, "--topic", "a")
    assert result.return_value == 0
    assert "UNKNOWN_NO_COORDINATOR_DATA" in result.stdout
    assert "coordinator-log-damaged" in result.stderr


def test_partition_needs_a_topic_and_unknown_ones_say_what_there_is(tmp_path: Path) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0)]})
    for arguments, text in (
        (["--partition", "0"], "--partition needs --topic"),
        (["--topic", "x"], "there are the topics a"),
    ):
        result = CliRunner().invoke(cli, ["lso", str(tmp_path), *arguments], standalone_mode=False)
        assert text in str(result.exception)


def test_times_are_milliseconds_or_iso(tmp_path: Path) -> None:
    write_log(tmp_path, "a-0", {0: [batch(0)]})
    for now in ("1700000000000", "2023-11-14T22:13:20Z"):
        assert (
            lso(tmp_path, "--now", now).stdout == "a-0  NOT_STUCK: everything up to the log end 2 is stable\n"
        )

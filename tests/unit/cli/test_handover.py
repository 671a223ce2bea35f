"""``txnkafka handover``: formats, statuses, and a check that changes nothing on a disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.broker.node import Node, Producer
from tests.unit.cli.conftest import Run
from tests.unit.handover.stories import contents, damaged, story
from txnkafka.env import LocalDataFiles, LocalFileSystem

DEMO = Path(__file__).parents[3] / "demo" / "payments"  # with a group, as a real broker left it


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    story(LocalDataFiles(), str(path))
    return path


def test_a_directory_that_is_ready(run: Run, directory: Path) -> None:
    answer = run("handover", directory, "--to", "kafka", "--check")
    assert (answer.status, answer.stderr) == (0, "")
    assert "transactional ids: 1 CompleteAbort, 1 CompleteCommit, 1 Ongoing" in answer.lines
    assert any(line.startswith("  open (Ongoing): stays open") for line in answer.lines)
    assert f"  log.dirs={directory}" in answer.lines
    assert answer.lines[-1] == "ready: Apache Kafka may start on it as it is"


def test_a_check_changes_nothing_and_says_what_is_done(run: Run, directory: Path) -> None:
    damaged(LocalDataFiles(), str(directory))
    before = contents(LocalDataFiles(), str(directory))
    planned = run("handover", directory, "--to", "kafka", "--check", "--format", "json")
    assert contents(LocalDataFiles(), str(directory)) == before
    done = run("handover", directory, "--to", "kafka", "--format", "json")
    assert (planned.status, done.status) == (1, 0)
    plan, report = json.loads(planned.stdout), json.loads(done.stdout)
    assert (plan["is_ready"], plan["is_possible"], report["is_ready"]) == (False, True, True)
    texts = [step["text"].replace(" would be ", " is ") for step in plan["steps"]]
    assert texts == [step["text"] for step in report["steps"]]
    assert run("handover", directory, "--to", "kafka", "--check").status == 0


@pytest.mark.parametrize("spelling", ["{}/", "{}/.", "{}//", "{}/../data"])
def test_the_spelling_of_the_path_does_not_matter(run: Run, directory: Path, spelling: str) -> None:
    damaged(LocalDataFiles(), str(directory))
    assert run("handover", spelling.format(directory), "--to", "kafka").status == 0
    assert run("handover", directory, "--to", "kafka", "--check").status == 0


def test_a_path_relative_to_here(run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(LocalDataFiles(), str(directory))
    monkeypatch.chdir(directory.parent)
    assert run("handover", directory.name, "--to", "kafka").status == 0
    assert run("handover", directory, "--to", "kafka", "--check").status == 0


def test_lines_of_json_are_the_parts_of_the_document(run: Run, directory: Path) -> None:
    document = json.loads(
        run("handover", directory, "--to", "txnkafka", "--check", "--format", "json").stdout
    )
    lines = run("handover", directory, "--to", "txnkafka", "--check", "--format", "jsonl").lines
    rows = [json.loads(line) for line in lines]
    assert [row["kind"] for row in rows] == ["directory", "transaction", "transaction", "transaction"]
    ids = [row["transactional_id"] for row in rows[1:]]
    assert ids == [row["transactional_id"] for row in document["transactions"]]


def test_the_line_of_a_group(run: Run, tmp_path: Path) -> None:
    """Its kind says that it is a group, as that of other lines says what they are."""
    copy = shutil.copytree(DEMO, tmp_path / "payments")
    lines = run("handover", copy, "--to", "txnkafka", "--check", "--format", "jsonl").lines
    groups = {
        row["group"]: row["group_type"] for row in map(json.loads, lines) if row["kind"] == "group"
    }
    assert groups == {"ledger": "simple", "console-consumer-15742": "classic"}


def test_wide_lists_every_transactional_id(run: Run, directory: Path) -> None:
    text = run("handover", directory, "--to", "txnkafka", "--format", "wide").stdout
    assert all(name in text for name in ("kept", "dropped", "open", "continues with its producer id"))
    assert "txnkafka serve --data" in text


def test_an_error_prevents_it(run: Run, directory: Path) -> None:
    (directory / "orders").mkdir()
    answer = run("handover", directory, "--to", "kafka")
    assert answer.status == 1
    assert "[foreign-directory]" in answer.stdout
    assert answer.lines[-1].endswith("nothing was changed")


def test_what_cannot_be_done(run: Run, directory: Path, tmp_path: Path) -> None:
    assert run("handover", tmp_path / "nowhere", "--to", "kafka").status == 2
    assert run("handover", "s3://bucket/logs", "--to", "kafka").status == 2
    without_owner = run("handover", directory)
    assert without_owner.status == 2
    assert "Missing option '--to'. Choose from: kafka, txnkafka\n" in without_owner.stderr
    node = Node(LocalDataFiles(), str(directory))
    answer = run("handover", directory, "--to", "kafka")
    assert (answer.status, answer.stdout) == (2, "")
    assert "locked by another owner" in answer.stderr
    Producer(node, "alive")
    node.close()


def test_a_directory_without_permission(
    run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in it is not known: neither a file of it is said to be missing, nor is it handed over."""

    def refuse(_: LocalFileSystem, path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(LocalFileSystem, "list", refuse)
    monkeypatch.setattr(LocalDataFiles, "exists", lambda *_: False)
    answer = run("handover", directory, "--to", "kafka", "--check")
    assert answer == (2, "", f"txnkafka: error: {directory}: Permission denied\n")

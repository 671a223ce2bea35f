"""``txnkafka verify``: formats, exit statuses and streams."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory
from tests.unit.cli.conftest import Run
from txnkafka.env import LocalFileSystem

FIELDS = ["file", "position", "severity", "code", "message", "remedy", "cause"]


@pytest.fixture
def sound(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path / "sound").write()


@pytest.fixture
def broken(tmp_path: Path) -> LogDirectory:
    """Write a directory with an error, and before it a note."""
    directory = LogDirectory(tmp_path / "broken").write()
    directory.file(0, "timeindex").unlink()
    directory.patch(directory.file(8), 70, b"\xff")
    return directory


def test_a_sound_directory(run: Run, sound: LogDirectory) -> None:
    summary = "1 partition, 2 segments, 9 batches, 12 records: 0 errors, 0 warnings, 0 notes\n"
    assert run("verify", sound.root) == (0, summary, "")
    document = {"partitions": 1, "segments": 2, "batches": 9, "records": 12, "findings": []}
    answer = run("verify", sound.root, "--format", "json")
    assert (answer.status, json.loads(answer.stdout), answer.stderr) == (0, document, "")
    assert run("verify", sound.root, "--format", "jsonl") == (0, "", "")


def test_findings_as_text(run: Run, broken: LogDirectory) -> None:
    answer = run("verify", broken.root)
    assert (answer.status, answer.stderr) == (1, "")
    note, error, summary = answer.lines
    assert note.startswith(f"note: {broken.file(0, 'timeindex')}: missing for 1 of 2 segments")
    assert error.startswith(f"error: {broken.file(8)} at position 0: the CRC of the batch")
    assert "[corrupt-batch]; restore the file" in error
    assert summary.endswith("1 error, 0 warnings, 1 note")


def test_findings_as_json(run: Run, broken: LogDirectory) -> None:
    answer = run("verify", broken.root, "--format", "json")
    document = json.loads(answer.stdout)
    assert answer.status == 1
    assert list(document) == ["partitions", "segments", "batches", "records", "findings"]
    assert [list(finding) for finding in document["findings"]] == [FIELDS, FIELDS]
    lines = run("verify", broken.root, "--format", "jsonl").lines
    assert [json.loads(line) for line in lines] == document["findings"]


def test_notes_alone_are_status_0(run: Run, sound: LogDirectory) -> None:
    sound.file(0, "timeindex").unlink()
    answer = run("verify", sound.root)
    assert answer.status == 0
    assert answer.lines[-1].endswith("0 errors, 0 warnings, 1 note")


def test_fail_fast(run: Run, broken: LogDirectory) -> None:
    broken.patch(broken.file(0), 70, b"\xff")
    lines = run("verify", broken.root, "--fail-fast", "--format", "jsonl").lines
    assert [json.loads(line)["code"] for line in lines] == ["missing-timeindex", "corrupt-batch"]


def test_the_level(run: Run, broken: LogDirectory) -> None:
    assert run("verify", broken.root, "--level", "header").status == 0
    assert run("verify", broken.root, "--level", "records", "--io", "pread").status == 1


def test_a_chosen_partition(run: Run, broken: LogDirectory) -> None:
    (broken.root / "other-0").mkdir()
    (broken.root / "other-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg"
    )
    assert run("verify", broken.root, "--topic", "other").status == 0
    assert run("verify", broken.root, "--topic", "t", "--partition", 0).status == 1


@pytest.mark.parametrize("arguments", [["--topic", "unknown"], ["--partition", "0"], ["--level", "deep"]])
def test_what_cannot_be_done(run: Run, sound: LogDirectory, arguments: list[str]) -> None:
    answer = run("verify", sound.root, *arguments)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr


def test_no_directory(run: Run, tmp_path: Path) -> None:
    answer = run("verify", tmp_path / "nowhere")
    assert (answer.status, answer.stdout) == (2, "")
    assert "does not exist" in answer.stderr


def test_a_broken_checkpoint_is_reported_once(run: Run, sound: LogDirectory) -> None:
    (sound.root / "replication-offset-checkpoint").write_text("x")
    answer = run("verify", sound.root)
    assert (answer.status, answer.stderr) == (1, "")
    assert len([line for line in answer.lines if "bad-checkpoint" in line]) == 1


def test_a_partition_that_cannot_be_read_is_status_2(sound: LogDirectory, run: Run) -> None:
    (sound.root / "t-1").mkdir()
    (sound.root / "t-1" / f"{0:020d}.log").mkdir()
    answer = run("verify", sound.root)
    assert answer.status == 2
    assert "[unreadable-partition]" in answer.stdout
    assert "2 partitions" in answer.stdout


def test_a_partition_that_cannot_be_read_leaves_the_others_alone(
    run: Run, broken: LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either listing the directory or opening its log fails."""
    whole_list, whole_open = LocalFileSystem.list, LocalFileSystem.open
    for name in ("a-0", "b-0"):
        shutil.copytree(broken.root / "t-0", broken.root / name)

    def refuse_to_list(self: LocalFileSystem, path: str) -> object:
        if path.endswith("a-0"):
            raise PermissionError(13, "Permission denied", path)
        return whole_list(self, path)

    def refuse_to_open(self: LocalFileSystem, path: str) -> object:
        if "b-0" in path and path.endswith(".log"):
            raise PermissionError(13, "Permission denied", path)
        return whole_open(self, path)

    monkeypatch.setattr(LocalFileSystem, "list", refuse_to_list)
    monkeypatch.setattr(LocalFileSystem, "open", refuse_to_open)
    answer = run("verify", broken.root, "--format", "json")
    assert (answer.status, answer.stderr) == (2, "")
    findings = json.loads(answer.stdout)["findings"]
    unreadable = {each["file"]: each for each in findings if each["code"].startswith("unreadable")}
    segments = [os.fspath(path) for path in sorted((broken.root / "b-0").glob("*.log"))]
    assert list(unreadable) == [os.fspath(broken.root / "a-0"), *segments]
    assert all("Permission denied" in each["message"] for each in unreadable.values())
    assert any(each["code"] == "corrupt-batch" and "/t-0/" in each["file"] for each in findings)
    assert run("verify", broken.root, "--topic", "t").status == 1


@pytest.mark.parametrize("bases", [(0,), (8,), (0, 8)])
def test_nothing_is_concluded_from_a_segment_that_cannot_be_read(
    run: Run, sound: LogDirectory, monkeypatch: pytest.MonkeyPatch, bases: tuple[int, ...]
) -> None:
    """Where its log ends, which producers it has and what is missing beside it is not known."""
    refused = [os.fspath(sound.file(base)) for base in bases]
    (sound.root / "replication-offset-checkpoint").write_text("0\n1\nt 0 12\n")
    whole = LocalFileSystem.open

    def refuse(self: LocalFileSystem, path: str) -> object:
        if path in refused:
            raise PermissionError(13, "Permission denied", path)
        return whole(self, path)

    monkeypatch.setattr(LocalFileSystem, "open", refuse)
    answer = run("verify", sound.root, "--format", "jsonl")
    found = [json.loads(line) for line in answer.lines]
    assert [(each["file"], each["code"]) for each in found] == [(each, "unreadable-file") for each in refused]
    assert answer.status == 2


def test_one_is_not_called_several(run: Run, log_dir: Path) -> None:
    """Of one segment, one transaction and one offset."""
    answer = run("verify", log_dir, "--partition", "orders-0")
    assert "missing for 1 of 1 segment [missing-index]" in answer.stdout
    (log_dir / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    answer = run("verify", log_dir, "--partition", "orders-0")
    assert "the segment ends 1 aborted transaction" in answer.stdout
    assert "1 partition, 1 segment, " in answer.lines[-1]
    assert "1 aborted transactions" not in answer.stdout

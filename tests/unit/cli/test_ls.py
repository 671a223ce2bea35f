"""``txnkafka ls``: rows of partitions and segments in every format."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, TIME, Run
from tests.unit.logdir.logs import batch, write_log
from txnkafka.shown import size

TOPIC_ID = "LO2dyRT9TU2kZpbmI5Tv5Q"


def size_of(log_dir: Path, partition: int) -> int:
    return (log_dir / f"orders-{partition}" / FIRST_SEGMENT).stat().st_size


def test_a_table_of_partitions(run: Run, log_dir: Path) -> None:
    answer = run("ls", log_dir)
    assert (answer.status, answer.stderr) == (0, "")
    assert [line.split() for line in answer.lines] == [
        ["topic", "partition", "segments", "size", "start", "end", "hw", "lso", "open"],
        ["orders", "0", "1", *size(size_of(log_dir, 0)).split(), "0", "7", "7", "6", "1"],
        ["orders", "1", "1", *size(size_of(log_dir, 1)).split(), "0", "1", "-", "1", "0"],
    ]
    assert len({len(line) for line in answer.lines}) == 1, "columns are aligned"


def test_wide_adds_ids_and_paths(run: Run, log_dir: Path) -> None:
    lines = run("ls", log_dir, "--format", "wide").lines
    assert lines[0].split()[-3:] == ["topic-id", "state", "path"]
    assert lines[1].split()[-3:] == [TOPIC_ID, "current", str(log_dir / "orders-0")]
    assert lines[2].split()[-3:] == ["-", "current", str(log_dir / "orders-1")]


def test_a_document(run: Run, log_dir: Path) -> None:
    (log_dir / "old-3.0123456789abcdef0123456789abcdef-delete").mkdir()
    document = json.loads(run("ls", log_dir, "--format", "json").stdout)
    assert document["log_directories"] == [str(log_dir)]
    assert document["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "topic_id": TOPIC_ID,
        "path": str(log_dir / "orders-0"),
        "state": "current",
        "segments": 1,
        "bytes": size_of(log_dir, 0),
        "log_start_offset": 0,
        "log_end_offset": 7,
        "high_watermark": 7,
        "last_stable_offset": 6,
        "open_transactions": 1,
        "leftovers": [],
    }
    assert document["partitions"][1]["high_watermark"] is None
    (other,) = document["other_directories"]
    assert (other["topic"], other["partition"], other["state"]) == ("old", 3, "delete")


def test_lines_say_what_they_are(run: Run, log_dir: Path) -> None:
    (log_dir / "old-3.0123456789abcdef0123456789abcdef-stray").mkdir()
    rows = [json.loads(line) for line in run("ls", log_dir, "--format", "jsonl").lines]
    assert [row["type"] for row in rows] == ["partition", "partition", "other_directory"]
    rows = [json.loads(line) for line in run("ls", log_dir, "--segments", "--format", "jsonl").lines]
    assert [row["type"] for row in rows] == ["segment", "segment", "other_directory"]


def test_other_directories_have_a_table_of_their_own(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-1.0123456789abcdef0123456789abcdef-future"
    path.mkdir()
    lines = run("ls", log_dir).lines
    assert [line.split() for line in lines[-2:]] == [
        ["topic", "partition", "state", "path"],
        ["orders", "1", "future", str(path)],
    ]
    assert lines[-3] == ""
    assert run("ls", log_dir, "--topic", "orders", "--partition", 0).stdout.count("future") == 0


@pytest.mark.parametrize("output_format", ["text", "jsonl"])
def test_kafkas_own_topics_are_listed_when_they_are_asked_for(
    run: Run, log_dir: Path, output_format: str
) -> None:
    for name in ("__consumer_offsets-0", "__consumer_offsets-1", "__transaction_state-0"):
        write_log(log_dir, name, {0: [batch(0)]})
    command = ("ls", log_dir, "--format", output_format)
    answer = run(*command)
    assert "__" not in answer.stdout
    assert (answer.status, answer.stderr) == (
        0, "txnkafka: note: 3 partitions of Kafka's own topics are left out; --topic '__*' lists them\n"
    )  # fmt: skip
    answer = run(*command, "--topic", "__*")
    assert (len(answer.lines), answer.stderr) == (3 + (output_format == "text"), "")
    assert run("ls", log_dir / "__transaction_state-0").stderr == ""


def test_segments(run: Run, log_dir: Path) -> None:
    (log_dir / "orders-0" / "00000000000000000000.txnindex").write_bytes(b"")
    row = json.loads(run("ls", log_dir, "--segments", "--format", "json").stdout)["segments"][0]
    assert row == {
        "topic": "orders",
        "partition": 0,
        "base_offset": 0,
        "next_offset": 7,
        "bytes": size_of(log_dir, 0),
        "batches": 6,
        "max_timestamp": TIME + 6000,
        "file": str(log_dir / "orders-0" / FIRST_SEGMENT),
        "indexes": ["txnindex"],
    }
    head, first, _ = run("ls", log_dir, "--segments").lines
    assert head.split() == ["topic", "partition", "base", "next", "size", "batches", "newest"]
    assert first.split()[-2:] == ["6", "2023-11-14T22:13:26.000Z"]
    assert run("ls", log_dir, "--segments", "--format", "wide").lines[1].split()[-2] == "txnindex"


def test_one_topic_of_several_directories(run: Run, log_dir: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    (second / "payments-4").mkdir(parents=True)
    (second / "payments-4" / FIRST_SEGMENT).write_bytes(b"")
    lines = run("ls", log_dir, second).lines
    assert [line.split()[:2] for line in lines[1:]] == [["orders", "0"], ["orders", "1"], ["payments", "4"]]
    assert [line.split()[0] for line in run("ls", log_dir, second, "--topic", "payments").lines[1:]] == [
        "payments"
    ]


def test_unreadable_partitions_are_reported_and_the_others_listed(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-0" / FIRST_SEGMENT
    path.unlink()
    os.mkfifo(path)
    answer = run("ls", log_dir)
    assert (answer.status, len(answer.lines)) == (2, 2)
    assert answer.stderr == f"txnkafka: error: orders-0: cannot read {path}: not a regular file\n"


def test_a_truncated_tail_is_reported(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-1" / FIRST_SEGMENT
    path.write_bytes(path.read_bytes() + b"\1" * 20)
    answer = run("ls", log_dir)
    assert (answer.status, len(answer.lines)) == (0, 3)
    assert answer.stderr.startswith(f"txnkafka: warning: {path} at position ")


@pytest.mark.parametrize("command", ["ls", "lso", "show", "stats", "cat"])
def test_damage_at_the_end_of_a_log_gives_status_1(run: Run, tmp_path: Path, command: str) -> None:
    """The file has another segment's name; the damage is said once."""
    write_log(tmp_path, "t-0", {4: [batch(0), batch(2)]})
    answer = run(command, tmp_path)
    assert answer.status == 1
    assert answer.stderr.count("txnkafka: error: ") == answer.stderr.count("[misplaced-batch]") == 1


@pytest.mark.parametrize("output_format", ["text", "wide", "json", "jsonl"])
def test_an_empty_log_directory(run: Run, tmp_path: Path, output_format: str) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    answer = run("ls", tmp_path, "--format", output_format)
    assert (answer.status, answer.stderr) == (0, "")
    assert len(answer.lines) == (0 if output_format == "jsonl" else 1)

"""``txnkafka cat``: the records it prints, where it begins and ends, and its messages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, TIME, Run
from txnkafka.cli import cat as cat_module
from txnkafka.logdir import LogDir, log_view
from txnkafka.logdir.partition_files import list_partition

PARTITION = ("--topic", "orders", "--partition", "0")
HELD_BACK = (
    "txnkafka: note: orders-0: read up to the last stable offset 6, the log ends at 7: 1 open transaction; "
    "'txnkafka lso' explains it\n"
)


def offsets(lines: list[str]) -> list[int]:
    return [json.loads(line)["offset"] for line in lines]


def test_the_shape_that_scripts_rely_on(run: Run, log_dir: Path) -> None:
    answer = run("cat", log_dir, *PARTITION, "--format", "jsonl", "--encoding", "base64")
    assert (answer.status, answer.stderr) == (0, HELD_BACK)
    assert answer.lines[0] == (
        '{"topic":"orders","partition":0,"offset":0,"timestamp":1700000000000,"timestamp_type":"CreateTime",'
        '"key":"aw==","value":"Y2Fmw6k=","headers":[["trace","MQ=="],["trace",null],["raw","/w=="]],'
        '"leader_epoch":0}'
    )
    assert [json.loads(line)["value"] for line in answer.lines] == ["Y2Fmw6k=", None, "Y29tbWl0dGVk"]


def test_the_default_encoding_is_text_and_marks_base64(run: Run, log_dir: Path) -> None:
    first, *_, last = map(json.loads, run("cat", log_dir).lines)
    assert (first["key"], first["value"]) == ("k", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    assert (last["value"], last["value_encoding"]) == ("AP8=", "base64")


def test_lines_for_people(run: Run, log_dir: Path) -> None:
    assert run("cat", log_dir, "--format", "text").lines == [
        'orders-0@0 2023-11-14T22:13:20.000Z "k" "caf\N{LATIN SMALL LETTER E WITH ACUTE}" '
        'trace="1" trace=null raw=base64:/w==',
        'orders-0@1 2023-11-14T22:13:21.000Z "" null',
        'orders-0@2 2023-11-14T22:13:22.000Z null "committed"',
        "orders-1@0 2023-11-14T22:13:20.000Z null base64:AP8=",
    ]


def test_csv_has_one_header(run: Run, log_dir: Path) -> None:
    lines = run("cat", log_dir, "--format", "csv").lines
    assert [line.split(",")[:3] for line in lines] == [
        ["topic", "partition", "offset"],
        *[["orders", "0", str(offset)] for offset in range(3)],
        ["orders", "1", "0"],
    ]


def test_read_uncommitted_returns_everything(run: Run, log_dir: Path) -> None:
    answer = run("cat", log_dir, *PARTITION, "--isolation-level", "read_uncommitted")
    assert offsets(answer.lines) == [0, 1, 2, 4, 6]
    assert (answer.status, answer.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--start-offset 1", [1, 2, 4, 6]),
        ("--end-offset 2", [0, 1]),
        ("--start-offset 2 --end-offset 5", [2, 4]),
        ("--start-offset 7", []),
        ("--start-offset 5 --end-offset 3", []),
        (f"--start-time {TIME + 1000}", [1, 2, 4, 6]),
        ("--start-time 2023-11-14T22:13:21.001Z", [2, 4, 6]),
        ("--start-time 2023-11-15T00:13:26+02:00", [6]),
        (f"--start-time {TIME + 60_000}", []),
        (f"--end-time {TIME + 4000}", [0, 1, 2]),
        (f"--end-time {TIME + 60_000}", [0, 1, 2, 4, 6]),
        (f"--start-offset 1 --end-time {TIME + 2000}", [1]),
        ("-n 0", []),
        ("-n 1", [0]),
        ("-n 3", [0, 1, 2]),
        ("-n 4 --start-offset 1", [1, 2, 4, 6]),
        ("--max-records 99", [0, 1, 2, 4, 6]),
    ],
)
def test_where_it_begins_and_ends(run: Run, log_dir: Path, options: str, expected: list[int]) -> None:
    answer = run("cat", log_dir, *PARTITION, "--isolation-level", "read_uncommitted", *options.split())
    assert (answer.status, answer.stderr) == (0, "")
    assert offsets(answer.lines) == expected


@pytest.mark.parametrize("count", range(6))
def test_at_most_so_many_records_in_all(run: Run, log_dir: Path, count: int) -> None:
    answer = run("-q", "cat", log_dir, "-n", count)
    assert offsets(answer.lines) == [0, 1, 2, 0][:count]


def test_up_to_the_high_watermark(run: Run, log_dir: Path) -> None:
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    everything = run("cat", log_dir, *PARTITION)
    assert offsets(everything.lines) == [0, 1, 2]
    assert everything.stderr.splitlines()[0] == (
        "txnkafka: note: orders-0: this includes offsets 1 to 5, above the high watermark that the broker "
        "noted last; --up-to high-watermark stops there"
    )
    assert offsets(run("cat", log_dir, *PARTITION, "--up-to", "high-watermark").lines) == [0]


def test_one_offset_above_the_high_watermark(run: Run, log_dir: Path) -> None:
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    assert "orders-0: this includes offset 5, above the high watermark" in run("cat", log_dir).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--start-offset 1 --start-time 2026-01-31", "--start-offset and --start-time exclude each other"),
        ("--end-offset 1 --end-time now", "--end-offset and --end-time exclude each other"),
        ("--partition 0", "--partition needs --topic"),
        ("--start-time soon", "'soon' is not a time; a time is epoch milliseconds, ISO 8601"),
        ("--start-time 1795425041", "1795425041: this looks like seconds; a time is epoch milliseconds"),
        ("--end-time 99999999999", "99999999999: this looks like seconds"),
        ("--end-time -1", "-1: this looks like seconds"),
        ("--isolation-level none", "'none' is not one of 'read_committed', 'read_uncommitted'"),
    ],
)
def test_options_that_make_no_sense(run: Run, log_dir: Path, options: str, message: str) -> None:
    answer = run("cat", log_dir, *options.split())
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_unknown_names_say_what_there_is(run: Run, log_dir: Path) -> None:
    assert run("cat", log_dir, "--topic", "order") == (
        2, "", f"txnkafka: error: no topic order in {log_dir}; did you mean orders?\n"
    )  # fmt: skip
    assert run("cat", log_dir, "--topic", "orders", "--partition", 7) == (
        2, "", f"txnkafka: error: no partition 7 of orders in {log_dir}; partitions here: 0, 1\n"
    )  # fmt: skip


def test_an_offset_that_is_not_in_the_log(run: Run, log_dir: Path) -> None:
    """Nothing is read, so no note says up to where."""
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    export = ("export", "--to", "jsonl", "--output", log_dir.parent / "out")
    for command, number in ((("cat",), 99), (("cat",), 1), (export, 99)):
        answer = run(*command, log_dir, *PARTITION, "--start-offset", number)
        assert answer == (
            2, "", f"txnkafka: error: offset {number} of orders-0 is not in the log, which has 2 to 7\n"
        )  # fmt: skip


@pytest.mark.parametrize(
    ("end", "noted"), [(3, []), (4, ["offset 3,"]), (7, ["offsets 3 to 5", "offset 6,"])]
)
def test_a_note_is_about_what_was_read(run: Run, log_dir: Path, end: int, noted: list[str]) -> None:
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    notes = run("cat", log_dir, *PARTITION, "--end-offset", end).stderr.splitlines()
    assert [words in note for words, note in zip(noted, notes, strict=True)] == [True] * len(noted)


def damage(log_dir: Path, position: int) -> None:
    path = log_dir / "orders-0" / FIRST_SEGMENT
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    (log_dir / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')


def test_damage_ends_its_partition_only(run: Run, log_dir: Path) -> None:
    damage(log_dir, 90)
    answer = run("-q", "cat", log_dir)
    assert answer.status == 1
    assert [json.loads(line)["partition"] for line in answer.lines] == [1]
    (line,) = answer.stderr.splitlines()
    assert "CRC" in line
    assert f"(orders-0, {log_dir / 'orders-0' / FIRST_SEGMENT}, position 0, offset 0)" in line
    assert line.endswith("--on-corrupt skip reads on after it")


def test_damage_during_a_lookup_by_timestamp(run: Run, log_dir: Path) -> None:
    damage(log_dir, 90)
    stopped = run("-q", "cat", log_dir, *PARTITION, "--start-time", TIME)
    assert (stopped.status, stopped.stdout) == (1, "")
    assert str(log_dir / "orders-0" / FIRST_SEGMENT) in stopped.stderr
    skipped = run("-q", "cat", log_dir, *PARTITION, "--start-time", TIME, "--on-corrupt", "skip")
    assert (skipped.status, offsets(skipped.lines)) == (1, [2])
    assert len(skipped.stderr.splitlines()) == 1
    ended = run("-q", "cat", log_dir, *PARTITION, "--end-time", TIME, "--on-corrupt", "skip")
    assert (ended.status, ended.stdout) == (1, "")
    assert ended.stderr.startswith("txnkafka: error: left out: ")


def test_damage_is_left_out_on_request(run: Run, log_dir: Path) -> None:
    damage(log_dir, 90)
    answer = run("-q", "cat", log_dir, *PARTITION, "--on-corrupt", "skip")
    assert (answer.status, offsets(answer.lines)) == (1, [2])
    assert answer.stderr.startswith("txnkafka: error: left out: ")


def test_a_torn_tail_is_a_warning(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-1" / FIRST_SEGMENT
    path.write_bytes(path.read_bytes() + bytes(7))
    answer = run("cat", log_dir, "--topic", "orders", "--partition", 1)
    assert (answer.status, len(answer.lines)) == (0, 1)
    assert answer.stderr.startswith(f"txnkafka: warning: {path} at position ")


def test_a_directory_that_vanishes(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = cat_module.readable_partitions

    def vanish(opened: LogDir, *choice: Any) -> object:
        shutil.rmtree(log_dir / "orders-0")
        return choose(opened, *choice)

    monkeypatch.setattr(cat_module, "readable_partitions", vanish)
    answer = run("cat", log_dir)
    assert (answer.status, len(answer.lines)) == (2, 1)
    assert (
        answer.stderr == f"txnkafka: error: cannot list {log_dir / 'orders-0'}: No such file or directory\n"
    )


def test_a_segment_that_is_replaced_meanwhile(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_dir / "orders-0" / FIRST_SEGMENT
    (path.parent / f"{7:020}.log").write_bytes(b"")

    def listed(*arguments: Any) -> Any:
        found = list_partition(*arguments)
        path.write_bytes(path.read_bytes()[:-1])
        return found

    monkeypatch.setattr(log_view, "list_partition", listed)
    answer = run("-q", "cat", log_dir, *PARTITION, "--on-corrupt", "skip")
    assert (answer.status, answer.stdout) == (2, "")
    assert "when its directory was listed: it became shorter" in answer.stderr
    assert answer.stderr.endswith("retry\n")


def test_a_malformed_checkpoint_is_a_warning(run: Run, log_dir: Path) -> None:
    path = log_dir / "replication-offset-checkpoint"
    path.write_text("seven")
    answer = run("cat", log_dir)
    assert (answer.status, len(answer.lines)) == (0, 4)
    assert answer.stderr.startswith(f"txnkafka: warning: {path}: not readable: ")


def test_verbose_output_has_counts_of_partitions(run: Run, log_dir: Path) -> None:
    lines = run("-v", "cat", log_dir).stderr.splitlines()
    assert lines[0] == "txnkafka: note: isolation level read_committed"
    assert lines[2:] == ["txnkafka: note: orders-0: 3 records", "txnkafka: note: orders-1: 1 record"]


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_one_partition_directory_or_segment(run: Run, log_dir: Path, io: str) -> None:
    whole = run("-q", "cat", log_dir, *PARTITION, "--io", io)
    directory = log_dir / "orders-0"
    assert run("-q", "cat", directory, "--io", io) == whole
    assert run("-q", "cat", directory / FIRST_SEGMENT, "--io", io) == whole
    assert len(whole.lines) == 3

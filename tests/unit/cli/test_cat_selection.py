"""Which records ``txnkafka cat`` prints, and which of their fields: predicates, the last offsets, columns,
templates, topics."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, Answer, Run
from txnkafka.cli.record_template import parse_template, template_lines
from txnkafka.model import TimestampType, TopicPartition
from txnkafka.record.batch import Record

ALL = ("--isolation-level", "read_uncommitted")
ORDERS = ("--topic", "orders", "--partition", "0", *ALL)


def offsets(answer: Answer) -> list[int]:
    assert answer.status == 0, answer.stderr
    return [json.loads(line)["offset"] for line in answer.lines]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("offset >= 2", [2, 4, 6]),
        ("key = 'k' or value like 'open%'", [0, 6]),
        ("header('trace') is null and offset < 5", [0, 1, 2, 4]),
        ("length(value) is null", [1]),
        ("timestamp > '2023-11-14T22:13:22Z'", [4, 6]),
        ("topic = 'refunds'", []),
    ],
)
def test_where(run: Run, log_dir: Path, where: str, expected: list[int]) -> None:
    assert offsets(run("cat", log_dir, *ORDERS, "--where", where)) == expected


def test_where_before_max_records(run: Run, log_dir: Path) -> None:
    assert offsets(run("cat", log_dir, *ORDERS, "--where", "offset != 1", "-n", 2)) == [0, 2]


def test_a_wrong_predicate_is_shown_with_its_position(run: Run, log_dir: Path) -> None:
    answer = run("cat", log_dir, "--where", "ofset > 5")
    assert (answer.status, answer.stdout) == (2, "")
    assert "--where: one of topic, partition, offset" in answer.stderr
    assert "not 'ofset', at position 1 of 'ofset > 5'" in answer.stderr


def test_where_without_pyarrow_is_one_error(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("txnkafka.env.packages.import_module", missing)
    answer = run("cat", log_dir, "--where", "offset = 1")
    assert answer == (
        2,
        "",
        "txnkafka: error: --where needs pyarrow (No module named 'pyarrow'): pip install 'txnkafka[arrow]'\n",
    )


@pytest.mark.parametrize(("start", "expected"), [(-1, [6]), (-3, [4, 6]), (-100, [0, 1, 2, 4, 6])])
def test_the_last_offsets(run: Run, log_dir: Path, start: int, expected: list[int]) -> None:
    assert offsets(run("cat", log_dir, *ORDERS, "-o", start)) == expected
    assert offsets(run("cat", log_dir, *ORDERS, f"--start-offset={start}")) == expected


def test_the_last_offsets_of_each_partition(run: Run, log_dir: Path) -> None:
    answer = run("cat", log_dir, "-o", -1, *ALL, "--format", r"%p %o\n")
    assert answer.lines == ["0 6", "1 0"]


def test_chosen_columns_are_those_of_all_columns(run: Run, log_dir: Path) -> None:
    everything = [json.loads(line) for line in run("cat", log_dir, *ORDERS).lines]
    for names in ("offset", "value,topic", "headers,key", "partition", "timestampType,leader_epoch"):
        wanted = [name.replace("timestampType", "timestamp_type") for name in names.split(",")]
        rows = [json.loads(line) for line in run("cat", log_dir, *ORDERS, "--columns", names).lines]
        assert rows == [{name: row[name] for name in row if name in wanted} for row in everything]
        lines = run("cat", log_dir, *ORDERS, "--columns", names, "--format", "csv").lines
        table = list(csv.DictReader(lines))
        assert {name for name in table[0] if not name.endswith("_encoding")} == set(wanted)
        assert [int(row["offset"]) for row in table if "offset" in row] == [
            row["offset"] for row in everything if "offset" in wanted
        ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--columns val", "no column val: did you mean value?"),
        ("--columns key --format text", "--columns is for jsonl and csv"),
        ("--format tsv", "'tsv' is not jsonl, csv, text or a template"),
        ("--format %q", "%q is not a field of a record; the fields are %t %p %o"),
        (r"--format %o\q", r"unknown escape \q"),
        ("--follow --end-offset 5", "--follow has no end"),
    ],
)
def test_what_makes_no_sense(run: Run, log_dir: Path, options: str, message: str) -> None:
    answer = run("cat", log_dir, *options.split())
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr.replace("\n", " ")


def printed(*arguments: object) -> bytes:
    """Return the bytes that the command prints."""
    command = [sys.executable, "-m", "txnkafka", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.process
def test_a_template_has_the_letters_of_kcat(log_dir: Path) -> None:
    template = r"%t/%p@%o %T [%k:%K] [%s:%S] %h 100%%\t\x41\\\n"
    lines = printed("cat", log_dir, *ORDERS, "--format", template, "--end-offset", 3).split(b"\n")
    cafe = "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode()
    assert lines == [
        b"orders/0@0 1700000000000 [k:1] [" + cafe + b":5] trace=1,trace=NULL,raw=\xff 100%\tA\\",
        b"orders/0@1 1700000001000 [:0] [:-1]  100%\tA\\",
        b"orders/0@2 1700000002000 [:-1] [committed:9]  100%\tA\\",
        b"",
    ]
    assert printed("cat", log_dir, *ORDERS, "--format", "%R", "-n", 2) == b"\0\0\0\x05\xff\xff\xff\xff"


@pytest.mark.process
def test_bytes_in_a_template(run: Run, log_dir: Path) -> None:
    binary = ("cat", log_dir, "--topic", "orders", "--partition", "1", "--format", "%s")
    assert printed(*binary) == b"\x00\xff"
    assert run(*binary, "--encoding", "base64").stdout == "AP8="


def test_a_terminal_gets_no_commands(log_dir: Path) -> None:
    record = Record(0, 0, TimestampType.CREATE_TIME, b"\x1b[2J\xff", b"a\nb", [("\x07", b"\x9b")], None)
    lines = template_lines(parse_template("%k|%s|%h"), TopicPartition("t", 0), encoding="utf8", terminal=True)
    assert b"".join(lines([record])) == rb"\x1b[2J\udcff|a\nb|\x07=\udc9b"
    lengths = template_lines(parse_template("%R%s"), TopicPartition("t", 0), encoding="base64", terminal=True)
    clears = record._replace(value=b"[2J" + b"x" * 24)  # 27 bytes: the last of the length is ESC
    assert b"".join(lengths([clears])).startswith(rb"\x00\x00\x00\x1bWzJK")


def test_kafkas_own_topics_are_left_out_unless_they_are_named(run: Run, log_dir: Path) -> None:
    own = log_dir / "__transaction_state-0"
    own.mkdir()
    (own / FIRST_SEGMENT).write_bytes((log_dir / "orders-1" / FIRST_SEGMENT).read_bytes())
    topics = ["orders"] * 6
    assert run("cat", log_dir, *ALL, "--format", r"%t\n").lines == topics
    assert run("cat", log_dir, "--topic", "__*", "--format", r"%t\n").lines == ["__transaction_state"]
    assert run("cat", own, "--format", r"%t\n").lines == ["__transaction_state"]

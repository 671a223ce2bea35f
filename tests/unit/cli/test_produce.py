"""``txnkafka produce`` into a data directory."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import broker_on
from tests.unit.cli.conftest import Answer, Run
from txnkafka import LogDir

Give = Any


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the topic orders, of one partition."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin:
        admin.create_topic("orders")
    return folder


@pytest.fixture
def produce(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def produce(content: bytes, *options: object, topic: str = "orders") -> Answer:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run("produce", topic, "--data", data, *options)

    return produce


def stored(data: Path, topic: str = "orders", partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    records = LogDir(data).partition(topic, partition).records(isolation_level="read_committed")
    return [(record.key, record.value) for record in records]


def test_lines_are_records(produce: Give, data: Path) -> None:
    answer = produce(b"one\n\ntwo\r\nthree")
    assert answer == (0, "", "txnkafka: note: 4 records sent to orders\n")
    assert stored(data) == [(None, b"one"), (None, b""), (None, b"two\r"), (None, b"three")]
    assert produce(b"", "-q") == (0, "", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-K", ":"], [(b"a", b"1:2"), (None, b"b"), (b"", b"")]),
        (["-K", ":", "-k", "key"], [(b"a", b"1:2"), (b"key", b"b"), (b"", b"")]),
        (["-K", ":", "-Z"], [(b"a", b"1:2"), (None, b"b"), (None, None)]),
        (["-D", ":"], [(None, b"a"), (None, b"1"), (None, b"2\nb\n"), (None, b"\n")]),
        (["-K", r"\x3a", "-D", r"\n"], [(b"a", b"1:2"), (None, b"b"), (b"", b"")]),
        (["-k", "key"], [(b"key", b"a:1:2"), (b"key", b"b"), (b"key", b":")]),
    ],
)
def test_keys_and_delimiters(
    produce: Give, data: Path, options: list[str], expected: list[tuple[bytes | None, bytes | None]]
) -> None:
    assert produce(b"a:1:2\nb\n:\n", *options).status == 0
    assert stored(data) == expected


def test_headers_and_partitions(produce: Give, data: Path, run: Run) -> None:
    assert run("topics", "alter", "orders", "--partitions", 2, "--data", data).status == 0
    assert produce(b"x\ny\n", "-p", 1, "-H", "a=b=c", "-H", "none", "-K", ":").status == 0
    records = list(LogDir(data).partition("orders", 1).records())
    assert [record.value for record in records] == [b"x", b"y"]
    assert {tuple(record.headers) for record in records} == {(("a", b"b=c"), ("none", None))}
    for partition in (0, 1, 1, 0):  # without headers they are sent as columns
        assert produce(b"%d\n" % partition, "-p", partition).status == 0
    assert [value for _, value in stored(data)] == [b"0", b"0"]


@pytest.mark.parametrize("options", [[], ["-H", "a=b"], ["--format", "jsonl"]])
def test_a_record_that_the_broker_refuses(produce: Give, run: Run, data: Path, options: list[str]) -> None:
    """However it is sent; without a transaction the others stay."""
    config = ("--config", "max.message.bytes=500")
    assert run("topics", "alter", "orders", *config, "--data", data).status == 0
    large = b'{"value": "%s"}' % (b"x" * 1_000)
    answer = produce(large, *options)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith("txnkafka: error: ")
    assert "sent" not in answer.stderr
    assert stored(data) == []
    assert produce(large, *options, "--transactional-id", "import").status == 2
    assert LogDir(data).coordinator.transactions["import"].state.label in ("Empty", "CompleteAbort")


def test_a_setting_overrides_an_option(produce: Give, run: Run, data: Path) -> None:
    assert produce(b"a" * 1000, "-z", "lz4", "-X", "compression.type=gzip").status == 0
    (segment,) = (data / "orders-0").glob("*.log")
    (line,) = run("dump", segment, "--format", "jsonl").lines
    assert json.loads(line)["compression"] == "gzip"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(produce: Give, run: Run, data: Path, codec: str) -> None:
    assert produce(b"a" * 1000, "-z", codec).status == 0
    (segment,) = (data / "orders-0").glob("*.log")
    (line,) = run("dump", segment, "--format", "jsonl").lines
    assert json.loads(line)["compression"] == codec


def test_files_are_records_or_lines(produce: Give, data: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb\n")
    second.write_bytes(b"c")
    assert "2 records sent" in produce(b"ignored", first, second).stderr
    assert "3 records sent" in produce(b"ignored", "-l", first, second).stderr
    assert [value for _, value in stored(data)] == [b"a\nb\n", b"c", b"a", b"b", b"c"]
    missing = produce(b"", first, tmp_path / "gone")
    assert missing.status == 2
    assert missing.stderr == f"txnkafka: error: {tmp_path / 'gone'}: No such file or directory\n"


def test_a_transaction_is_committed(produce: Give, data: Path) -> None:
    assert produce(b"a\nb\n", "--transactional-id", "import").status == 0
    log = LogDir(data)
    assert [value for _, value in stored(data)] == [b"a", b"b"]
    assert log.coordinator.transactions["import"].state.label == "CompleteCommit"


def test_a_transaction_is_aborted_after_an_error(produce: Give, data: Path) -> None:
    content = b'{"value": "a"}\n{"value": \n'
    answer = produce(content, "--transactional-id", "import", "--format", "jsonl")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith("txnkafka: error: line 2 is no record in JSON: ")
    assert stored(data) == []
    assert produce(content, "--format", "jsonl").status == 2
    assert [value for _, value in stored(data)] == [b"a"]


def test_json_lines_of_consume_are_sent_again(produce: Give, run: Run, data: Path) -> None:
    lines = [
        {"topic": "b", "offset": 7, "key": "a", "value": "1", "timestamp": 1_000, "headers": [["h", "x"]]},
        {"key": None, "value": "AP8=", "value_encoding": "base64", "timestamp": 2_000},
    ]  # fmt: skip
    assert produce(b"\n".join(json.dumps(line).encode() for line in lines), "--format", "jsonl").status == 0
    consumed = run("consume", "orders", "-e", "-J", "--data", data).stdout
    assert produce(consumed.encode(), "--format", "jsonl").status == 0
    again = run("consume", "orders", "-e", "-J", "--data", data).lines
    assert len(again) == 4
    rows = [json.loads(line) for line in again]
    assert [row.pop("offset") for row in rows] == [0, 1, 2, 3]
    assert all(row.pop("leader_epoch") >= 0 for row in rows)
    assert rows[:2] == rows[2:]
    assert rows[1]["value_encoding"] == "base64"


def test_a_record_that_is_too_large(produce: Give, data: Path) -> None:
    answer = produce(b"a" * 2_000_000)
    assert (answer.status, answer.stdout) == (2, "")
    assert "max.request.size" in answer.stderr
    assert stored(data) == []


def test_a_directory_is_created(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    assert run("produce", "orders", "--data", tmp_path / "new").status == 0
    assert stored(tmp_path / "new") == [(None, b"a")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-H", "=x"], "'=x' is not NAME=VALUE"),
        (["-K", ""], "a delimiter must not be empty"),
        (["-D", r"\q"], "unknown escape"),
        (["-z", "brotli"], "brotli"),
        (["--transactional-id", ""], "-X: transactional.id must not be empty"),
    ],
)
def test_wrong_options(produce: Give, options: list[str], message: str) -> None:
    answer = produce(b"a\n", *options)
    assert (answer.status, answer.stdout) == (2, "")
    assert message in answer.stderr

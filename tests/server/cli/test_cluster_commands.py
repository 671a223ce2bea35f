"""The commands for clusters over a socket, in pipes, and interrupted."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.test_manners import completed
from tests.unit.cli.conftest import Run
from txnkafka import Broker
from txnkafka.testing import broker_faults

COMMAND = [sys.executable, "-m", "txnkafka"]
SECONDS = 60


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker, _, _ = broker_faults.in_memory()
    with broker:
        broker.serve("127.0.0.1:0")
        with broker.admin() as admin:
            admin.create_topic("orders", partitions=2)
        yield broker


@pytest.fixture
def address(broker: Broker) -> str:
    assert broker.address is not None
    return broker.address


def rows(run: Run, address: str, *arguments: object, status: int = 0) -> Any:
    answer = run(*arguments, "-b", address, "--format", "json")
    assert (answer.status, answer.stderr) == (status, "")
    return json.loads(answer.stdout)


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_story_of_all_commands(
    run: Run, broker: Broker, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"anna:1\nbert:2\ncarl:3\n")
    produced = run("produce", "orders", "-K", ":", "--transactional-id", "import", "--bootstrap", address)
    assert produced == (0, "", "txnkafka: note: 3 records sent to orders\n")
    consumed = run("consume", "orders", "-G", "readers", "-e", "-f", r"%k=%s\n", "-b", address)
    assert (consumed.status, sorted(consumed.lines)) == (0, ["anna=1", "bert=2", "carl=3"])
    assert {row["lag"] for row in rows(run, address, "groups")} == {0}
    assert run("groups", "--group", "readers", "--reset-offsets", "--to-earliest", "-b", address).status == 0
    again = run("consume", "orders", "-G", "readers", "-e", "-b", address)
    assert sorted(again.lines) == ["1", "2", "3"]
    assert run("topics", "alter", "orders", "--partitions", 3, "-b", address).status == 0
    (listed,) = rows(run, address, "topics", "list")
    assert listed["partitions"] == 3
    (described,) = rows(run, address, "txn", "describe", "import")
    assert described["transaction_state"] == "CompleteCommit"
    broker_faults.hang_transaction(broker, "orders", 2)
    find = ("txn", "find-hanging", "--max-transaction-timeout", 0)
    (found,) = rows(run, address, *find, status=1)
    abort = ("txn", "abort", "--topic", "orders", "--partition", 2, "--start-offset", found["start_offset"])
    assert run(*abort, "-b", address).status == 0
    assert rows(run, address, *find) == []
    assert rows(run, address, "perf", "consume", "orders")["records"] == 3
    assert run("topics", "delete", "orders", "-b", address).stdout == "orders: deleted\n"


def test_an_unreachable_broker(run: Run) -> None:
    answer = run("topics", "list", "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=200")
    assert (answer.status, answer.stdout) == (2, "")
    assert "failed for 200 ms: no connection to 127.0.0.1:1: Connection refused" in answer.stderr
    wrong = run("topics", "list", "-b", "localhost")
    assert wrong.status == 2
    assert "'localhost' is not HOST:PORT" in wrong.stderr


def test_lines_are_sent_when_they_come(address: str) -> None:
    """Before the end of the input: a terminal has none."""
    consume = [*COMMAND, "consume", "orders", "-c", "2", "-u", "-b", address]
    produce = [*COMMAND, "produce", "orders", "-q", "-b", address]
    with (
        subprocess.Popen(consume, stdout=subprocess.PIPE) as reader,
        subprocess.Popen(produce, stdin=subprocess.PIPE) as writer,
    ):
        assert writer.stdin is not None
        assert reader.stdout is not None
        for line in (b"one\n", b"two\n"):
            writer.stdin.write(line)
            writer.stdin.flush()
            assert reader.stdout.readline() == line
        assert reader.wait(SECONDS) == 0
        writer.stdin.close()
        assert writer.wait(SECONDS) == 0


def test_a_pipe_of_two_commands(run: Run, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"".join(b"%d\n" % number for number in range(5_000)))
    assert run("produce", "orders", "-b", address).status == 0
    consume = " ".join([*COMMAND, "consume orders -e -J -b", address])
    produce = " ".join([*COMMAND, "produce copy --format jsonl --transactional-id copy -b", address])
    done = subprocess.run(f"{consume} | {produce}", shell=True, timeout=SECONDS, check=False)
    assert done.returncode == 0
    copied = run("consume", "copy", "-e", "-b", address).lines
    assert sorted(map(int, copied)) == list(range(5_000))


def test_a_reader_that_leaves_early(run: Run, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"".join(b"%d\n" % number for number in range(50_000)))
    assert run("produce", "orders", "-p", 0, "-b", address).status == 0
    with subprocess.Popen(
        [*COMMAND, "consume", "orders", "-b", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 2


def test_ctrl_c_aborts_a_transaction(run: Run, address: str) -> None:
    produce = [*COMMAND, "produce", "orders", "--transactional-id", "import", "-p", "0", "-b", address]
    with subprocess.Popen(produce, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        uncommitted = ("consume", "orders", "-c", 1, "--isolation-level", "read_uncommitted", "-b", address)
        assert run(*uncommitted).stdout == "one\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    words = b"records that were sent stay, unless they are in a transaction (--transactional-id)"
    assert (process.returncode, errors) == (130, b"txnkafka: error: interrupted; " + words + b"\n")
    assert run("consume", "orders", "-e", "-b", address).stdout == ""
    (described,) = rows(run, address, "txn", "describe", "import")
    assert described["transaction_state"] == "CompleteAbort"


def test_ctrl_c_ends_consume(address: str) -> None:
    consume = [*COMMAND, "consume", "orders", "-v", "-b", address]
    with subprocess.Popen(consume, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"isolation level" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 130


def test_a_directory_that_serve_has_open(run: Run, tmp_path: Path) -> None:
    with Broker.open(tmp_path / "data"):
        done = subprocess.run(
            [*COMMAND, "topics", "list", "--data", str(tmp_path / "data")], capture_output=True, text=True,
            check=False, timeout=SECONDS,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert str(os.getpid()) in done.stderr


def test_settings_are_completed() -> None:
    assert completed("txnkafka", "consume", "-X", "fetch.max.w") == ["plain,fetch.max.wait.ms="]
    assert completed("txnkafka", "topics", "create", "a", "--config", "retention.m") == [
        "plain,retention.ms="
    ]
    assert completed("txnkafka", "txn", "find") == ["plain,find-hanging"]
    assert completed("txnkafka", "consume", "orders", "-o", "be") == ["plain,beginning"]
    assert completed("txnkafka", "topics", "list", "--data", "/va") == ["file,/va"]

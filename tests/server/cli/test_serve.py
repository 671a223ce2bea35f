"""What ``txnkafka serve`` refuses before it listens; tests/unit/server has tests with clients."""

from __future__ import annotations

import socket
from itertools import chain
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--listen", "9092"], "'9092' is not HOST:PORT"),
        (["--listen", "localhost:70000"], "is not HOST:PORT"),
        (["--listen", ":1"], "is not HOST:PORT"),
        (["--listen", f"a:{'9' * 5000}"], "is not HOST:PORT"),
        (["--config", "num.partitions"], "'num.partitions' is not KEY=VALUE"),
        (["--config", "num.partition=3"], "did you mean num.partitions?"),
        (["--config", "num.partitions=0"], "num.partitions must be 1 to"),
        (["--config", "num.partitions=1", "--config", "num.partitions=2"], "--config is given twice"),
        (["--create-topic", "a:0"], "'a:0' is not NAME:PARTITIONS"),
        (["--create-topic", "a"], "'a' is not NAME:PARTITIONS"),
        (["--create-topic", "a:10001"], "at most 10,000 partitions can be created at once"),
        (["--create-topic", f"a:{'9' * 5000}"], "is not NAME:PARTITIONS"),
        (["--create-topic", "a b:1"], "the topic a b cannot be created: topic name 'a b' contains"),
        (["--create-topic", "or/ders:1"], "the topic or/ders cannot be created: topic name"),
        (["--create-topic", "a.b:1", "--create-topic", "a_b:1"], "topic a_b cannot be created: its metrics"),
        (["--durability", "none"], "'none' is not one of"),
    ],
)
def test_refused(run: Run, tmp_path: Path, options: list[str], reason: str) -> None:
    """Nothing is created."""
    result = run("serve", "--data", tmp_path / "data", *options)
    assert result.status == 2
    assert reason in result.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("option", ["--listen", "--metrics"])
def test_an_address_in_use(run: Run, tmp_path: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        others = {"--listen": "127.0.0.1:0", option: address}
        result = run("serve", "--data", tmp_path / "data", *chain.from_iterable(others.items()))
    assert result == (
        2, "", f"txnkafka: error: cannot listen on {address}: Address already in use; "
        f"{option} HOST:PORT chooses another address, and port 0 a free port\n",
    )  # fmt: skip
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1", "[2001:db8::1]"])
def test_an_address_of_another_machine(run: Run, tmp_path: Path, host: str) -> None:
    result = run("serve", "--data", tmp_path / "data", "--listen", f"{host}:9092")
    assert result.status == 2
    assert result.stderr.startswith(f"txnkafka: error: cannot listen on {host}:9092: ")


def test_a_file_in_place_of_the_directory(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("")
    result = run("serve", "--data", path)
    assert result == (2, "", f"txnkafka: error: {path} is a file, not a directory\n")


def test_a_directory_in_place_of_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data" / "recovery-point-offset-checkpoint"
    path.mkdir(parents=True)
    result = run("serve", "--data", path.parent, "--listen", "127.0.0.1:0")
    assert result.status == 2
    assert result.stderr.endswith(f"txnkafka: error: {path}: Is a directory\n")


def test_a_directory_of_something_else(run: Run, tmp_path: Path) -> None:
    """Nothing is written there: a broker would add its files to a source tree, or to ``/etc``, where
    directories have names like ``dbus-1``."""
    for name in ("setup.py", "src", "app-1", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "app-1" / "notes.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    result = run("serve", "--data", tmp_path)
    assert result == (
        2, "", f"txnkafka: error: {tmp_path} has no meta.properties, and contains foreign files: it is "
        "not a data directory, and nothing was written; found: .git, app-1/notes.txt, setup.py and 1 more. "
        "Name a new or empty directory, or move these files away\n",
    )  # fmt: skip
    assert sorted(tmp_path.rglob("*")) == before

"""What ``txnkafka serve`` refuses before it listens; tests/unit/server has tests with clients."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--listen", "9092"], "'9092' is not HOST:PORT"),
        (["--listen", "localhost:70000"], "is not HOST:PORT"),
        (["--listen", ":1"], "is not HOST:PORT"),
        (["--config", "num.partitions"], "'num.partitions' is not KEY=VALUE"),
        (["--config", "num.partition=3"], "did you mean num.partitions?"),
        (["--config", "num.partitions=0"], "num.partitions must be 1 to"),
        (["--config", "num.partitions=1", "--config", "num.partitions=2"], "--config is given twice"),
        (["--create-topic", "a:0"], "'a:0' is not NAME:PARTITIONS"),
        (["--create-topic", "a"], "'a' is not NAME:PARTITIONS"),
        (["--create-topic", "a b:1"], "the topic a b cannot be created"),
        (["--durability", "none"], "'none' is not one of"),
    ],
)
def test_refused(run: Run, tmp_path: Path, options: list[str], reason: str) -> None:
    result = run("serve", "--data", tmp_path / "data", *options)
    assert result.status == 2
    assert reason in result.stderr


def test_an_address_in_use(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--data", tmp_path / "data", "--listen", f"127.0.0.1:{port}")
    assert result.status == 2
    assert "address already in use" in result.stderr

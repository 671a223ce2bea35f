"""The command line on addresses: the same answers as on paths, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from tests.unit.env.bucket import Bucket


@pytest.fixture
def bucket(log_dir: Path) -> str:
    Bucket.install(log_dir)
    return "bucket://logs"


@pytest.mark.parametrize("command", ["ls", "ls --segments", "cat", "verify", "lso --now 0"])
def test_commands(run: Run, bucket: str, log_dir: Path, command: str) -> None:
    name, *options = command.split()
    there, here = run(name, bucket, *options), run(name, log_dir, *options)
    assert there.stdout.replace(bucket, str(log_dir)) == here.stdout
    assert there.stderr.replace(bucket, str(log_dir)) == here.stderr
    assert there.status == here.status


def test_dump(run: Run, bucket: str, log_dir: Path) -> None:
    files = [f"orders-0/{FIRST_SEGMENT}", "replication-offset-checkpoint", "meta.properties"]
    there = run("dump", *(f"{bucket}/{each}" for each in files), "--records")
    here = run("dump", *(log_dir / each for each in files), "--records")
    assert (there.status, there.stdout.replace(bucket, str(log_dir))) == (0, here.stdout)
    assert run("dump", f"{bucket}/orders-0").stderr.startswith(
        "txnkafka: error: bucket://logs/orders-0 is a directory"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bucket://nothing"], "bucket://nothing does not exist"),
        (["nosuch://logs"], "nosuch://logs: unknown file system 'nosuch'"),
        (["bucket://logs", "--io", "mmap"], "bucket://logs cannot be mapped into memory"),
    ],
)
def test_errors(run: Run, bucket: str, arguments: list[str], message: str) -> None:
    answer = run("ls", *arguments)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"txnkafka: error: {message}")
    assert answer.stderr.count("\n") == 1

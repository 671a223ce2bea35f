"""The examples with Kafka's clients in README.md and docs/serve.md run on ``txnkafka serve``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT, Example, examples
from tests.server.serving import Serving
from txnkafka import LogDir

ADDRESS = "127.0.0.1:9092"  # of the pages


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    started = ["--create-topic", "orders:3", "--config", "group.initial.rebalance.delay.ms=0"]
    with Serving(tmp_path / "data", *started) as serving:
        yield serving


def at(server: Serving, example: Example) -> Example:
    """The example with the address of this broker, which lets nobody wait for other members."""
    assert ADDRESS in example.source
    source = example.source.replace(ADDRESS, server.address).replace("poll(10)", "poll(5)")
    return Example(source, example.printed)


def test_readme(server: Serving) -> None:
    (example,) = (each for each in examples("README.md") if "confluent_kafka" in each.source)
    assert at(server, example).run({}) == example.printed != ""
    assert f"$ txnkafka serve --data /tmp/kafka --listen {ADDRESS} --create-topic orders:3\n" in (
        ROOT / "README.md"
    ).read_text(encoding="utf-8")


def test_serve(server: Serving, tmp_path: Path) -> None:
    write, copy, _ = examples("docs/serve.md")
    for _ in range(3):
        at(server, write).run({})
    names: dict[str, object] = {}
    at(server, copy).run(names)
    del names["consumer"], names["producer"]
    assert server.stop() == 0
    log_dir = LogDir(tmp_path / "data")
    copied = [record.value for view in log_dir.partitions("copies") for record in view.records()]
    assert copied == [b"a"] * 3
    assert sum(each.offset for each in log_dir.committed_offsets().values()) >= 3


USES_THE_FIXTURE = """
from confluent_kafka import Producer

def test_produce(bootstrap_servers):
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce("t", b"x")
    assert producer.flush(30) == 0
"""


def with_the_fixture(
    directory: Path, change: tuple[str, str] = ("SECONDS", "SECONDS"), limit: str = "SECONDS = 60"
) -> subprocess.CompletedProcess[str]:
    """Run a test that uses the fixture of the page, with a change to it, where no program is on PATH."""
    fixture = fixture_of_the_page("subprocess").replace(*change).replace("SECONDS = 60", limit)
    return run_with(fixture, directory)


def fixture_of_the_page(first_import: str) -> str:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    block = re.search(rf"^    import {first_import}\n(?:    .*\n|\n)+", page, re.MULTILINE)
    assert block is not None
    return textwrap.dedent(block.group())


def run_with(fixture: str, directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / "conftest.py").write_text(fixture)
    (directory / "test_it.py").write_text(USES_THE_FIXTURE)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", directory, directory],
        env={**os.environ, "PATH": ""}, cwd=directory, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def test_the_fixture_of_the_page(tmp_path: Path) -> None:
    done = with_the_fixture(tmp_path)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_the_fixture_with_a_broker_in_the_process(tmp_path: Path) -> None:
    done = run_with(fixture_of_the_page("pytest"), tmp_path)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_the_broker_in_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    *_, example = examples("docs/serve.md")
    assert example.run({}) == example.printed == "b'a book'\n"


def test_a_failure_of_the_fixture_shows_stderr(tmp_path: Path) -> None:
    done = with_the_fixture(tmp_path, ("127.0.0.1:0", "192.0.2.1:9092"))
    assert done.returncode == 1
    assert "cannot listen on 192.0.2.1:9092" in done.stdout


def test_the_time_limit_of_the_fixture(tmp_path: Path) -> None:
    """A broker that prints nothing is killed."""
    hangs = '[sys.executable, "-c", "import time; time.sleep(1000)", "serve"'
    change = '[sys.executable, "-m", "txnkafka", "serve"', hangs
    done = with_the_fixture(tmp_path, change, "SECONDS = 1")
    assert done.returncode == 1

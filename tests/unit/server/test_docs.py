"""The examples with Kafka's clients in README.md and docs/serve.md run on ``txnkafka serve``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT, Example, examples
from tests.unit.server.serving import Serving
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
    write, copy = examples("docs/serve.md")
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

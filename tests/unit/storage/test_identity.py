"""The identity of a data directory: made, compared, and not replaced when it cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.storage.client import NOW
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles
from txnkafka.errors import LogDirError
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import parse_meta_properties
from txnkafka.storage.identity import random_uuid
from txnkafka.testing.memory_files import MemoryFiles


def opened(files: DataFiles, **arguments: Any) -> DataDirectory:
    return DataDirectory(files, "/data", lambda topic: LogConfig(), now_ms=NOW, **arguments)


def test_identity() -> None:
    files = MemoryFiles()
    directory = opened(files, cluster_id="a cluster", node_id=4)
    found = parse_meta_properties(files.read("/data/meta.properties", 1000))
    assert found == directory.identity
    assert (found.version, found.cluster_id, found.node_id) == (1, "a cluster", 4)
    directory.close()
    assert opened(files).identity == found
    for arguments, name in (({"cluster_id": "another"}, "cluster.id"), ({"node_id": 5}, "node.id")):
        with pytest.raises(LogDirError, match=name):
            opened(MemoryFiles(base=files.disk()), **arguments)


def test_an_id_does_not_begin_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["f8" + "00" * 15, "fb" + "11" * 15, "00" * 15 + "f8"])
    monkeypatch.setattr("txnkafka.storage.identity.unique_name", lambda: next(names))
    assert random_uuid() == "AAAAAAAAAAAAAAAAAAAA-A"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"version=1\n", "meta.properties is damaged, .*'cluster.id' is missing"),
        (b"", "meta.properties is damaged, .*'broker.id'. Restore it from a copy, or write version=1,"),
        (b"\x00\xff garbage", "meta.properties is damaged"),
        (b"version=0\nbroker.id=1\n", "meta.properties names no cluster: add the line cluster.id="),
    ],
)
def test_an_identity_that_cannot_be_read_is_not_replaced(content: bytes, says: str) -> None:
    """Kafka does not start without the ids of cluster and node (``KafkaRaftServer.initializeLogDirs``); a
    broker here went on with none, and told its clients an empty cluster id."""
    files = MemoryFiles()
    opened(files).close()
    file = files.open_to_write("/data/meta.properties")
    file.truncate(0)
    file.write(0, [content])
    with pytest.raises(LogDirError, match=says):
        opened(files)
    assert files.read("/data/meta.properties", 100) == content
    assert not files.is_locked("/data/.lock")

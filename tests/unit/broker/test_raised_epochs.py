"""``__transaction_state`` lost its end, the partitions kept theirs: the next transaction works at once."""

from __future__ import annotations

import pytest

from tests.unit.broker.node import COMMITTED, Node, Producer
from txnkafka.coordinator.partitions import partition_for
from txnkafka.error_codes import ErrorCode
from txnkafka.testing.memory_files import MemoryFiles

STATE = f"/data/__transaction_state-{partition_for('x', 2)}"


def state_files(files: MemoryFiles) -> dict[str, bytes]:
    return {each.name: files.read(f"{STATE}/{each.name}", 1 << 30) for each in files.list(STATE)}


def put_back(files: MemoryFiles, content: dict[str, bytes]) -> None:
    """As after a power cut: without recovery points no file shows that the log was longer."""
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        files.remove(f"/data/{name}")
    for each in files.list(STATE):
        files.remove(f"{STATE}/{each.name}")
    for name, data in content.items():
        file = files.create(f"{STATE}/{name}")
        file.write(0, [data])
        file.close()


def committed(producer: Producer, value: bytes) -> ErrorCode:
    if producer.version == 1:
        assert producer.add(0) == {ErrorCode.NONE}
    assert producer.send(value) == [ErrorCode.NONE]
    return producer.end()


@pytest.mark.parametrize("later", [1, 5])
@pytest.mark.parametrize("version", [1, 2])
def test_the_next_transaction_works_at_once(version: int, later: int) -> None:
    files = MemoryFiles()
    node = Node(files)
    node.create("t")
    producer = Producer(node, version=version)
    assert committed(producer, b"first") == ErrorCode.NONE
    node.close()
    lost = state_files(files)
    node = Node(files)
    for number in range(later):
        producer = Producer(node, version=version)
        assert committed(producer, b"later %d" % number) == ErrorCode.NONE
    old = producer
    node.close()
    put_back(files, lost)
    node = Node(files)
    old.node = node
    assert old.end() != ErrorCode.NONE, "its transaction may have partitions that are not known"
    assert committed(Producer(node, version=version), b"next") == ErrorCode.NONE
    assert node.values(isolation_level=COMMITTED)[-1] == b"next"

"""A request of many names takes time for each name, and not for each pair of names."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.unit.server.wire_node import BY_NAME, WireNode
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.peer import Node as Address
from txnkafka.server.peer import Peer
from txnkafka.wire.messages import alter_replica_log_dirs, create_topics, delete_records

SOME = 250
MANY = 8 * SOME
pytestmark = pytest.mark.usefixtures("without_collections")


def deletions(count: int) -> tuple[str, dict[str, Any]]:
    partitions = (delete_records.DeleteRecordsPartition(partition_index=0, offset=0),)
    named = [delete_records.DeleteRecordsTopic(name=f"x_{i}", partitions=partitions) for i in range(count)]
    return "DeleteRecords", {"topics": tuple(named), "timeout_ms": 1}


def moves(count: int) -> tuple[str, dict[str, Any]]:
    topics = tuple(
        alter_replica_log_dirs.AlterReplicaLogDirTopic(name=f"x_{i}", partitions=(0,)) for i in range(count)
    )
    return "AlterReplicaLogDirs", {
        "dirs": (alter_replica_log_dirs.AlterReplicaLogDir(path="/nowhere", topics=topics),)
    }


def creations(count: int, name: str = "x_%d", partitions: int = 0) -> tuple[str, dict[str, Any]]:
    """Without partitions they are refused, after their names were compared with those that are there."""
    topics = [
        create_topics.CreatableTopic(
            name=name % i, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
        )
        for i in range(count)
    ]
    return "CreateTopics", {"topics": tuple(topics), "timeout_ms": 1, "validate_only": False}


def seconds(of: WireNode, name: str, fields: dict[str, Any]) -> float:
    """The time of the broker alone."""
    api, answers = BY_NAME[name], list[Any]()
    request = api.request(**fields)
    peer = Peer(Address("localhost", 9092, of.sessions), "test", "localhost")
    dispatcher = Dispatcher(of.broker, lambda: of.now_ms)
    begin = time.process_time()
    dispatcher.call(api, api.max_version, request, peer, answers.append)
    of.settle()
    spent = time.process_time() - begin
    assert len(answers) == 1
    return spent


def with_topics(count: int) -> WireNode:
    of = WireNode()
    seconds(of, *creations(count, "t_%d", 1))
    return of


@pytest.mark.slow
@pytest.mark.parametrize("request_of", [deletions, creations, moves])
def test_many_names(request_of: Any) -> None:
    """Eight times as many names, of eight times as many topics, take 64 times as long where each is compared
    with each."""
    few = min(seconds(with_topics(SOME), *request_of(SOME)) for _ in range(3))
    assert seconds(with_topics(MANY), *request_of(MANY)) < 24 * few

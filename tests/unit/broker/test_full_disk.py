"""A disk without room for a new file while the first records after a start are flushed."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tests.unit.broker.node import COMMITTED, Node, Producer
from txnkafka.error_codes import ErrorCode
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


@pytest.mark.parametrize("durability", ["fsync", "page_cache"])
def test_transactions_go_on_when_the_leader_epochs_found_no_room(durability: Any) -> None:
    """Each start begins a leader epoch. A log must not go offline because its file has no room:
    InitProducerId would wait for a marker in that log until the next start."""
    plan = FaultPlan(error=errno.ENOSPC, call="create", for_ever=True)
    files = FaultyFiles(MemoryFiles(), plan)
    node = Node(files, durability=durability, topic_defaults={"flush.messages": "1"})
    node.create("t")
    assert Producer(node).send(b"before") == [ErrorCode.NONE]
    node.restart()
    plan.fails = plan.counted + 1
    producer = Producer(node)
    assert producer.identity.error == ErrorCode.NONE
    assert producer.send(b"full") == [ErrorCode.NONE]
    assert {site.suffix for site in plan.failed} == {".tmp"}
    assert producer.end() == ErrorCode.NONE
    plan.fails = 0
    later = Producer(node)
    assert later.send(b"after") == [ErrorCode.NONE]
    assert later.end() == ErrorCode.NONE
    assert node.values(isolation_level=COMMITTED) == [b"full", b"after"]

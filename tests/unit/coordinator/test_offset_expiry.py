"""When a committed offset expires."""

from __future__ import annotations

from tests.unit.coordinator.group_clients import START_MS, Node


def test_an_offset_expires_when_its_time_is_reached_exactly() -> None:
    node = Node()
    node.coordinator.advance(node.now_ms)
    check_ms = 600_000  # offsets.retention.check.interval.ms
    for topic, late_ms in (("t", 0), ("u", 1)):
        node.commit(1, topic=topic, expire_timestamp=START_MS + check_ms + late_ms)
    node.wait(check_ms)
    assert [node.fetched(topic=topic).offset for topic in ("t", "u")] == [-1, 1]

"""Groups of the consumer protocol when the log takes no records, the clock is put back, or all leave."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, config
from tests.unit.coordinator.test_consumer_groups import settled
from txnkafka.error_codes import ErrorCode as E


def test_a_member_that_is_gone_is_removed_when_the_log_takes_records_again() -> None:
    node = ConsumerNode({"t": 3})
    first, second = Consumer(node, "a").join(), Consumer(node, "b").join()
    node.wait(40_000)
    first.follow()
    node.fails = True
    node.wait(6_000)  # the session of the second one is over
    assert set(node.consumers().members) == {"a", "b"}
    node.fails = False
    node.wait(1_000)
    assert set(node.consumers().members) == {"a"}
    settled(first)
    assert first.has == [(1, 0), (1, 1), (1, 2)]
    assert second.beat().error == E.UNKNOWN_MEMBER_ID


def test_partitions_are_assigned_when_the_clock_was_put_back() -> None:
    """The time of the last assignment, which is in the log, may be far ahead."""
    node = ConsumerNode({"t": 2}, consumer=config(assignment_interval_ms=1_000))
    first = Consumer(node, "a").join()
    node.now_ms -= 86_400_000
    second = Consumer(node, "b").join()
    settled(first, second)
    assert (len(first.has), len(second.has)) == (1, 1)


@pytest.mark.parametrize("interval_ms", [0, 60_000])
def test_a_group_that_everybody_leaves_has_no_targets_to_compute(interval_ms: int) -> None:
    """The targets have the epoch of the group (since Kafka 4.4), also after a restart; the next member
    waits for no interval."""
    node = ConsumerNode({"t": 2}, consumer=config(assignment_interval_ms=interval_ms))
    one, two = Consumer(node, "a").join(), Consumer(node, "b").join()
    one.leave()
    before = node.consumers()
    assert before.epoch > before.assignment_epoch
    two.leave()
    for _ in range(2):
        empty = node.consumers()
        assert (empty.epoch, empty.assignment_epoch, empty.assignment_timestamp) == (5, 5, 0)
        node.start()
    again = Consumer(node, "c").join()
    assert (again.epoch, again.has) == (6, [(1, 0), (1, 1)])

"""Producer ids: out of durable blocks, none of them twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.coordinator.txn.producer_ids import BLOCK_SIZE, ProducerIds


class Registry:
    """Blocks that were asked for; those that were recorded survive a crash."""

    def __init__(self) -> None:
        self.requests = 0
        self.next_id = 0

    def request(self) -> None:
        self.requests += 1

    def record(self) -> int:
        """A block becomes durable; returns where it begins."""
        first, self.next_id = self.next_id, self.next_id + BLOCK_SIZE
        return first


def test_ids_are_distinct_and_rise_within_a_block() -> None:
    registry = Registry()
    ids = ProducerIds(registry.request)
    ids.request()
    taken = []
    for _ in range(3):
        ids.block_durable(registry.record())
        taken += [ids.take() for _ in range(BLOCK_SIZE)]
    assert taken == list(range(3 * BLOCK_SIZE))
    assert registry.requests == 4


def test_no_id_is_given_before_the_block_is_durable() -> None:
    registry = Registry()
    ids = ProducerIds(registry.request)
    assert [ids.take() for _ in range(5)] == [None] * 5
    assert registry.requests == 1
    ids.block_durable(registry.record())
    assert ids.take() == 0


def test_the_next_block_is_asked_for_before_the_last_id() -> None:
    registry = Registry()
    ids = ProducerIds(registry.request)
    ids.block_durable(registry.record())
    for _ in range(BLOCK_SIZE * 9 // 10 - 1):
        ids.take()
    assert registry.requests == 0
    ids.take()
    assert registry.requests == 1
    ids.block_durable(registry.record())
    assert [ids.take() for _ in range(101)] == list(range(900, 1001))


def test_a_block_that_failed_is_asked_for_again() -> None:
    registry = Registry()
    ids = ProducerIds(registry.request)
    assert ids.take() is None
    ids.block_failed()
    assert ids.take() is None
    assert registry.requests == 2


@pytest.mark.parametrize(
    ("first", "size"), [(0, 1000), (999, 1000), (500, 10), (5000, 0), (5000, -1), (-5, 3), (2**63 - 10, 1000)]
)
def test_a_block_that_overlaps_is_refused(first: int, size: int) -> None:
    ids = ProducerIds(lambda: None)
    ids.block_durable(0)
    with pytest.raises(ValueError, match="not a new block"):
        ids.block_durable(first, size)


def test_a_block_that_is_used_before_it_is_durable_is_given_again() -> None:
    """What the next test would find."""
    registry = Registry()
    ids = ProducerIds(registry.request)
    ids.block_durable(registry.next_id)  # not recorded
    first = ids.take()
    ids = ProducerIds(registry.request)
    ids.block_durable(registry.record())
    assert ids.take() == first


@given(
    st.lists(st.sampled_from(["take", "durable", "failed", "crash", "lost"]), max_size=60), st.integers(1, 5)
)
def test_no_id_is_ever_given_twice_across_crashes(actions: list[str], burst: int) -> None:
    """A block whose record was lost with a crash was never used."""
    registry, seen = Registry(), list[int]()
    ids = ProducerIds(registry.request)
    for action in actions:
        if action == "take":
            taken = [ids.take() for _ in range(burst * 150)]
            seen += [producer_id for producer_id in taken if producer_id is not None]
        elif action == "durable" and registry.requests:
            registry.requests -= 1
            ids.block_durable(registry.record())
        elif action == "failed" and registry.requests:
            registry.requests -= 1
            ids.block_failed()
        elif action in ("crash", "lost"):
            registry.requests = 0
            ids = ProducerIds(registry.request)
    assert len(seen) == len(set(seen))

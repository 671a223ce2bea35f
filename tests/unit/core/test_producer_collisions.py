"""Producer tables with hostile input: chosen ids, decreasing offsets."""

from __future__ import annotations

import random
import struct
import time

import pytest

from tests.models.headers import COMMIT, data, encode, marker
from tests.unit.core.producers import NEVER, TIME
from txnkafka._core.crc32c import crc32c
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import scan

GOLDEN_RATIO = 0x9E3779B9
MANY = 60_000


def snapshot(producer_ids: list[int]) -> bytes:
    entries = (struct.pack(">qhiqiqiq", each, 0, 0, 5, 0, TIME, -1, -1) for each in producer_ids)
    body = struct.pack(">i", len(producer_ids)) + b"".join(entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def neighbours(count: int) -> list[int]:
    """Return small ids whose multiples of the golden ratio are in one 32nd of the circle: if the upper half
    of a multiplier is known, they become neighbours whatever its lower half is."""
    found = (each for each in range(100 * count) if each * GOLDEN_RATIO % 2**32 < 2**27)
    return [next(found) for _ in range(count)]


def load_seconds(producer_ids: list[int], *, rounds: int = 1) -> float:
    content, seconds = snapshot(producer_ids), []
    for _ in range(rounds):
        table, start = ProducerTable(), time.process_time()
        table.load(content, now_ms=TIME, expiration_ms=NEVER)
        seconds.append(time.process_time() - start)
        assert len(table) == len(producer_ids)
    return min(seconds)


@pytest.mark.slow
def test_chosen_producer_ids_are_found_as_quickly_as_random_ones() -> None:
    """If they collide, loading takes hundreds of times as long."""
    at_random = load_seconds(random.Random(1).sample(range(2**40), MANY), rounds=5)
    for chosen in (neighbours(MANY), [each << 32 for each in range(MANY)], list(range(MANY))):
        assert load_seconds(chosen) < 20 * at_random + 0.1


def test_transactions_that_begin_in_no_order_are_all_known() -> None:
    """The oldest transaction is known after each batch, although the offsets of a damaged log may
    decrease."""
    count = 3000
    offsets = random.Random(2).sample(range(count), count)
    table, opened = ProducerTable(), dict[int, int]()
    for producer_id, offset in enumerate(offsets):
        table.replay(scan(encode([data(producer_id, 0, offset)])), 0, [])
        opened[producer_id] = offset
        if producer_id % 3 == 2:  # one of the open ones ends, not always the oldest
            ended = producer_id - 1 if producer_id % 2 else min(opened, key=opened.__getitem__)
            table.replay(scan(encode([marker(ended, 0, count + producer_id, COMMIT)])), 0, [])
            del opened[ended]
        if producer_id % 50 == 0:
            assert table.first_undecided_offset == min(opened.values())
    assert [each.current_txn_first_offset for each in table.open_transactions()] == sorted(opened.values())
    assert table.open_count == len(opened)


@pytest.mark.slow
def test_open_transactions_whose_offsets_go_back_cost_no_more_than_others() -> None:
    """Searching a list for each of them would take quadratic time."""
    forward = [data(each, 0, each) for each in range(MANY)]
    seconds = []
    for headers in (forward, list(reversed(forward))):
        index, table = scan(encode(headers)), ProducerTable()
        start = time.process_time()
        table.replay(index, 0, [])
        seconds.append(time.process_time() - start)
        assert (table.open_count, table.first_undecided_offset) == (MANY, 0)
    assert seconds[1] < 30 * seconds[0] + 0.1

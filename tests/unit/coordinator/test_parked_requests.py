"""Requests that wait for others of their transactional id, and when the first of them must be refused."""

from __future__ import annotations

from collections import deque
from collections.abc import ItemsView, ValuesView
from random import Random
from typing import Any

import pytest

from txnkafka.coordinator.txn.in_flight import NEVER, ParkedRequests, Request
from txnkafka.coordinator.txn.txn_events import EndTxn, Event, Expire


class Queues(dict[str, deque[Request]]):
    """Counts how often a queue is looked at."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)

    def values(self) -> ValuesView[deque[Request]]:  # type: ignore[override]
        self.looks += len(self)
        return super().values()

    def items(self) -> ItemsView[str, deque[Request]]:  # type: ignore[override]
        self.looks += len(self)
        return super().items()


def request(transactional_id: str, until_ms: int, *, ends: bool = False) -> Request:
    end: Event = EndTxn(transactional_id, 0, 0, committed=True, client_transaction_version=2)
    return Request(end if ends else Expire(transactional_id), None, until_ms)


def looks_of_busy_producers(count: int) -> int:
    """Looks at queues while that many producers wait at the same time: a request is parked and another one
    goes on, and behind each the host asks for the deadline, as it does."""
    parked = ParkedRequests(10)
    queues = parked.queues = Queues()
    for number in range(count):
        parked.add(request(str(number), number))
    queues.looks = 0
    for number in range(1_000):
        goes_on = str(number % count)
        assert parked.take(goes_on) is not None
        assert parked.take(goes_on) is None
        parked.add(request(goes_on, count + number))
        assert parked.take_old(0) == []
        assert parked.deadline() == number + 1
    return queues.looks


def test_a_deadline_costs_the_same_with_few_and_with_many_who_wait() -> None:
    assert looks_of_busy_producers(1_000) <= 2 * looks_of_busy_producers(10)


def looks_of_a_slow_disk(count: int) -> int:
    """Looks at queues until all of them have been refused, one at a time."""
    parked = ParkedRequests(10)
    queues = parked.queues = Queues()
    for number in range(count):
        parked.add(request(str(number), number))
    queues.looks = 0
    for number in range(count):
        (old,) = parked.take_old(number)
        assert old.event.transactional_id == str(number)
    return queues.looks


def test_the_refusal_of_one_does_not_look_at_all() -> None:
    assert looks_of_a_slow_disk(1_000) <= 20 * looks_of_a_slow_disk(100)


@pytest.mark.parametrize("seed", range(20))
def test_the_deadline_is_that_of_the_first_requests(seed: int) -> None:
    """Whatever is parked, goes on, is refused and forgotten; also when the time goes back."""
    random, parked, now_ms = Random(seed), ParkedRequests(3), 1_000
    running: list[Request] = []
    for _ in range(2_000):
        name = random.choice("abcdefgh")
        match random.randrange(8):
            case 0 | 1 | 2:
                parked.add(request(name, now_ms + 100, ends=random.random() < 0.3))
            case 3 | 4:
                first = parked.take(name)
                if first is None:
                    assert name not in parked.queues
                elif random.random() < 0.5:
                    parked.add_first(first)
                else:
                    running.append(first)
            case 5:
                random.choice([parked.drop, parked.take_ends])(name)
            case 6:
                now_ms += random.randrange(-20, 60)
            case _:
                wanted = {each for queue in parked.queues.values() for each in due(queue, now_ms)}
                found = parked.take_old(now_ms)
                assert set(found) == wanted
                assert len(found) == len(wanted)
        firsts = [queue[0].until_ms for queue in parked.queues.values() if queue]
        left_empty = any(not queue for queue in parked.queues.values())
        assert parked.deadline() == min(firsts, default=NEVER) or left_empty
        assert parked.deadline() <= min(firsts, default=NEVER)


def due(queue: deque[Request], now_ms: int) -> list[Request]:
    found = []
    for each in queue:
        if each.until_ms > now_ms:
            break
        found.append(each)
    return found


def test_a_queue_that_was_left_empty_blocks_its_id_until_its_deadline_only() -> None:
    parked = ParkedRequests(3)
    parked.add(request("x", 100))
    parked.take("x")
    assert parked.deadline() == 100
    assert parked.take_old(100) == []
    assert not parked.queues
    assert parked.deadline() == NEVER

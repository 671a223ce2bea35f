"""The pace of the resolver: at once under a small load, together under a large one."""

from __future__ import annotations

from tests.unit.client.fakes import FakeReactor
from txnkafka.checkback.resolver.pace import Pace


def _pauses(every_ms: int, count: int) -> list[int]:
    reactor = FakeReactor()
    pace, found = Pace(reactor), []
    for _ in range(count):
        pause_ms = pace.pause_ms()
        found.append(pause_ms)
        reactor.fake_clock.ms += every_ms + pause_ms
    return found


def test_a_small_load_is_not_paused() -> None:
    assert _pauses(10, 100) == [0] * 100


def test_a_large_load_is_paused_until_it_ends() -> None:
    pauses = _pauses(1, 100)
    assert (pauses[:11], set(pauses[11:])) == ([0] * 11, {3})
    reactor = FakeReactor()
    pace = Pace(reactor)
    assert [pace.pause_ms() for _ in range(12)][-1] == 3
    reactor.fake_clock.ms += 1_000
    assert pace.pause_ms() == 0

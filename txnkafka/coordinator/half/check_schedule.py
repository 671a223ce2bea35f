"""``CheckSchedule``: when an undecided half is checked, and when its policy decides.

Deadlines are in ticks, milliseconds of a clock that is never set. The wall clock only counts for records
that were written before the partition was loaded, and never delays a check by more than its own time: setting
a clock makes one check early or late.

A check is counted when a listener has confirmed it, and the next one follows an interval later. An
unconfirmed check waits in ``__txn_check`` for a listener; it is repeated rarely, in case it was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.coordinator.half.half_image import HalfState
from txnkafka.wire.records.half_records import Outcome

if TYPE_CHECKING:
    from txnkafka.coordinator.half.half_image import Half

NEVER: Final = 1 << 62
_MOST_REPEAT_MS: Final = 1_800_000  # half of the time for which __txn_check keeps its records
_REPEAT_INTERVALS: Final = 10
_MOST_STALE: Final = 1_000
_POLICIES: Final = {"park": Outcome.PARK, "rollback": Outcome.ROLLBACK, "keep": None}


@dataclass(frozen=True, slots=True)
class CheckRules:
    """The settings, see ``CheckBackConfig``; times in milliseconds."""

    timeout_ms: int = 6_000
    interval_ms: int = 30_000
    check_max: int = 15
    policy: str = "park"
    max_age_ms: int = 259_200_000

    @property
    def repeat_ms(self) -> int:
        """The time after which an unconfirmed check is repeated."""
        return max(self.interval_ms, min(self.interval_ms * _REPEAT_INTERVALS, _MOST_REPEAT_MS))


class Check(NamedTuple):
    """A check to send: number ``ask_no`` of the half."""

    transaction_id: str
    ask_no: int


class PolicyDecision(NamedTuple):
    """A decision to write, because no check has led to one."""

    transaction_id: str
    outcome: Outcome
    remark: str


class _Entry:
    """``at`` is the deadline of the next step; at ``expires_at`` the half has its greatest age."""

    __slots__ = ("at", "expires_at", "half")

    def __init__(self, half: Half, at: int, expires_at: int) -> None:
        self.half, self.at, self.expires_at = half, at, expires_at


class CheckSchedule:
    """The deadlines of the undecided halves of one partition."""

    def __init__(self, rules: CheckRules) -> None:
        self.rules = rules
        self._entries: dict[str, _Entry] = {}
        self._heap: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def update(self, half: Half, now: int, wall_ms: int, *, is_live: bool) -> None:
        """Take a half whose record was replayed at tick ``now``. ``is_live``: the record is new, else it is
        of the time before, which ``wall_ms`` is compared with."""
        transaction_id = half.transaction_id
        if half.state is not HalfState.PREPARED:
            self._entries.pop(transaction_id, None)
            return
        rules = self.rules

        def after(since_ms: int, ms: int) -> int:
            return now + (ms if is_live else max(0, min(ms, since_ms + ms - wall_ms)))

        entry = self._entries.get(transaction_id)
        if entry is None or entry.half is not half:
            expires_at = after(half.born_ms, rules.max_age_ms)
            entry = self._entries[transaction_id] = _Entry(half, NEVER, expires_at)
        if half.asks:
            at = after(half.last_ms, rules.interval_ms)
        else:
            at = after(half.born_ms, rules.timeout_ms if half.immunity_ms < 0 else half.immunity_ms)
        self._set(entry, at, now)

    def failed(self, transaction_id: str, now: int) -> None:
        """A check or decision was not written: it is repeated after an interval."""
        entry = self._entries.get(transaction_id)
        if entry is not None:
            self._set(entry, now + self.rules.interval_ms, now)

    @property
    def next(self) -> int:
        """The tick of the next step, NEVER without one."""
        while self._heap and not self._is_current(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def due(self, now: int, limit: int) -> list[Check | PolicyDecision]:
        """Return the steps that are due, at most ``limit``; the caller takes them, or calls ``failed``."""
        found: list[Check | PolicyDecision] = []
        while len(found) < limit and self.next <= now:
            _, transaction_id = heappop(self._heap)
            entry = self._entries[transaction_id]
            step = self._step(entry, now)
            if step is not None:
                found.append(step)
        return found

    def _step(self, entry: _Entry, now: int) -> Check | PolicyDecision | None:
        half, rules = entry.half, self.rules
        most = rules.check_max if half.check_max < 0 else half.check_max
        self._set(entry, now + rules.repeat_ms, now)
        if now >= entry.expires_at:
            remark = f"undecided for {rules.max_age_ms} ms (transaction.max.age), after {half.asks} checks"
            return PolicyDecision(half.transaction_id, Outcome.PARK, remark)
        if half.asks < most:
            return Check(half.transaction_id, half.asks + 1)
        outcome = _POLICIES[rules.policy]
        if outcome is None:
            self._set(entry, entry.expires_at, now)
            return None
        return PolicyDecision(half.transaction_id, outcome, f"undecided after {half.asks} checks")

    def _set(self, entry: _Entry, at: int, now: int) -> None:
        """Set the next deadline, which is not later than that of the greatest age, unless it has passed."""
        entry.at = at if now >= entry.expires_at else min(at, entry.expires_at)
        heappush(self._heap, (entry.at, entry.half.transaction_id))
        if len(self._heap) > 2 * len(self._entries) + _MOST_STALE:
            self._heap = [(each.at, name) for name, each in self._entries.items()]
            heapify(self._heap)

    def _is_current(self, at: int, transaction_id: str) -> bool:
        entry = self._entries.get(transaction_id)
        return entry is not None and entry.at == at

"""``Settler``: carries out the decisions of one partition of halves, in the transactions of its mover.

It settles decisions without a pause: those that arrive during one transaction share the next one.
A topic that fails does not hold up the others: its halves are settled alone, after a pause, or are parked if
it will never take them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.checkback.resolver.mover import SettlementError, is_permanent
from txnkafka.client.consumer.signal import Signal
from txnkafka.coordinator.half.settlement import Settlement, chosen
from txnkafka.env import random_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.checkback.resolver.mover import Mover
    from txnkafka.checkback.resolver.parts import Parts
    from txnkafka.coordinator.half.half_image import Half, HalfImage
    from txnkafka.wire.records.half_records import DecideRecord, HalfBatch

    Payload = dict[str, tuple[HalfBatch, ...]]

LOG = logging.getLogger("txnkafka.checkback")
_MOST_BURIED: Final = 500  # records of one settlement
_STRAYS_MS: Final = 1_000  # for which strays wait for a settlement that takes them along
_PAUSE_MS: Final = 1_000  # before a topic that has failed is tried again
_LONGEST_PAUSE_MS: Final = 30_000
_LONGEST_MS: Final = 60_000
_INT63: Final = 1 << 63


class Settler:
    """``on_failed`` is called with the id of a decision of the policy that was not written."""

    def __init__(
        self, parts: Parts, image: HalfImage, number: int, mover: Mover, on_failed: Callable[[str], None]
    ) -> None:
        self._reactor = parts.transport.reactor
        self._image = image
        self._mover = mover
        self._payloads = parts.payloads
        self._number = number
        self._retention_ms = parts.config.decision_retention
        self._on_failed = on_failed
        self._work = Signal()
        self._decisions: list[DecideRecord] = []
        self._busy: dict[str, Half] = {}  # written, and not replayed yet
        self._buried: set[object] = set()  # likewise: strays, and ids whose outcome has expired
        self._alone: dict[str, tuple[Half, frozenset[str]]] = {}  # with the topics that have failed
        self._pauses: dict[str, tuple[int, int]] = {}  # of topics: tick of their end, and length
        self._was_alone = False
        self._wakes_at = 0

    def wake(self) -> None:
        """Wake ``turn`` if work is due, or will be before it wakes up by itself."""
        image = self._image
        if image.decided or image.resuming or self._reactor.now_ms() + self._idle_ms() < self._wakes_at:
            self._work.notify()

    def decide(self, decision: DecideRecord) -> None:
        """Write a decision of the policy, with the next settlement."""
        self._decisions.append(decision)
        self._work.notify()

    async def turn(self) -> None:
        """Settle decided halves, or wait for one. Raises SettlementError if the mover is fenced."""
        work = self._work.next
        self._prune()
        if await self._settle_decided() or await self._settle_rest(is_idle=False):
            return
        idle_ms = self._idle_ms()
        self._wakes_at = self._reactor.now_ms() + idle_ms
        await self._reactor.first(work, idle_ms)
        if not work.is_done:
            await self._settle_rest(is_idle=True)

    # Decided halves

    async def _settle_decided(self) -> bool:
        halves = self._next()
        if not halves:
            return False
        payloads = await self._payloads.of(self._number, halves)
        content, now_ms = Settlement(), self._reactor.clock.now_ms()
        for half in halves:
            self._busy[half.transaction_id] = half
            if half.transaction_id in payloads:
                content.end(half, payloads[half.transaction_id], now_ms)
            else:
                LOG.error("half %s: its record at offset %d is gone", half.transaction_id, half.offset)
        if not self._was_alone:
            self._take_along(content)
        if content.is_empty:
            return True
        try:
            await self._carry_out(content)
        except SettlementError as error:
            self._release(halves)
            if error.is_fatal:
                raise
            if not error.targets:
                LOG.warning("partition %d of __txn_half: %s", self._number, error)
                await self._reactor.sleep(_PAUSE_MS)
            elif len(halves) > 1:
                self._separate(halves, payloads, error)
            else:
                await self._put_aside(halves[0], payloads, error)
        else:
            for half in halves:
                _, topics = self._alone.pop(half.transaction_id, (half, frozenset[str]()))
                for topic in topics:
                    self._pauses.pop(topic, None)
        return True

    def _next(self) -> list[Half]:
        """Return the halves to settle next: as many as possible, in turn with one that is settled alone."""
        alone = self._next_alone()
        together = [] if alone is not None and not self._was_alone else self._next_together()
        self._was_alone = not together and alone is not None
        return together if together or alone is None else [alone]

    def _next_together(self) -> list[Half]:
        kept = {name: half for name, (half, _) in self._alone.items()}
        halves = []
        for half in chosen(self._image, self._busy | kept):
            failed = frozenset(self._topics(half.batches or ()) & self._pauses.keys())
            if failed:
                self._alone[half.transaction_id] = half, failed
            else:
                halves.append(half)
        return halves

    def _next_alone(self) -> Half | None:
        now = self._reactor.now_ms()
        for half, topics in self._alone.values():
            is_busy = self._busy.get(half.transaction_id) is half
            if not is_busy and all(self._pauses.get(topic, (0, 0))[0] <= now for topic in topics):
                return half
        return None

    def _separate(self, halves: Iterable[Half], payloads: Payload, error: SettlementError) -> None:
        """Settle the halves alone whose topics have failed."""
        for half in halves:
            failed = frozenset(self._topics(payloads.get(half.transaction_id, ())) & error.targets.keys())
            if failed:
                self._alone[half.transaction_id] = half, failed

    async def _put_aside(self, half: Half, payloads: Payload, error: SettlementError) -> None:
        """Park a half that its topic will never take; try the others again after a pause."""
        (topic, reason), *_ = error.targets.items()
        if is_permanent(reason):
            LOG.error("half %s is parked: %s", half.transaction_id, reason)
            content = Settlement()
            content.end(
                half, payloads[half.transaction_id], self._reactor.clock.now_ms(), reason=f"{topic}: {reason}"
            )
            self._busy[half.transaction_id] = half
            try:
                await self._carry_out(content)
            except SettlementError as failure:
                self._release([half])
                if failure.is_fatal:
                    raise
                reason = failure.reason
            else:
                self._alone.pop(half.transaction_id, None)
                return
        pause = min(2 * self._pauses.get(topic, (0, _PAUSE_MS // 2))[1], _LONGEST_PAUSE_MS)
        LOG.warning("topic %s: decided halves wait for %d ms: %s", topic, pause, reason)
        self._pauses[topic] = self._reactor.now_ms() + pause, pause
        self._alone[half.transaction_id] = half, frozenset([topic])

    # Other work

    async def _settle_rest(self, *, is_idle: bool) -> bool:
        """Resume parked halves, write decisions of the policy, and bury records, if nothing else does."""
        content = Settlement()
        resumed = [half for half in self._image.resuming.values() if not self._is_busy(half)]
        for half in resumed[:1]:
            await self._resume(content, half)
        if is_idle or not content.is_empty or self._decisions or len(self._image.strays) > _MOST_BURIED:
            self._take_along(content)
        if content.is_empty:
            return bool(resumed)
        try:
            await self._carry_out(content)
        except SettlementError as error:
            self._release(resumed[:1])
            if error.is_fatal:
                raise
            LOG.warning("partition %d of __txn_half: %s", self._number, error)
            await self._reactor.sleep(_PAUSE_MS)
        return True

    async def _resume(self, content: Settlement, half: Half) -> None:
        parked = await self._payloads.parked(self._number, half.transaction_id)
        self._busy[half.transaction_id] = half
        if parked is None:
            LOG.error("half %s cannot be resumed: __txn_check_max has no copy", half.transaction_id)
        else:
            content.resume(half, parked, random_below(_INT63), self._reactor.clock.now_ms())

    def _take_along(self, content: Settlement) -> None:
        """Add decisions of the policy, strays, and outcomes that have expired."""
        image = self._image
        decisions, self._decisions = self._decisions, []
        content.decide(decisions)
        strays = [each for each in image.strays if each not in self._buried][:_MOST_BURIED]
        before_ms = self._reactor.clock.now_ms() - self._retention_ms
        expired = [each for each in image.expired(before_ms, _MOST_BURIED) if each not in self._buried]
        content.clean(strays, expired)
        self._buried.update(strays, expired)

    # Shared parts

    async def _carry_out(self, content: Settlement) -> None:
        try:
            await self._mover.carry_out(content)
        except SettlementError:
            self._buried.clear()
            for decision in content.decisions:
                self._on_failed(decision.transaction_id)
            raise

    def _prune(self) -> None:
        """Forget settlements whose records were replayed."""
        image = self._image
        self._busy = {name: half for name, half in self._busy.items() if image.get(name) is half}
        self._alone = {name: each for name, each in self._alone.items() if image.get(name) is each[0]}
        self._buried = {each for each in self._buried if each in image.strays or each in image.ended}

    def _is_busy(self, half: Half) -> bool:
        return self._busy.get(half.transaction_id) is half

    def _release(self, halves: Iterable[Half]) -> None:
        for half in halves:
            self._busy.pop(half.transaction_id, None)

    def _topics(self, batches: Iterable[HalfBatch]) -> set[str]:
        return {each.topic for each in batches}

    def _idle_ms(self) -> int:
        """Return the time until work may be due without a new record."""
        now, image = self._reactor.now_ms(), self._image
        waits = [_LONGEST_MS]
        if any(each not in self._buried for each in image.strays):
            waits.append(_STRAYS_MS)
        if self._alone:
            waits += [end - now for end, _ in self._pauses.values()]
        oldest = next((end for name, end in image.ended.items() if name not in self._buried), None)
        if oldest is not None:
            waits.append(oldest.at_ms + self._retention_ms - self._reactor.clock.now_ms())
        return max(1, min(waits))

"""``Checker``: sends the checks of one partition of halves that are due."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from txnkafka.client.consumer.signal import Signal
from txnkafka.coordinator.half.check_schedule import Check, CheckSchedule, PolicyDecision
from txnkafka.coordinator.half.half_image import HalfState
from txnkafka.env import random_below
from txnkafka.errors import ClosedError, KafkaError
from txnkafka.wire.records.check_records import AskRecord
from txnkafka.wire.records.half_records import DecidedBy, DecideRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.checkback.resolver.parts import Parts
    from txnkafka.coordinator.half.half_image import Half, HalfImage
    from txnkafka.wire.records.half_records import HalfBatch

LOG = logging.getLogger("txnkafka.checkback")
_MOST: Final = 100  # checks of one turn
_LONGEST_MS: Final = 60_000
_INT63: Final = 1 << 63


class Checker:
    """``decide`` takes the decisions of the policy. ``sent`` counts the checks; ``unconfirmed`` has the
    number of the last check by id, until a listener has confirmed it."""

    def __init__(
        self, parts: Parts, image: HalfImage, number: int, decide: Callable[[DecideRecord], None]
    ) -> None:
        self.sent = 0
        self.unconfirmed: dict[str, int] = {}
        self._reactor = parts.transport.reactor
        self._image = image
        self._schedule = CheckSchedule(parts.rules)
        self._number = number
        self._asker = parts.asker
        self._payloads = parts.payloads
        self._decide = decide
        self._earlier = Signal()
        self._wakes_at = 0

    def update(self, half: Half, *, is_live: bool) -> None:
        """Take a half whose record was replayed; see ``CheckSchedule``."""
        reactor = self._reactor
        is_open = half.state is HalfState.PREPARED
        if not is_open or half.asks >= self.unconfirmed.get(half.transaction_id, 0):
            self.unconfirmed.pop(half.transaction_id, None)
        self._schedule.update(half, reactor.now_ms(), reactor.clock.now_ms(), is_live=is_live)

    def wake(self) -> None:
        """Wake ``turn`` if a step is due before it wakes up by itself."""
        if self._schedule.next < self._wakes_at:
            self._earlier.notify()

    async def turn(self) -> None:
        """Take the steps that are due, or wait for the next one."""
        schedule, earlier, now = self._schedule, self._earlier.next, self._reactor.now_ms()
        if schedule.next > now:
            self._wakes_at = min(schedule.next, now + _LONGEST_MS)
            await self._reactor.first(earlier, self._wakes_at - now)
            return
        self._wakes_at = 0
        steps = schedule.due(now, _MOST)
        for step in steps:
            if isinstance(step, PolicyDecision):
                self._decide(self._decision(step))
        await self._ask([step for step in steps if isinstance(step, Check)])

    def failed(self, transaction_id: str) -> None:
        """A decision of the policy was not written."""
        self._schedule.failed(transaction_id, self._reactor.now_ms())

    def _decision(self, step: PolicyDecision) -> DecideRecord:
        half = self._image.get(step.transaction_id)
        group = "" if half is None else half.producer_group
        LOG.warning("half %s of group %r: %s: %s", step.transaction_id, group, step.remark, step.outcome.name)
        return DecideRecord(
            step.transaction_id, random_below(_INT63), group, step.outcome, DecidedBy.POLICY,
            self._reactor.clock.now_ms(), remark=step.remark,
        )  # fmt: skip

    async def _ask(self, checks: list[Check]) -> None:
        halves = {each.transaction_id: self._image.get(each.transaction_id) for each in checks}
        known = [half for half in halves.values() if half is not None]
        errors: dict[str, KafkaError] = {}
        try:
            payloads = await self._payloads.of(self._number, known)
            asks = self._asks(checks, payloads)
            self._warn(asks)
            errors = await self._asker.send(asks)
        except ClosedError:
            raise
        except KafkaError as error:
            asks, errors = [], dict.fromkeys(halves, error)
        for ask in asks:
            half = self._image.get(ask.transaction_id)
            is_open = half is not None and half.state is HalfState.PREPARED and half.asks < ask.ask_no
            if ask.transaction_id not in errors:
                self.sent += 1
                if is_open:
                    self.unconfirmed[ask.transaction_id] = ask.ask_no
        for transaction_id, reason in errors.items():
            LOG.warning("half %s: the check was not sent: %s", transaction_id, reason)
            self.failed(transaction_id)

    def _asks(self, checks: Iterable[Check], payloads: dict[str, tuple[HalfBatch, ...]]) -> list[AskRecord]:
        """Return the records of checks, without halves that have been decided."""
        now_ms = self._reactor.clock.now_ms()
        asks = []
        for transaction_id, ask_no in checks:
            half = self._image.get(transaction_id)
            if half is not None and half.state is HalfState.PREPARED and transaction_id in payloads:
                ask = AskRecord(
                    half.producer_group, transaction_id, ask_no, now_ms, self._number, half.offset,
                    half.born_ms, payloads[transaction_id],
                )  # fmt: skip
                asks.append(ask)
        return asks

    def _warn(self, asks: Iterable[AskRecord]) -> None:
        repeated = Counter(
            ask.producer_group for ask in asks if self.unconfirmed.get(ask.transaction_id) == ask.ask_no
        )
        for group, count in repeated.items():
            LOG.warning(
                "no listener of the producer group %r received %d checks: is one of its processes running?",
                group, count,
            )  # fmt: skip

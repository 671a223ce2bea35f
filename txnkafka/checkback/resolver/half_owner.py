"""``HalfOwner``: the owner of one partition of ``__txn_half``: it replays the log, settles and checks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.checkback.resolver.checker import Checker
from txnkafka.checkback.resolver.mover import Mover, SettlementError
from txnkafka.checkback.resolver.settler import Settler
from txnkafka.coordinator.half.half_image import HalfImage, HalfState
from txnkafka.errors import ClosedError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from txnkafka.checkback.resolver.parts import Parts
    from txnkafka.client.promise import Task
    from txnkafka.wire.records.half_records import DecideRecord

LOG = logging.getLogger("txnkafka.checkback")
_PAUSE_MS: Final = 1_000  # after an error that may pass


class OwnerStatus(NamedTuple):
    """The numbers of halves in one partition. ``is_live``: its log was replayed up to its end. ``checks``
    were sent by this resolver; ``unconfirmed`` halves wait for a listener to receive their check."""

    partition: int
    is_live: bool
    prepared: int
    decided: int
    parked: int
    ended: int
    checks: int
    unconfirmed: int


class HalfOwner:
    """``end`` is the offset of the log's end at the start: the owner acts once everything before it was
    replayed. ``on_lost`` is called when another owner has fenced this one, or after a failure."""

    def __init__(self, parts: Parts, number: int, on_lost: Callable[[HalfOwner], None]) -> None:
        self.number = number
        self.image = HalfImage()
        self.is_live = False
        self.end = -1
        self._reactor = parts.transport.reactor
        self._on_lost = on_lost
        self._mover = Mover(parts.transport, parts.config, number)
        self._checker = Checker(parts, self.image, number, self._decide)
        self._settler = Settler(parts, self.image, number, self._mover, self._checker.failed)
        self._tasks: list[Task[None]] = []
        self._is_closing = False

    async def begin(self) -> None:
        """Fence the owner before, and finish its transaction. Raises the error of the coordinator."""
        await self._mover.begin()

    def replay(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Apply the next record of the log."""
        half = self.image.replay(offset, key, value)
        if half is not None and self.is_live:
            self._checker.update(half, is_live=True)

    def advance(self, position: int) -> None:
        """Act on the records up to ``position``."""
        if not self.is_live:
            if not 0 <= self.end <= position:
                return
            self._go_live()
        self._settler.wake()
        self._checker.wake()

    def _go_live(self) -> None:
        for half in self.image:
            self._checker.update(half, is_live=False)
        self.is_live = True
        if self.image.unreadable:
            LOG.warning(
                "partition %d of __txn_half: %d records cannot be decoded", self.number, self.image.unreadable
            )
        spawn = self._reactor.spawn
        self._tasks = [spawn(self._run(self._settler.turn)), spawn(self._run(self._checker.turn))]

    def status(self) -> OwnerStatus:
        """Return the numbers of halves."""
        states = [half.state for half in self.image]
        return OwnerStatus(
            self.number, self.is_live, states.count(HalfState.PREPARED), states.count(HalfState.DECIDED),
            states.count(HalfState.PARKED), len(self.image.ended), self._checker.sent,
            len(self._checker.unconfirmed),
        )  # fmt: skip

    async def close(self) -> None:
        """Stop. The next owner repeats a settlement that was not committed."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel(ClosedError("the owner of the partition is closed"))
        await self._mover.close()

    def _decide(self, decision: DecideRecord) -> None:
        self._settler.decide(decision)

    async def _run(self, turn: Callable[[], Awaitable[None]]) -> None:
        while not self._is_closing:
            try:
                await turn()
            except ClosedError:
                return
            except KafkaError as error:
                LOG.warning("partition %d of __txn_half: %s", self.number, error)
                await self._reactor.sleep(_PAUSE_MS)
            except SettlementError as error:
                LOG.warning("partition %d of __txn_half has another owner: %s", self.number, error)
                break
            except Exception:
                LOG.exception("partition %d of __txn_half: the owner failed", self.number)
                break
        if not self._is_closing:
            self._on_lost(self)

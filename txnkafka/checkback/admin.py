"""``CheckBackAdmin``: lists, decides, parks and resumes the halves of any producer group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from txnkafka.checkback.checkback_config import CheckBackConfig
from txnkafka.checkback.connecting import Place, connected
from txnkafka.checkback.errors import UnknownTransactionError
from txnkafka.checkback.half_content import messages_of
from txnkafka.checkback.half_core import OUTCOMES, Decision, HalfCore
from txnkafka.checkback.message import LocalTransactionState, Message
from txnkafka.client.client import Client
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.coordinator.half.half_image import Half, HalfState
from txnkafka.errors import ClosedError
from txnkafka.wire.records.half_records import DecidedBy, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.client.transport import Transport
    from txnkafka.wire.records.half_records import HalfBatch


@dataclass(frozen=True, kw_only=True)
class HalfMessage:
    """A half that is not visible and not rolled back. ``state`` is ``prepared``, ``decided`` (but not
    carried out yet) or ``parked``. Times are milliseconds since 1970, None if unknown. ``asks`` is the
    number of checks that listeners got, ``reason`` the reason for parking it. ``check_immunity_ms``, the age
    at the first check, and ``check_max`` are None if the resolver's settings apply. Only the result of
    ``describe_half_message`` has ``messages``."""

    transaction_id: str
    producer_group: str
    state: str
    partition: int
    offset: int | None
    born_timestamp: int | None
    asks: int
    last_asked_timestamp: int | None
    outcome: str | None
    decided_by: str | None
    reason: str | None
    messages: tuple[Message, ...] = ()
    check_immunity_ms: int | None = None
    check_max: int | None = None


class CheckBackAdmin(Client[ProducerConfig]):
    """An administrator of halves. ``broker`` is a ``Broker`` of this process, ``bootstrap.servers``, or
    settings by Kafka's names. Any thread may call it. Raises ValueError and TypeError for wrong settings."""

    kind: ClassVar[str] = "check-back admin client"
    config_class: ClassVar[type[Any]] = ProducerConfig

    def __init__(
        self,
        broker: Place,
        *,
        transport: Callable[[str], Transport] | None = None,
        **settings: Any,
    ) -> None:
        given, found = connected(broker, settings)
        super().__init__({"linger.ms": 0, **given}, transport=transport or found)
        self._core = HalfCore(self._transport, "", self.config)
        self._is_ready = False

    def list_half_messages(
        self, group: str | None = None, older_than: float | None = None
    ) -> list[HalfMessage]:
        """Return the halves that are not done, of one producer group or of all; only those that were sent, or
        parked, more than ``older_than`` seconds ago."""
        halves = self._run(self._core.halves())
        now_ms = self._reactor.clock.now_ms()
        found = [_shown(each, partition) for partition, each in halves]
        return [
            each
            for each in found
            if group in (None, each.producer_group)
            and (older_than is None or now_ms - _since(each) > older_than * 1000)
        ]

    def describe_half_message(self, transaction_id: str) -> HalfMessage:
        """Return one half that is not done, with its messages. Raises UnknownTransactionError."""
        found = [
            (partition, half)
            for partition, half in self._run(self._core.halves(transaction_id))
            if half.transaction_id == transaction_id
        ]
        if not found:
            raise UnknownTransactionError(f"the log has no half {transaction_id}, or it is done")
        ((partition, half),) = found
        batches = self._run(self._core.content(partition, half))
        return _shown(half, partition, batches)

    def decide(self, transaction_id: str, outcome: LocalTransactionState) -> None:
        """Commit or roll back a half, and wait until the decision is durable and the first one.

        Raises TransactionDecidedError, TransactionParkedError, UnknownTransactionError, and the broker's
        error."""
        if outcome not in OUTCOMES:
            raise ValueError(f"a decision is COMMIT_MESSAGE or ROLLBACK_MESSAGE, not {outcome!r}")
        self._run(self._core.decide_by_id(transaction_id, Decision(OUTCOMES[outcome], DecidedBy.ADMIN)))

    def park(self, transaction_id: str, reason: str | None = None) -> None:
        """End the checks of a half: the resolver keeps it in ``__txn_check_max``. Errors are as in
        ``decide``."""
        decision = Decision(Outcome.PARK, DecidedBy.ADMIN, remark=reason)
        self._run(self._core.decide_by_id(transaction_id, decision))

    def resume_check_half_message(self, transaction_id: str) -> None:
        """Take a parked half back: its checks begin again, with count 0.

        Raises TransactionDecidedError for a half that is decided, IllegalStateError for one that is not
        parked, UnknownTransactionError."""
        self._run(self._core.resume(transaction_id))

    def close(self) -> None:
        """Release the connections. A second call does nothing."""
        if not self._is_closed and hasattr(self, "_core"):
            try:
                self._reactor.run(self._core.close(None))
            except ClosedError:
                self._is_ready = False  # the broker of this process was closed before
        super().close()

    def _run(self, coroutine: Any) -> Any:
        try:
            if not self._is_ready:
                self._reactor.run(self._core.start(CheckBackConfig()))
                self._is_ready = True
        except BaseException:
            coroutine.close()
            raise
        return self._reactor.run(coroutine)


def _shown(half: Half, partition: int, batches: tuple[HalfBatch, ...] = ()) -> HalfMessage:
    is_parked = half.state is HalfState.PARKED
    return HalfMessage(
        transaction_id=half.transaction_id,
        producer_group=half.producer_group,
        state=half.state.value,
        partition=partition,
        offset=None if half.offset < 0 else half.offset,
        born_timestamp=None if half.born_ms < 0 else half.born_ms,
        asks=half.asks,
        last_asked_timestamp=None if half.last_ms < 0 or is_parked else half.last_ms,
        outcome=None if half.outcome is None else half.outcome.name.lower(),
        decided_by=None if half.by is None else half.by.name.lower(),
        reason=half.remark,
        messages=tuple(messages_of(batches)),
        check_immunity_ms=None if half.immunity_ms < 0 else half.immunity_ms,
        check_max=None if half.check_max < 0 else half.check_max,
    )


def _since(half: HalfMessage) -> int:
    return half.born_timestamp or half.last_asked_timestamp or 0

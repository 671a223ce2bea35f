"""``TransactionMQProducer``: sends messages that become visible if their local transaction was committed.

The API follows RocketMQ's producer of the same name, with Python's names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from txnkafka.checkback.check_listener import CheckListener, checked
from txnkafka.checkback.checkback_config import CheckBackConfig
from txnkafka.checkback.connecting import Place, connected
from txnkafka.checkback.errors import DelayNotSupportedError, ListenerMissingError
from txnkafka.checkback.half import Half
from txnkafka.checkback.half_core import OUTCOMES, STATES, Decision, HalfCore, SentHalf, immunity_ms
from txnkafka.checkback.half_topics import check_group
from txnkafka.checkback.message import (
    LocalTransactionState,
    Message,
    MessageExt,
    SendResult,
    SendStatus,
    TransactionSendResult,
)
from txnkafka.client.client import Client
from txnkafka.client.client_config import ClientConfig, read_config
from txnkafka.client.consumer import Consumer
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.config import config_defs
from txnkafka.embedded import Broker
from txnkafka.env import this_process
from txnkafka.errors import ClosedError, IllegalStateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

    from txnkafka.checkback.decision_table import DecisionTable
    from txnkafka.checkback.listener import TransactionListener

LOG = logging.getLogger("txnkafka.checkback")
_SESSION_MS: Final = 6_000  # the least that brokers allow by default
_HEARTBEAT_MS: Final = 1_000
_METADATA_MS: Final = 10_000
RESOLVER_SETTINGS: Final = frozenset(config_defs(CheckBackConfig)) - frozenset(config_defs(ClientConfig))


class TransactionMQProducer(Client[ProducerConfig]):
    """A producer of the producer group ``group``. Any thread may call it.

    ``broker`` is a ``Broker`` of this process, or the ``bootstrap.servers`` of a cluster where a resolver
    runs (``txnkafka serve --resolve``, ``txnkafka resolve``). A Broker gets a resolver in a thread from its
    first producer, with the settings of ``CheckBackConfig``, such as ``transaction_timeout=6000``; other
    ``settings`` are Kafka's of a producer.

    ``transaction_listener`` runs local transactions and answers checks, ``check_thread_pool_size`` at a time.
    ``decisions`` is the decision table of ``half``; without a listener it answers the checks.

    Raises ValueError and TypeError for wrong settings."""

    kind: ClassVar[str] = "check-back producer"
    config_class: ClassVar[type[Any]] = ProducerConfig

    def __init__(
        self,
        group: str,
        broker: Place,
        *,
        transaction_listener: TransactionListener | None = None,
        check_thread_pool_size: int = 4,
        decisions: DecisionTable | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(group, str) or not group:
            raise ValueError(f"a producer group is a name, not {group!r}")
        if check_thread_pool_size < 1:
            raise ValueError(f"check_thread_pool_size must be at least 1, not {check_thread_pool_size}")
        self.group = group
        self.decisions = decisions
        self.transaction_listener = transaction_listener
        self._broker = broker if isinstance(broker, Broker) else None
        self._threads = check_thread_pool_size
        given, transport = connected(broker, settings)
        self._resolver_settings = _taken(given, is_embedded=self._broker is not None)
        topics: CheckBackConfig = read_config(CheckBackConfig, self._resolver_settings)
        self._topics = topics
        super().__init__({"linger.ms": 0, **_dotted(given)}, transport=transport)
        if self.config.transactional_id is not None:
            self.close()
            raise ValueError("a check-back producer has no transactional.id: leave it out")
        self._factory = transport
        self._core = HalfCore(self._transport, group, self.config)
        self._checks: CheckListener | None = None
        self._is_started = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "started" if self._is_started else "not started"
        return f"<TransactionMQProducer group={self.group!r} {state}>"

    def start(self) -> Self:
        """Create the internal topics if they are missing, and receive checks from now on. A second call does
        nothing. Returns the producer."""
        if self._is_started:
            return self
        self._reactor.run(self._core.start(self._topics))
        if self._broker is not None:
            from txnkafka.checkback.resolver import resolver_of

            resolver_of(self._broker, self._resolver_settings)
        if self.transaction_listener is not None or self.decisions is not None:
            name = f"{self.config.client_id}-{this_process().number}"
            self._checks = CheckListener(self._consumer(), self._core, self._check, name, self._threads)
            self._checks.start()
        self._is_started = True
        return self

    def shutdown(self) -> None:
        """Wait for callbacks of checks that have begun, and for the decisions that were sent, and release the
        connections. A second call does nothing."""
        if self._is_closed:
            return
        if self._checks is not None:
            self._checks.stop()
        try:
            self._reactor.run(self._core.close(None))
        except ClosedError:
            LOG.debug("%r: the broker was closed before", self)
        super().close()

    def close(self) -> None:
        """The same as ``shutdown``."""
        if hasattr(self, "_core"):
            self.shutdown()
        else:
            super().close()

    def __enter__(self) -> Self:
        return self.start()

    # Messages

    def send(self, message: Message) -> SendResult:
        """Send a plain message, and wait until it is acknowledged. Raises what ``Producer.send`` raises, and
        DelayNotSupportedError."""
        self._check_started()
        if message.is_delayed:
            raise DelayNotSupportedError(f"the message to {message.topic} has a delay, which Kafka has not")
        place = self._reactor.run(self._core.send_plain(message))
        return SendResult(SendStatus.SEND_OK, place.topic, place.partition, place.offset)

    def send_message_in_transaction(self, message: Message, arg: Any = None) -> TransactionSendResult:
        """Send a half, run the listener's local transaction when it is durable, and send its decision without
        waiting for the broker; a decision that gets lost is asked for by a check.

        A message whose ``transaction_id`` was decided before returns that outcome, and no local transaction
        runs. Raises before the local transaction: ListenerMissingError; DelayNotSupportedError;
        HalfTooLargeError; the broker's error about the topic or the half; KafkaTimeoutError, and then a check
        may ask about the half. An exception of the local transaction is in the result."""
        listener = self.transaction_listener
        if listener is None:
            raise ListenerMissingError("the producer has no transaction_listener: give it one")
        self._check_started()
        sent = self._reactor.run(self._core.send_one(message))
        if sent.outcome is not None:
            return transaction_result(sent, STATES[sent.outcome])
        state, raised = self._execute(listener, message, arg, sent)
        if state in OUTCOMES:
            self._reactor.run(self._core.decide_soon(sent, Decision(OUTCOMES[state])))
        return transaction_result(sent, state, raised)

    def half(
        self,
        topic: str | None = None,
        value: Buffer | str | None = None,
        key: Buffer | str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
        transaction_id: str = "",
        check_immunity_time_in_seconds: float | None = None,
    ) -> Half:
        """Return a half for a ``with`` block, with one message or none; see ``Half``.

        Raises ListenerMissingError for a producer without a listener and without a decision table."""
        self._check_half()
        half = Half(self._core, self.decisions, transaction_id, immunity_ms(check_immunity_time_in_seconds))
        if topic is not None:
            half.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
        return half

    # Decisions

    def commit(self, transaction_id: str) -> None:
        """Commit a half of this group by its id, and wait until the decision is durable and the first one.

        Raises TransactionDecidedError, TransactionParkedError, WrongGroupError, UnknownTransactionError, and
        the broker's error."""
        self._decide(transaction_id, LocalTransactionState.COMMIT_MESSAGE)

    def rollback(self, transaction_id: str) -> None:
        """Roll back a half of this group by its id; errors are as in ``commit``."""
        self._decide(transaction_id, LocalTransactionState.ROLLBACK_MESSAGE)

    def wait_until_done(self, transaction_id: str, timeout: float = 30.0) -> LocalTransactionState:
        """Wait until the resolver has made a half visible, or rolled it back, and return the outcome.
        ``timeout`` is in seconds.

        Raises KafkaTimeoutError, TransactionParkedError, UnknownTransactionError."""
        self._check_started()
        return self._reactor.run(self._core.done(transaction_id, round(timeout * 1000)))

    def _decide(self, transaction_id: str, state: LocalTransactionState) -> None:
        self._check_started()
        self._reactor.run(self._core.decide_by_id(transaction_id, Decision(OUTCOMES[state])))

    # Shared parts

    def _execute(
        self, listener: TransactionListener, message: Message, arg: Any, sent: SentHalf
    ) -> tuple[LocalTransactionState, Exception | None]:
        transaction_id = sent.transaction_id
        given = MessageExt.of(
            message, transaction_id=transaction_id, producer_group=self.group, born_timestamp=sent.born_ms
        )
        try:
            answer = listener.execute_local_transaction(given, arg)
        except Exception as error:
            LOG.warning("half %s: the local transaction raised %r; a check will ask", transaction_id, error)
            return LocalTransactionState.UNKNOWN, error
        return checked(answer, f"half {transaction_id}: execute_local_transaction"), None

    def _check(self, message: MessageExt) -> LocalTransactionState | None:
        """Answer a check; called in the pool."""
        if self.transaction_listener is not None:
            return self.transaction_listener.check_local_transaction(message)
        assert self.decisions is not None
        assert message.transaction_id is not None
        return self.decisions.check(message.transaction_id)

    def _consumer(self) -> Consumer:
        """Return the consumer of checks. The classic protocol removes a member that was killed after six
        seconds; groups of KIP-848 do so after 45, unless the broker has other settings."""
        shared = {each: getattr(self.config, each.replace(".", "_")) for each in config_defs(ClientConfig)}
        settings = {
            **shared, "group.id": check_group(self.group), "session.timeout.ms": _SESSION_MS,
            "metadata.max.age.ms": min(self.config.metadata_max_age_ms, _METADATA_MS),
            "heartbeat.interval.ms": _HEARTBEAT_MS, "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }  # fmt: skip
        return Consumer(settings, transport=self._factory)

    def _check_half(self) -> None:
        if self.transaction_listener is None and self.decisions is None:
            raise ListenerMissingError(
                "nothing could answer a check: give the producer decisions=DecisionTable(...), or a "
                "transaction_listener"
            )
        self._check_started()

    def _check_started(self) -> None:
        if not self._is_started:
            raise IllegalStateError(f"{self!r}: call start, or use it in a with block")


def transaction_result(
    sent: SentHalf, state: LocalTransactionState, raised: Exception | None = None
) -> TransactionSendResult:
    """Return the result of a half after its local transaction."""
    return TransactionSendResult(
        send_status=SendStatus.SEND_OK, msg_id=sent.transaction_id, transaction_id=sent.transaction_id,
        queue_offset=sent.offset, local_transaction_state=state, local_exception=raised,
    )  # fmt: skip


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _taken(given: dict[str, Any], *, is_embedded: bool) -> dict[str, Any]:
    """Remove and return the settings of a resolver. Raises ValueError for them beside an address."""
    names = [name for name in given if name.replace("_", ".") in RESOLVER_SETTINGS]
    if names and not is_embedded:
        raise ValueError(f"{', '.join(names)}: a setting of the resolver, see 'txnkafka resolve --help'")
    return {name: given.pop(name) for name in names}

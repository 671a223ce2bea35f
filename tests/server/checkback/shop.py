"""A broker with producers of check-back messages, in this process or over a socket, for tests."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from txnkafka import Broker, ConsumerRecord, TopicPartition
from txnkafka.checkback import (
    CheckBackAdmin,
    LocalTransactionState,
    Message,
    MessageExt,
    TransactionListener,
    TransactionMQProducer,
)
from txnkafka.checkback.half_topics import HALF_TOPIC
from txnkafka.checkback.resolver import Resolver
from txnkafka.testing.settings import SETTINGS

T = TypeVar("T")
COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE
UNKNOWN = LocalTransactionState.UNKNOWN
SECONDS: Final = 60  # after which a test fails; none takes so long
RULES: Final = {"transaction_timeout": 300, "transaction_check_interval": 300, "transaction_check_max": 3}


class Asked(NamedTuple):
    """A check as a listener got it."""

    transaction_id: str
    check_times: int
    at_ms: int


class Answers(TransactionListener):
    """Answers ``execute`` with the argument of the send, and checks by ``check``; both may be functions of
    the message, or exceptions to raise."""

    def __init__(self, check: Any = UNKNOWN) -> None:
        self.check = check
        self.executed: list[MessageExt] = []
        self._lock = Lock()
        self._asked: list[Asked] = []
        self.messages: list[MessageExt] = []

    def execute_local_transaction(self, msg: MessageExt, arg: Any) -> Any:
        self.executed.append(msg)
        return _answer(arg, msg)

    def check_local_transaction(self, msg: MessageExt) -> Any:
        assert msg.transaction_id is not None
        with self._lock:
            self._asked.append(Asked(msg.transaction_id, msg.check_times, round(time.time() * 1000)))
            self.messages.append(msg)
        return _answer(self.check, msg)

    def asked(self, transaction_id: str | None = None) -> list[int]:
        """The numbers of the checks of one half, or of all."""
        with self._lock:
            return [each.check_times for each in self._asked if transaction_id in (None, each.transaction_id)]

    @property
    def checks(self) -> list[Asked]:
        with self._lock:
            return list(self._asked)


def _answer(answer: Any, msg: MessageExt) -> Any:
    if isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException)):
        raise answer
    return answer(msg) if callable(answer) else answer


class Shop:
    """``place`` is the argument of a producer: the broker, or an address that it serves."""

    def __init__(self, broker: Broker, place: Broker | str, rules: dict[str, Any]) -> None:
        self.broker = broker
        self.place = place
        self.rules = rules if isinstance(place, Broker) else {}
        self._closing = contextlib.ExitStack()
        self.admin = self._closing.enter_context(CheckBackAdmin(place))

    def producer(
        self, group: str = "shop", listener: TransactionListener | None = None, **settings: Any
    ) -> TransactionMQProducer:
        """A producer that has been started, and is shut down at the end."""
        return self._closing.enter_context(
            TransactionMQProducer(group, self.place, transaction_listener=listener, **self.rules, **settings)
        )

    def answering(
        self, check: Any = UNKNOWN, group: str = "shop", **settings: Any
    ) -> tuple[TransactionMQProducer, Answers]:
        """A producer with a listener that answers checks."""
        listener = Answers(check)
        return self.producer(group, listener, **settings), listener

    def records(self, topic: str = "orders", isolation: str = "read_committed") -> list[ConsumerRecord]:
        """The records that a consumer of this isolation level can read now, by partition."""
        with self.broker.consumer(topic, isolation_level=isolation) as consumer:
            ends = consumer.end_offsets(consumer.assignment())
            found: list[ConsumerRecord] = []
            while any(consumer.position(place) < end for place, end in ends.items()):
                found += consumer.poll(1_000)
        return sorted(found, key=lambda each: (each.partition, each.offset))

    def values(self, topic: str = "orders", isolation: str = "read_committed") -> list[bytes]:
        return [each.value for each in self.records(topic, isolation)]

    def end_offsets(self, topic: str, isolation: str) -> dict[TopicPartition, int]:
        with self.broker.consumer(topic, isolation_level=isolation) as consumer:
            return consumer.end_offsets(consumer.assignment())

    def parked(self) -> list[ConsumerRecord]:
        """The copies in ``__txn_check_max``: the last record of each key, unless it is a tombstone."""
        last = {each.key: each for each in self.records("__txn_check_max")}
        return [each for each in last.values() if each.value is not None]

    def state_of(self, transaction_id: str) -> str | None:
        """The state of a half as an administrator sees it; None once it is done."""
        found = {each.transaction_id: each.state for each in self.admin.list_half_messages()}
        return found.get(transaction_id)

    def close(self) -> None:
        self._closing.close()


def until(found: Callable[[], T], what: str, seconds: float = SECONDS) -> T:
    """Wait until a condition is true, and return it."""
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return result


def rules(**settings: Any) -> Any:
    """Give a test other settings of the resolver."""

    def with_rules(function: Any) -> Any:
        function.rules = settings
        return function

    return with_rules


def message(value: bytes = b"a book", topic: str = "orders", **options: Any) -> Message:
    return Message(topic, value, **options)


@contextlib.contextmanager
def opened(kind: str, broker_settings: Mapping[str, Any] = SETTINGS, **rules: Any) -> Iterator[Shop]:
    """A shop ``embedded`` or over a ``socket``, with a topic of one partition, and one of three."""
    chosen = {**RULES, **rules}
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker.in_memory(**broker_settings))
        with broker.admin() as admin:
            admin.create_topic("orders", partitions=1)
            admin.create_topic("bills", partitions=3)
            count = chosen.get("half_partitions", 8)
            admin.create_topic(HALF_TOPIC, partitions=count, config={"cleanup.policy": "compact"})
        place: Broker | str = broker
        if kind == "socket":
            place = broker.serve("127.0.0.1:0")
            stack.enter_context(Resolver({"bootstrap.servers": place, **chosen}))
        shop = Shop(broker, place, chosen)
        stack.callback(shop.close)
        yield shop

"""The rows of the failure matrix that need a broker which is killed, full, or whose clock is set: an order is
in the database if, and only if, exactly one record about it is visible.

``test_failure_rows.py`` names the tests of all rows.
"""

from __future__ import annotations

import contextlib
import errno
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.server.answer_eater import AnswerEater
from tests.server.checkback.dying_service import OrderListener
from tests.server.checkback.order_database import OrderDatabase
from tests.server.checkback.shop import COMMIT, ROLLBACK, RULES, UNKNOWN, Answers, Shop, opened, until
from tests.server.checkback.test_broker_kills import undecided, values
from tests.server.checkback.test_decision_matrix import settled, started
from tests.server.serving import Serving, free_ports
from txnkafka import Admin, Broker, KafkaError
from txnkafka.checkback import (
    Message,
    MessageExt,
    TransactionDecidedError,
    TransactionMQProducer,
)
from txnkafka.checkback.half_topics import HALF_TOPIC, PARKED_TOPIC
from txnkafka.checkback.resolver import Resolver
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.settings import SETTINGS
from txnkafka.wire.records.half_records import HalfRecord, decode_half_log, half_record_of

HOUR_MS: Final = 3_600_000
MANY_CHECKS: Final[dict[str, Any]] = {"transaction_check_max": 1000}
SOON: Final[dict[str, Any]] = {"reconnect_backoff_max_ms": 100}


@pytest.fixture
def database(tmp_path: Path) -> OrderDatabase:
    made = OrderDatabase("sqlite", database=str(tmp_path / "service.db"))
    made.create()
    return made


@pytest.fixture
def shop() -> Iterator[Shop]:
    with opened("socket", **MANY_CHECKS) as made:
        yield made


def ordered(database: OrderDatabase, transaction_id: str) -> None:
    """Commit an order in the database."""
    with contextlib.closing(database.connect()) as connection:
        database.insert(connection, transaction_id)
        connection.commit()


def halves_in_the_log(shop: Shop) -> list[str]:
    """The ids of all HALF records, also of halves that are done."""
    found = [half_record_of(decode_half_log(each.key, each.value)) for each in shop.records(HALF_TOPIC)]
    return [each.transaction_id for each in found if isinstance(each, HalfRecord)]


def test_row_01_service_dies_and_its_half_never_reached_the_broker(
    shop: Shop, database: OrderDatabase
) -> None:
    with (
        AnswerEater(str(shop.place)) as eater,
        contextlib.closing(Shop(shop.broker, eater.address, {})) as through,
    ):
        eater.arm_request()
        with started(through, database, "1") as service:
            assert eater.eaten.wait(60)
            service.kill()
            assert service.wait(60) == -signal.SIGKILL
    assert halves_in_the_log(shop) == []
    assert settled(shop, database) == []
    assert database.decisions.check("1-0") is ROLLBACK


def test_row_02_acknowledgement_of_the_half_is_lost(shop: Shop, database: OrderDatabase) -> None:
    """The client repeats the request: its sequence number shows that the half is in the log."""
    executed: list[str] = []

    def execute(message: MessageExt) -> Any:
        executed.append(str(message.transaction_id))
        ordered(database, str(message.transaction_id))
        return COMMIT

    with AnswerEater(str(shop.place)) as eater:

        def pass_again() -> None:
            assert eater.eaten.wait(60)
            eater.let_pass()

        passing = threading.Thread(target=pass_again)
        passing.start()
        with TransactionMQProducer("shop", eater.address, transaction_listener=Answers()) as producer:
            eater.arm()
            producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"), execute)
            assert eater.eaten.is_set()
            assert settled(shop, database) == ["a"]
        passing.join(60)
    assert (executed, halves_in_the_log(shop)) == (["a"], ["a"])


def test_row_10_commits_race_with_checks_that_roll_back(shop: Shop, database: OrderDatabase) -> None:
    """The listener lies: the local transaction has committed. The first decision counts for both, and the
    service takes an order back that lost."""
    producer, listener = shop.answering(ROLLBACK)

    def send(transaction_id: str, immunity: float, until_decided: Callable[[], object]) -> bool:
        half = producer.half(
            "orders", transaction_id, transaction_id=transaction_id, check_immunity_time_in_seconds=immunity
        ).prepare()
        ordered(database, transaction_id)
        until_decided()
        try:
            half.commit()
        except TransactionDecidedError:
            with contextlib.closing(database.connect()) as connection:
                connection.execute("DELETE FROM orders WHERE id = ?", (transaction_id,))
                connection.commit()
            return False
        return True

    won = {f"race {number}": send(f"race {number}", number / 100, int) for number in range(20)}
    won["early"] = send("early", 600, int)
    won["late"] = send("late", 0, lambda: until(lambda: shop.state_of("late") is None, "rolled back"))
    assert (won["early"], won["late"]) == (True, False)
    assert settled(shop, database) == sorted(name for name, is_first in won.items() if is_first)
    assert "early" not in {each.transaction_id for each in listener.checks}


class Node:
    """A broker in its own process, always at the same address, with two partitions of halves; a resolver in
    this process."""

    def __init__(self, data: Path) -> None:
        (self._port,) = free_ports(1)
        self.address = f"127.0.0.1:{self._port}"
        self.data = data
        self._closing = contextlib.ExitStack()
        self.start()
        with Admin(bootstrap_servers=self.address) as admin:
            admin.create_topic("orders", partitions=1)
            for topic in (HALF_TOPIC, PARKED_TOPIC):
                admin.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})

    def start(self) -> None:
        """Start the broker, after the end of the one before."""
        self.broker = self._closing.enter_context(Serving(self.data, port=self._port))

    def resolve(self) -> None:
        """Start the resolver."""
        rules = {**RULES, **MANY_CHECKS}
        self._closing.enter_context(Resolver({"bootstrap.servers": self.address, **SOON, **rules}))

    def orders(self, database: OrderDatabase) -> list[str]:
        """Wait until no half is undecided, compare records and orders, and return the orders."""
        until(lambda: not undecided(self.address), "no half is left")
        orders = database.orders()
        assert sorted(value.decode() for value in values(self.address)) == orders
        return orders

    def tear_logs(self) -> None:
        """Append the beginning of a batch to the logs, as a crash during an append leaves it."""
        torn = 0
        for log in (*self.data.glob(f"{HALF_TOPIC}-*/*.log"), *self.data.glob("orders-*/*.log")):
            content = log.read_bytes()
            if content:
                log.write_bytes(content + content[:40])
                torn += 1
        assert torn

    def close(self) -> None:
        self._closing.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with contextlib.closing(Node(tmp_path / "data")) as made:
        yield made


@pytest.mark.process
@pytest.mark.parametrize(
    "place",
    [
        pytest.param("in the transaction", marks=pytest.mark.slow),
        "before the decision",
        pytest.param("after the decision", marks=pytest.mark.slow),
    ],
)
def test_row_16_broker_is_killed_and_its_logs_have_torn_tails(
    node: Node, database: OrderDatabase, place: str
) -> None:
    """The half, and a decision that was acknowledged, survive."""
    node.resolve()

    def kill(at: str) -> None:
        if at == place:
            node.broker.kill()
            node.tear_logs()
            node.start()

    listener = OrderListener(database, None)
    with TransactionMQProducer("shop", node.address, transaction_listener=listener, **SOON) as producer:
        first = producer.half("orders", "before", transaction_id="before").prepare()
        ordered(database, "before")
        first.commit()
        half = producer.half("orders", "a", transaction_id="a").prepare()
        with contextlib.closing(database.connect()) as connection:
            database.insert(connection, "a")
            kill("in the transaction")
            connection.commit()
        kill("before the decision")
        half.commit()
        kill("after the decision")
        producer.half("orders", "never", transaction_id="never").prepare()
        assert node.orders(database) == ["a", "before"]
        assert half.wait_until_done() is COMMIT


def test_row_19_checks_that_raise_hang_or_return_none(shop: Shop, database: OrderDatabase) -> None:
    """They count as unknown, and the checks of other halves are answered meanwhile."""
    names = ("hangs", "none", "raises", "truthful")
    release = threading.Event()

    def check(message: MessageExt) -> Any:
        name = str(message.transaction_id)
        if name == "raises" and message.check_times <= 2:
            raise RuntimeError("no connection to the database")
        if name == "none" and message.check_times <= 2:
            return None
        if name == "hangs" and message.check_times == 1:
            release.wait(120)
        return database.decisions.check(name)

    producer, listener = shop.answering(check, check_thread_pool_size=2)
    for name in names:
        message = Message("orders", name, transaction_id=name)
        producer.send_message_in_transaction(message, lambda sent: ordered(database, sent.transaction_id))
    until(lambda: len(shop.values()) == len(names), "all are visible, while one thread hangs")
    assert not release.is_set()
    release.set()
    assert settled(shop, database) == sorted(names)
    assert listener.asked("raises")[:3] == listener.asked("none")[:3] == [1, 2, 3]
    assert listener.asked("hangs")[:2] == [1, 2]


@dataclass(slots=True)
class FullDisk(FaultPlan):
    """While ``topic`` is set, there is no room for its records."""

    topic: str | None = None
    refused: int = 0

    def check(self, call: str, path: str) -> None:
        if self.topic is not None and call == "write" and f"/{self.topic}-" in path:
            self.refused += 1
            raise OSError(errno.ENOSPC, "no space left on device (planned)", path)


class FullShop(NamedTuple):
    """A shop without a resolver; ``resolve`` starts it."""

    shop: Shop
    disk: FullDisk
    resolve: Callable[[], None]

    def producer(self, database: OrderDatabase) -> TransactionMQProducer:
        times: dict[str, Any] = {"delivery_timeout_ms": 3_000, "request_timeout_ms": 1_000}
        return self.shop.producer(listener=OrderListener(database, None), **times)


@pytest.fixture
def full_shop() -> Iterator[FullShop]:
    disk = FullDisk()
    files = FaultyFiles(LocalDataFiles(), disk)
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker._in_memory(files, SystemClock(), "fsync", SETTINGS))
        with broker.admin() as admin:
            admin.create_topic("orders", partitions=1)
            for topic in (HALF_TOPIC, PARKED_TOPIC):
                admin.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
        address = broker.serve("127.0.0.1:0")
        shop = Shop(broker, address, {})
        stack.callback(shop.close)

        def resolve() -> None:
            rules = {**RULES, **MANY_CHECKS}
            stack.enter_context(Resolver({"bootstrap.servers": address, **SOON, **rules}))

        yield FullShop(shop, disk, resolve)
        disk.topic = None


def test_row_25_disk_is_full_at_the_half(full_shop: FullShop, database: OrderDatabase) -> None:
    """An error before the local transaction, which does not run."""
    shop, disk, resolve = full_shop
    resolve()
    producer = full_shop.producer(database)
    disk.topic = HALF_TOPIC
    with pytest.raises(KafkaError):
        producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"))
    assert (disk.refused > 0, database.orders()) == (True, [])
    disk.topic = None
    producer.send_message_in_transaction(Message("orders", "b", transaction_id="b"))
    assert settled(shop, database) == ["b"]


def test_row_25_disk_is_full_at_the_decision(full_shop: FullShop, database: OrderDatabase) -> None:
    """The decision fails, and a check finds the order."""
    shop, disk, resolve = full_shop
    producer = full_shop.producer(database)
    half = producer.half("orders", "a", transaction_id="a").prepare()
    ordered(database, "a")
    disk.topic = HALF_TOPIC
    with pytest.raises(KafkaError):
        half.commit()
    assert (disk.refused > 0, shop.state_of("a")) == (True, "prepared")
    disk.topic = None
    resolve()
    assert settled(shop, database) == ["a"]


def test_row_25_disk_is_full_at_the_move(full_shop: FullShop, database: OrderDatabase) -> None:
    """The resolver repeats the move until there is room."""
    shop, disk, resolve = full_shop
    half = full_shop.producer(database).half("orders", "a", transaction_id="a").prepare()
    ordered(database, "a")
    half.commit()
    disk.topic = "orders"
    resolve()
    until(lambda: disk.refused >= 2, "a move has failed, and another one")
    assert (shop.values(), shop.state_of("a")) == ([], "decided")
    disk.topic = None
    assert settled(shop, database) == ["a"]
    assert half.wait_until_done() is COMMIT


class JumpingClock(SystemClock):
    """A wall clock that can be set; the time that runs is not affected, as with a real clock."""

    def __init__(self) -> None:
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_row_27_clock_jumps(database: OrderDatabase, jump_ms: int) -> None:
    clock = JumpingClock()
    listener = Answers(UNKNOWN)
    with (
        Broker._in_memory(LocalDataFiles(), clock, "page_cache", SETTINGS) as broker,
        TransactionMQProducer(
            "shop", broker, transaction_listener=listener, **{**RULES, **MANY_CHECKS}
        ) as producer,
    ):
        broker.admin().create_topic("orders", partitions=1)
        shop = Shop(broker, broker, {})

        def sent(transaction_id: str, *, is_committed: bool) -> None:
            producer.half("orders", transaction_id, transaction_id=transaction_id).prepare()
            if is_committed:
                ordered(database, transaction_id)

        sent("before", is_committed=True)
        sent("before, rolled back", is_committed=False)
        until(lambda: len(listener.asked("before")) >= 2, "checks before the jump")
        clock.set_by_ms = jump_ms
        sent("after", is_committed=True)
        until(lambda: len(listener.asked("after")) >= 2, "checks of a later half")
        number = len(listener.asked("before"))
        until(lambda: len(listener.asked("before")) >= number + 2, "checks after the jump")
        listener.check = lambda message: database.decisions.check(message.transaction_id)
        assert settled(shop, database) == ["after", "before"]
        for name in ("before", "before, rolled back", "after"):
            asked = listener.asked(name)
            assert asked == list(range(1, len(asked) + 1)), "each check once"
        shop.close()

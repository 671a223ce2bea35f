"""Scripts of ``rocketmq_cases.py`` against ``txnkafka serve``, with a resolver beside it."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tests.conformance.rocketmq import FAST
from tests.conformance.rocketmq_cases import (
    CASES,
    CRASH,
    LATE_MARKS,
    ORDINARY,
    RESUMED,
    Case,
    Result,
    commands,
)
from tests.conformance.test_check_back import Cluster
from tests.server.checkback.shop import COMMIT, ROLLBACK, UNKNOWN, Shop, until
from tests.server.serving import Serving, free_ports
from txnkafka import Admin
from txnkafka.checkback import (
    Message,
    MessageExt,
    TransactionDecidedError,
    TransactionListener,
    TransactionMQProducer,
    TransactionParkedError,
)
from txnkafka.checkback.resolver import Resolver

__all__ = ["play_on_txnkafka"]

SECONDS: Final = 120  # for each wait
RULES: Final = {
    "transaction_timeout": FAST["transactionTimeOut"],
    "transaction_check_interval": FAST["transactionCheckInterval"],
    "transaction_check_max": FAST["transactionCheckMax"],
}
RECONNECT: Final = {"reconnect_backoff_max_ms": 100}
STATES: Final[dict[str, Any]] = {"commit": COMMIT, "rollback": ROLLBACK, "unknown": UNKNOWN, "null": None}


def play_on_txnkafka(directory: Path) -> Mapping[str, Result]:
    """The result of each script, by the name of its case."""
    with _Server(directory) as server, ThreadPoolExecutor(len(CASES)) as threads:

        def play(case: Case) -> Result:
            return _Script(case.name, server).play(case.script)

        at_once = [*ORDINARY, *LATE_MARKS]
        results = dict(zip([case.name for case in at_once], threads.map(play, at_once), strict=True))
        return results | {case.name: play(case) for case in (CRASH, RESUMED)}


class _Server:
    """A broker that can be killed, its resolver, and a group whose messages stay undecided."""

    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        self._data, self._port = directory / "data", port
        self.address = f"127.0.0.1:{port}"
        self._watched = Lock()

    def __enter__(self) -> _Server:
        with contextlib.ExitStack() as stack:
            self._broker = self._started()
            stack.callback(lambda: self._broker.close())
            stack.enter_context(Resolver({"bootstrap.servers": self.address, **RECONNECT, **RULES}))
            cluster = Cluster(self.address)
            self.shop = Shop(cluster, self.address, RULES)  # type: ignore[arg-type]
            stack.callback(self.shop.close)
            self._watch = _Script("watch", self)
            self._watch.open()
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _started(self) -> Serving:
        return Serving(self._data, "--config", "group.initial.rebalance.delay.ms=0", port=self._port)

    def crash(self) -> None:
        """Kill the broker, and start it again."""
        self._broker.kill()
        self._broker.close()
        self._broker = self._started()

    def rounds(self, count: int) -> None:
        """Wait for checks of a new message."""
        with self._watched:
            value = str(time.monotonic_ns())
            self._watch.half(value, "unknown")
        self._watch.asked(value, count)


class _Script(TransactionListener):
    """The producer of a script, its listener, and the checks and refused decisions until now."""

    def __init__(self, name: str, server: _Server) -> None:
        self._name, self._server, self._shop = name, server, server.shop
        self._answers: dict[str, list[str]] = {}
        self._asked = Counter[str]()
        self._lock = Lock()
        self._ids: dict[str, str] = {}
        self._refused = ""
        self._producer: TransactionMQProducer
        with Admin(bootstrap_servers=server.address) as admin:
            admin.create_topic(name, partitions=1)

    def play(self, script: str) -> Result:
        self.open()
        for verb, *words in commands(script):
            getattr(self, verb)(*words)
        states = {value: self._shop.state_of(sent) for value, sent in self._ids.items()}
        parked = [value for value, state in states.items() if state == "parked"]
        return Result(self._values(), parked, dict(self._asked), self._refused)

    def _values(self) -> list[str]:
        return [value.decode() for value in self._shop.values(self._name)]

    # Commands

    def open(self, *_: str) -> None:
        self._producer = self._shop.producer(self._name, self, **RECONNECT)

    def close(self) -> None:
        self._producer.shutdown()

    def checks(self, value: str, answers: str) -> None:
        self._answers[value] = answers.split(",")

    def half(self, value: str, outcome: str, immunity: str = "") -> None:
        immune = float(immunity) if immunity else None
        message = Message(self._name, value.encode(), check_immunity_time_in_seconds=immune)
        result = self._producer.send_message_in_transaction(message, outcome)
        self._ids[value] = str(result.transaction_id)

    def plain(self, value: str) -> None:
        self._producer.send(Message(self._name, value.encode()))

    def decide(self, value: str, outcome: str) -> None:
        decide = self._producer.commit if outcome == "commit" else self._producer.rollback
        try:
            decide(self._ids[value])
        except (TransactionDecidedError, TransactionParkedError) as error:
            self._refused = type(error).__name__

    def resume(self, value: str) -> None:
        self._shop.admin.resume_check_half_message(self._ids[value])

    def asked(self, value: str, count: str | int) -> None:
        until(lambda: self._asked[value] >= int(count), f"{self._name}: {count} checks of {value}", SECONDS)

    def visible(self, count: str) -> None:
        until(lambda: len(self._values()) >= int(count), f"{self._name}: {count} values", SECONDS)

    def parked(self, value: str) -> None:
        sent = self._ids[value]
        until(lambda: self._shop.state_of(sent) == "parked", f"{self._name}: {value} is parked", SECONDS)

    def rounds(self, count: str) -> None:
        self._server.rounds(int(count))

    def crash(self) -> None:
        self._server.crash()

    # The listener

    def execute_local_transaction(self, msg: MessageExt, arg: Any) -> Any:
        outcome, _, slow = arg.partition("-after-check-")
        value, sent = _value(msg), str(msg.transaction_id)
        if slow:
            self.asked(value, slow)
        if slow and self._answers.get(value, ["unknown"])[0] != "unknown":
            until(lambda: self._shop.state_of(sent) != "prepared", f"{self._name}: the answer", SECONDS)
        return _state(outcome)

    def check_local_transaction(self, msg: MessageExt) -> Any:
        value = _value(msg)
        with self._lock:
            self._asked[value] += 1
            given = self._answers.get(value, ["unknown"])
            answer = given[min(self._asked[value], len(given)) - 1]
        return _state(answer)


def _value(msg: MessageExt) -> str:
    assert isinstance(msg.body, bytes)
    return msg.body.decode()


def _state(word: str) -> Any:
    if word == "raise":
        raise RuntimeError("as the script wants")
    return STATES[word]

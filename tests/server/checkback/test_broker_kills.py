"""Lines 46 to 48 of the conformance list: a broker, and a producer, that are killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.server.checkback.shop import COMMIT, RULES, UNKNOWN, Answers, until
from tests.server.serving import Serving, free_ports
from txnkafka import Admin, Consumer
from txnkafka.checkback import CheckBackAdmin, DecisionTable, Message, TransactionMQProducer
from txnkafka.checkback.resolver import Resolver


def values(address: str) -> list[bytes]:
    with Consumer({"bootstrap.servers": address, "auto.offset.reset": "earliest"}, topics="orders") as reader:
        (end,) = reader.end_offsets(reader.assignment()).values()
        (place,) = reader.assignment()
        found: list[Any] = []
        while reader.position(place) < end:
            found += reader.poll(1_000)
    return [each.value for each in found]


def undecided(address: str) -> list[str]:
    with CheckBackAdmin(address) as admin:
        return [each.transaction_id for each in admin.list_half_messages()]


def test_47_and_48_after_a_kill_of_the_broker_only_undecided_messages_are_checked(tmp_path: Path) -> None:
    """The broker is killed right after the decisions: RocketMQ has not stored which ones are finished."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    listener = Answers()
    settings = {"reconnect_backoff_max_ms": 100}
    rules = {**RULES, "transaction_timeout": 3_000, "transaction_check_max": 1_000}
    broker = Serving(tmp_path / "data", port=port)
    with Resolver({"bootstrap.servers": address, **settings, **rules}):
        try:
            with Admin(bootstrap_servers=address) as admin:
                admin.create_topic("orders", partitions=1)
            with TransactionMQProducer(
                "shop", address, transaction_listener=listener, **settings
            ) as producer:
                unknown = producer.send_message_in_transaction(Message("orders", b"?"), UNKNOWN)
                until(lambda: len(listener.asked()) >= 2, "two checks")
                halves = [producer.half("orders", b"%d" % number).prepare() for number in range(7)]
                for number, half in enumerate(halves):
                    (half.commit if number < 5 else half.rollback)()
                broker.kill()
                before = len(listener.asked())
                broker.close()
                broker = Serving(tmp_path / "data", port=port)
                until(lambda: len(listener.asked()) > before + 12, "checks after the first time of all")
                until(lambda: undecided(address) == [unknown.transaction_id], "the others are done")
                listener.check = COMMIT
                assert producer.wait_until_done(unknown.transaction_id) is COMMIT
            found = values(address)
        finally:
            broker.close()
    assert sorted(found) == [b"0", b"1", b"2", b"3", b"4", b"?"]
    assert {each.transaction_id for each in listener.checks} == {unknown.transaction_id}
    numbers = listener.asked()
    assert numbers == sorted(numbers)
    assert len(numbers) - len(set(numbers)) <= 1, "one round may be repeated"


def test_serve_resolves_and_continues_after_a_kill(tmp_path: Path) -> None:
    """With the default times: a message has its own immunity."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    listener = Answers(COMMIT)
    broker = Serving(tmp_path / "data", "--resolve", port=port)
    try:
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("orders", partitions=1)
        with TransactionMQProducer("shop", address, transaction_listener=listener) as producer:
            first = producer.send_message_in_transaction(Message("orders", b"1"), COMMIT)
            assert producer.wait_until_done(first.transaction_id) is COMMIT
            half = producer.half("orders", b"2", check_immunity_time_in_seconds=600).prepare()
            asked = producer.half("orders", b"3", check_immunity_time_in_seconds=0.3).prepare()
            assert asked.wait_until_done() is COMMIT
            broker.kill()
            broker.close()
            broker = Serving(tmp_path / "data", "--resolve", port=port)
            half.commit()
            assert half.wait_until_done() is COMMIT
        assert values(address) == [b"1", b"3", b"2"]
        assert undecided(address) == []
    finally:
        broker.close()
    assert [each.transaction_id for each in listener.checks] == [asked.transaction_id]


SERVICE = """
    import os, sqlite3, sys
    from txnkafka.checkback import DecisionTable, TransactionMQProducer
    address, path = sys.argv[1:]
    decisions = DecisionTable(lambda: sqlite3.connect(path))
    decisions.create()
    with TransactionMQProducer("shop", address, decisions=decisions) as producer:
        db = sqlite3.connect(path)
        with producer.half("orders", b"a book") as half:
            half.record(db)
            db.commit()
            os._exit(7)
"""


def test_46_another_process_settles_what_a_killed_one_has_committed(tmp_path: Path) -> None:
    """It gets the checks of the killed process when the group has removed this one."""
    path = tmp_path / "orders.db"
    with Serving(tmp_path / "data") as broker:
        address = broker.address
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic("orders", partitions=1)
        with Resolver({"bootstrap.servers": address, **RULES}):
            program = [sys.executable, "-c", textwrap.dedent(SERVICE), address, str(path)]
            assert subprocess.run(program, env=os.environ, timeout=60, check=False).returncode == 7
            (left,) = undecided(address)
            decisions = DecisionTable(lambda: sqlite3.connect(path))
            with TransactionMQProducer("shop", address, decisions=decisions) as producer:
                assert producer.wait_until_done(left) is COMMIT
            assert values(address) == [b"a book"]

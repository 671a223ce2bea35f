"""``Broker`` with real clients, and in processes that fork, exit or are killed."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

from tests.server.in_process import use_event_loop
from tests.server.serving import EVENT_LOOPS
from txnkafka import Broker, KafkaStorageError, LogDir, LogDirError
from txnkafka.broker.broker import Broker as Engine

SECONDS = 30
SETTINGS = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}


@pytest.fixture(params=EVENT_LOOPS)
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_event_loop(request.param, monkeypatch)


def write_transaction(address: str, values: list[bytes], *, commit: bool = True) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "shop", "log_level": 0})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for value in values:
        producer.produce("orders", value, partition=0)
    producer.flush(SECONDS)
    if commit:
        producer.commit_transaction(SECONDS)


def read_committed(address: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed",
        consumer_timeout_ms=SECONDS * 1000, enable_auto_commit=False, metadata_max_age_ms=1000,
    )  # fmt: skip
    try:
        return [next(consumer).value for _ in range(count)]
    finally:
        consumer.close()


def open_files(data: Path) -> list[str]:
    """The files below a directory that this process has open."""
    links = [Path(entry.path) for entry in os.scandir("/proc/self/fd")]
    names = [os.readlink(link) for link in links if link.is_symlink()]
    return [name for name in names if name.startswith(f"{data}/")]


def threads() -> list[str]:
    """The threads of brokers."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("txnkafka-")]


def stored(data: Path) -> list[bytes]:
    return [record.value for record in LogDir(data).partition("orders", 0).records()]


@pytest.mark.usefixtures("event_loop")
def test_a_transaction_is_read_back_before_and_after_a_reopening(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker.open(data, **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        assert (address, broker.address) == (broker.address, address)
        assert repr(broker).endswith(f"serving {address}>")
        write_transaction(address, [b"1", b"2"])
        assert read_committed(address, 2) == [b"1", b"2"]
    assert (data / ".kafka_cleanshutdown").exists()
    assert broker.address is None
    with Broker.open(data, **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        assert read_committed(address, 2) == [b"1", b"2"]
        write_transaction(address, [b"3"])
    assert stored(data) == [b"1", b"2", b"3"]
    assert (open_files(data), threads()) == ([], [])


def test_groups_commit_and_settings_count(tmp_path: Path) -> None:
    with Broker.open(tmp_path, num_partitions=3, group_initial_rebalance_delay_ms=0, **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        write_transaction(address, [b"1"])
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.value() == b"1"
        consumer.commit(message=message, asynchronous=False)
        assert len(consumer.list_topics("orders").topics["orders"].partitions) == 3
        consumer.close()
    ((group, _),) = LogDir(tmp_path).committed_offsets()
    assert group == "g"


@pytest.mark.usefixtures("event_loop")
def test_a_refused_address_leaves_the_broker_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, Broker.open(tmp_path, **SETTINGS) as broker:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {taken}: .*; port 0 picks a free port"):
            broker.serve(taken)
        assert repr(broker).endswith(" open>")
        assert threads() == []
        address = broker.serve("localhost:0")
        write_transaction(address, [b"1"])
        with pytest.raises(KafkaStorageError, match=f"is served already, at {address}"):
            broker.serve("127.0.0.1:0")
    assert stored(tmp_path) == [b"1"]


def test_listeners_of_the_settings_are_served(tmp_path: Path) -> None:
    listeners = ["PLAINTEXT://127.0.0.1:0", "OTHER://127.0.0.1:0"]
    protocols = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    given = {"listeners": listeners, "listener.security.protocol.map": protocols}
    with Broker.open(tmp_path, **SETTINGS, **given) as broker:
        both = broker.serve()
        assert both.count("127.0.0.1:") == 2
        write_transaction(both, [b"1"])
        assert read_committed(both.split(",")[1], 1) == [b"1"]


def test_a_listener_for_other_machines_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "txnkafka"), Broker.open(tmp_path, **SETTINGS) as broker:
        broker.serve("0.0.0.0:0")
    assert "can be reached from other machines" in caplog.text


@pytest.mark.usefixtures("event_loop")
def test_a_broker_that_fails_is_released_and_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker.open(tmp_path, **SETTINGS)
    address = broker.serve("127.0.0.1:0")
    write_transaction(address, [b"1"])
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "begin_flush", lambda self: 1 / 0)
        with socket.create_connection(("127.0.0.1", int(address.split(":")[1])), SECONDS) as client:
            client.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\0\xff\xff")  # ApiVersions: wakes the host
            with suppress(ConnectionResetError):
                while client.recv(4096):
                    pass  # until the broker has failed
        assert broker._server is not None
        broker._server.stop()
    assert repr(broker).endswith(" failed>")
    assert "the broker failed: close and reopen it" in caplog.text
    with pytest.raises(KafkaStorageError, match=r"failed \(division by zero\); close it, and reopen it"):
        broker.serve("127.0.0.1:0")
    with pytest.raises(ZeroDivisionError):
        broker.close()
    broker.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (open_files(tmp_path), threads()) == ([], [])
    with Broker.open(tmp_path, **SETTINGS) as again:
        assert read_committed(again.serve("127.0.0.1:0"), 1) == [b"1"]


def test_an_interrupted_close_waits_for_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker.open(tmp_path, **SETTINGS)
    write_transaction(broker.serve("127.0.0.1:0"), [b"1"])
    assert broker._server is not None
    thread = broker._server._thread
    interrupts = [KeyboardInterrupt()]

    def join() -> None:
        if interrupts:
            raise interrupts.pop()
        threading.Thread.join(thread)

    monkeypatch.setattr(thread, "join", join)
    with pytest.raises(KeyboardInterrupt):
        broker.close()
    assert not thread.is_alive()
    with Broker.open(tmp_path, **SETTINGS) as again:
        assert read_committed(again.serve("127.0.0.1:0"), 1) == [b"1"]


@pytest.mark.usefixtures("event_loop")
def test_a_forked_child_cannot_serve_or_close(tmp_path: Path) -> None:
    with Broker.open(tmp_path, **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: other threads are running
            child = os.fork()
        if child == 0:
            status = 1
            try:
                broker.close()  # of the parent: does nothing
                with pytest.raises(LogDirError, match=f"held by process {os.getppid()}"):
                    broker.serve("127.0.0.1:0")
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        write_transaction(address, [b"1"])
    assert stored(tmp_path) == [b"1"]


PROGRAM = """
    import sys
    from txnkafka import Broker

    broker = Broker.open(sys.argv[1], transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1)
    print(broker.serve("127.0.0.1:0"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a broker on ``data`` that it does not close; it ends when its stdin does."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def address_of(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def test_an_owner_in_another_process_is_named(program: subprocess.Popen[str], tmp_path: Path) -> None:
    assert address_of(program)
    with pytest.raises(LogDirError, match=f"is locked by another owner, process {program.pid}: stop"):
        Broker.open(tmp_path / "data")


def test_a_killed_process_loses_no_acknowledged_record(
    program: subprocess.Popen[str], tmp_path: Path
) -> None:
    address = address_of(program)
    write_transaction(address, [b"1", b"2"])
    write_transaction(address, [b"3"], commit=False)
    program.send_signal(signal.SIGKILL)
    assert program.wait(SECONDS) == -signal.SIGKILL
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with Broker.open(tmp_path / "data", **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        write_transaction(address, [b"4"])  # aborts the open transaction of its id
        assert read_committed(address, 3) == [b"1", b"2", b"4"]
    assert stored(tmp_path / "data") == [b"1", b"2", b"4"]


def test_the_exit_of_the_interpreter_closes_cleanly(program: subprocess.Popen[str], tmp_path: Path) -> None:
    write_transaction(address_of(program), [b"1"])
    assert program.stdin is not None
    program.stdin.close()
    assert program.wait(SECONDS) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert stored(tmp_path / "data") == [b"1"]

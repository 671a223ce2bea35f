"""``BrokerProcess``: its log, and the reason of a failed start."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from txnkafka.testing.broker_process import BrokerProcess

PIPE_BYTES = 64 << 10  # after which a pipe that is not read blocks its writer


def test_a_long_log_does_not_stop_the_broker() -> None:
    with BrokerProcess() as broker:
        host, port = broker.bootstrap_servers.split(":")
        while len(broker.log()) <= PIPE_BYTES:
            for _ in range(100):
                with socket.create_connection((host, int(port)), 10) as hostile:
                    hostile.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    hostile.recv(1)
        broker.create_topic("orders")
        assert "HTTP client" in broker.log()


def test_a_failed_start_gives_the_reason(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RuntimeError, match=r"the broker has ended: [^$]*thesis\.tex"):
        BrokerProcess(str(tmp_path))


def test_a_stopped_broker_takes_no_commands() -> None:
    with BrokerProcess() as broker:
        broker.stop()
        with pytest.raises(RuntimeError, match="does not run: call start"):
            broker.create_topic("orders")
        broker.start()
        broker.create_topic("orders")

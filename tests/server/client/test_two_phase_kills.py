"""A program that commits to Kafka and to SQLite is killed, with its embedded broker, TXNKAFKA_TWO_PHASE_KILLS
times, at times from TXNKAFKA_SEED: both have the same orders, each once."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from multiprocessing.connection import wait
from pathlib import Path

from tests.server.client import preparing
from txnkafka import Broker, LogDir

KILLS = int(os.environ.get("TXNKAFKA_TWO_PHASE_KILLS", "12"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
FORKS = multiprocessing.get_context("forkserver")
LINE_SECONDS = 60


def run_and_kill(data: Path, seconds: float) -> set[int]:
    """Run the program, and kill it some seconds after its start. Returns the acknowledged orders."""
    reader, writer = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=preparing.main, args=(str(data), writer))
    process.start()
    writer.close()
    watchdog = threading.Timer(LINE_SECONDS, process.kill)
    watchdog.start()
    sent, is_open = set[int](), False
    with os.fdopen(os.dup(reader.fileno())) as lines:
        for line in lines:
            kind, _, number = line.rstrip("\n").partition(" ")
            if kind == "open":
                is_open = True
                watchdog.cancel()
                threading.Timer(seconds, process.kill).start()
            elif line.endswith("\n"):
                sent.add(int(number))
    wait([process.sentinel])
    process.join()
    reader.close()
    errors = Path(f"{data}.stderr").read_text()
    assert is_open, f"not opened after {LINE_SECONDS} s\n{errors}"
    assert process.exitcode == -9, errors
    assert "Traceback" not in errors, errors
    return sent


def test_the_database_and_the_log_have_the_same_orders(tmp_path: Path) -> None:
    FORKS.set_forkserver_preload([preparing.__name__, "txnkafka.embedded"])
    data, rng, sent, left = tmp_path / "data", random.Random(SEED), set[int](), 0
    for _ in range(KILLS):
        sent |= run_and_kill(data, rng.uniform(0.0, 0.5))
        open_ones = [each for each in LogDir(data).coordinator.transactions.values() if each.topic_partitions]
        left += len(open_ones)
    db = preparing.database(data)
    with Broker.open(data, **preparing.SETTINGS) as broker:
        preparing.recovered(broker, db).close()
    rows = {number for (number,) in db.execute("SELECT number FROM orders")}
    db.close()
    assert sent <= rows
    for partition in range(2):
        view = LogDir(data).partition("orders", partition)
        values = [int(record.value or b"") for record in view.records()]
        assert len(values) == len(set(values))
        assert set(values) == rows
        assert view.last_stable_offset == view.log_end_offset
    assert left, "no kill has left an open transaction"

"""A program that commits records and rows of a SQLite database together (KIP-939), to be killed anytime."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from txnkafka import Broker, Producer

SETTINGS: dict[str, Any] = {
    "transaction.two.phase.commit.enable": True,
    "unstable.api.versions.enable": True,
    "num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}


def database(data: Path) -> sqlite3.Connection:
    """Open the database of a data directory."""
    db = sqlite3.connect(f"{data}.db", isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS prepared (id TEXT PRIMARY KEY, state TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY)")
    return db


def recovered(broker: Broker, db: sqlite3.Connection) -> Producer:
    """A producer that has completed the transaction of an earlier process."""
    producer = broker.producer(transactional_id="shop", transaction_two_phase_commit_enable=True)
    producer.init_transactions(keep_prepared=True)
    row = db.execute("SELECT state FROM prepared").fetchone()
    producer.complete_transaction(row[0] if row else "")
    return producer


def main(path: str, pipe: Connection) -> None:
    """Send orders, and commit four in five in the database, until the process is killed."""
    data = Path(path)
    sys.stderr = open(f"{path}.stderr", "a", buffering=1)  # noqa: SIM115
    lines = os.fdopen(os.dup(pipe.fileno()), "w", buffering=1)
    db, rng = database(data), random.Random()
    number = (db.execute("SELECT max(number) FROM orders").fetchone()[0] or 0) + 100_000 * os.getpid()
    with Broker.open(data, **SETTINGS) as broker:
        producer = recovered(broker, db)
        print("open", file=lines)
        while True:
            number += 1
            producer.begin_transaction()
            for copy in range(2):
                producer.send("orders", f"{number}".encode(), partition=copy)
            state = producer.prepare_transaction()
            if rng.random() < 0.8:
                db.execute("BEGIN IMMEDIATE")
                db.execute("INSERT INTO orders VALUES (?)", (number,))
                db.execute("INSERT OR REPLACE INTO prepared VALUES ('shop', ?)", (str(state),))
                db.execute("COMMIT")
                producer.complete_transaction(state)
                print(f"sent {number}", file=lines)
            else:
                producer.abort_transaction()

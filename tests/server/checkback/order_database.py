"""A database with a table of orders beside a decision table, which processes can describe to each other."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import psycopg
import pymysql

from txnkafka.checkback import DecisionTable

LOCK_TIMEOUT_MS = 100


class OrderDatabase:
    """``kind`` is sqlite, postgresql or mariadb; ``options`` belong to its driver."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.kind = kind
        self.options = options
        self.decisions = DecisionTable(self.connect, lock_timeout_ms=LOCK_TIMEOUT_MS)

    @classmethod
    def parsed(cls, text: str) -> OrderDatabase:
        """The database that ``str`` of another has described."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps({"kind": self.kind, **self.options})

    def connect(self) -> Any:
        """Open a connection, without autocommit."""
        if self.kind == "sqlite":
            return sqlite3.connect(timeout=30, **self.options)
        return (psycopg if self.kind == "postgresql" else pymysql).connect(**self.options)

    def create(self) -> None:
        """Create both tables."""
        self.decisions.create()
        connection = self.connect()
        connection.cursor().execute("CREATE TABLE orders (id VARCHAR(80) NOT NULL)")
        connection.commit()
        connection.close()

    def insert(self, connection: Any, transaction_id: str) -> None:
        """Insert an order and its decision, in the transaction of the connection."""
        self.decisions.record(connection, transaction_id)
        connection.cursor().execute(f"INSERT INTO orders VALUES ('{transaction_id}')")

    def orders(self) -> list[str]:
        """Return all orders, sorted."""
        connection = self.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT id FROM orders ORDER BY id")
        rows = [row[0] for row in cursor.fetchall()]
        connection.close()
        return rows

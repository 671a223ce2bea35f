"""The statements and error codes of the databases that can hold a decision table.

In a statement ``?`` is a parameter and ``{table}`` the quoted table. A fence is a row with the outcome
``rollback`` that a check inserts. It waits for an open transaction that has inserted the same id; each
database limits that wait in its own way:

- SQLite has one writer at a time: BEGIN IMMEDIATE waits for the busy timeout.
- PostgreSQL: ``lock_timeout`` of the transaction. An error aborts the transaction until it is rolled back.
- MySQL and MariaDB: ``innodb_lock_wait_timeout`` of the session, in whole seconds. A lock timeout and a
  duplicate key undo only their statement; the transaction stays open.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

IDS_OF_A_PAGE: Final = 500
MAX_ID_BYTES: Final = 255


class Failure(enum.Enum):
    """The reasons for which a database refuses the insert of a decision."""

    DUPLICATE = "a row with this id exists"
    LOCKED = "another transaction holds a lock, or the database chose this transaction as the victim"
    OTHER = "anything else"


@dataclass(frozen=True, kw_only=True)
class Database:
    """One kind of database. ``begin`` opens a transaction that will write. ``get_wait`` and ``set_wait`` read
    and change the time for which the session waits for a lock, in units of ``wait_unit_ms``; ``set_wait``
    lasts until the end of the transaction where ``get_wait`` is None. ``undoes_statement_only``: the
    transaction of a statement that failed can still commit. ``codes`` are the attributes of an error that
    may have its code; none: its first argument. ``get_engine`` reads the storage engine of a
    table, for its schema or NULL and its name."""

    name: str
    quote: str
    create: str
    begin: str
    set_wait: str
    get_wait: str | None
    wait_unit_ms: int
    undoes_statement_only: bool
    codes: tuple[str, ...]
    duplicates: frozenset[object]
    locks: frozenset[object]
    stores_bytes: bool = False
    get_engine: str | None = None

    def failure(self, error: BaseException) -> Failure:
        """Classify an error of a driver, or SQLAlchemy's wrapper of one."""
        code = self._code(error)
        if code in self.duplicates:
            return Failure.DUPLICATE
        return Failure.LOCKED if code in self.locks else Failure.OTHER

    def _code(self, error: BaseException) -> object:
        original = getattr(error, "orig", None) or error
        named = [getattr(original, name, None) for name in self.codes]
        code = next(filter(None, named or original.args), None)
        return code if isinstance(code, str | int) else None

    def key(self, transaction_id: str) -> str | bytes:
        """Return the value of the column for an id. Raises ValueError for an id that no table can hold."""
        encoded = transaction_id.encode()
        if not 0 < len(encoded) <= MAX_ID_BYTES or b"\0" in encoded:
            raise ValueError(
                f"the transaction id {transaction_id[:80]!r} has {len(encoded)} bytes: a decision table "
                f"takes 1 to {MAX_ID_BYTES} bytes without NUL"
            )
        return encoded if self.stores_bytes else transaction_id

    def wait(self, wait_ms: int) -> str:
        """Return the statement that limits the wait for a lock to ``wait_ms``, rounded up."""
        return self.set_wait.format(wait=-(-wait_ms // self.wait_unit_ms))

    def quoted(self, table: str) -> str:
        """Return ``table`` or ``schema.table`` as an identifier. Raises ValueError for any other text."""
        if not _NAME.fullmatch(table):
            raise ValueError(
                f"{table!r} is not the name of a decision table: use letters, digits and _, at most 63, "
                "optionally after a schema and a dot"
            )
        return ".".join(f"{self.quote}{part}{self.quote}" for part in table.split("."))


_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}")
INSERT: Final = "INSERT INTO {table} (transaction_id, outcome, created_at) VALUES (?, ?, ?)"
SELECT: Final = "SELECT outcome FROM {table} WHERE transaction_id = ?"
SELECT_PAGE: Final = (
    "SELECT transaction_id FROM {table} WHERE created_at < ? AND transaction_id > ? "
    f"ORDER BY transaction_id LIMIT {IDS_OF_A_PAGE}"
)
DELETE: Final = "DELETE FROM {table} WHERE transaction_id = ?"


# SQLITE_BUSY, SQLITE_LOCKED and their extended codes
_SQLITE_BUSY: Final = frozenset(base | extended << 8 for base in (5, 6) for extended in range(4))
SQLITE: Final = Database(
    name="SQLite",
    quote='"',
    create="CREATE TABLE IF NOT EXISTS {table} (transaction_id TEXT NOT NULL PRIMARY KEY, "
    "outcome TEXT NOT NULL CHECK (outcome IN ('commit', 'rollback')), created_at INTEGER NOT NULL)",
    begin="BEGIN IMMEDIATE",
    get_wait="PRAGMA busy_timeout",
    set_wait="PRAGMA busy_timeout = {wait}",
    wait_unit_ms=1,
    undoes_statement_only=True,
    codes=("sqlite_errorcode",),
    duplicates=frozenset({1555, 2067}),  # SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE
    locks=_SQLITE_BUSY,
)
POSTGRESQL: Final = Database(
    name="PostgreSQL",
    quote='"',
    create='CREATE TABLE IF NOT EXISTS {table} (transaction_id text COLLATE "C" NOT NULL PRIMARY KEY, '
    "outcome text NOT NULL CHECK (outcome IN ('commit', 'rollback')), created_at bigint NOT NULL)",
    begin="BEGIN",
    get_wait=None,
    set_wait="SET LOCAL lock_timeout = {wait}",
    wait_unit_ms=1,
    undoes_statement_only=False,
    codes=("sqlstate", "pgcode"),  # psycopg2 has the second
    duplicates=frozenset({"23505"}),  # unique_violation
    # lock_not_available, serialization_failure, deadlock_detected, query_canceled (statement_timeout)
    locks=frozenset({"55P03", "40001", "40P01", "57014"}),
)
MYSQL: Final = Database(
    name="MySQL",
    quote="`",
    # bytes: the collations of MySQL take different ids for equal, by case or by spaces at the end
    create="CREATE TABLE IF NOT EXISTS {table} (transaction_id VARBINARY(255) NOT NULL PRIMARY KEY, "
    "outcome VARCHAR(8) CHARACTER SET ascii NOT NULL, created_at BIGINT NOT NULL) ENGINE = InnoDB",
    begin="START TRANSACTION",
    get_wait="SELECT @@SESSION.innodb_lock_wait_timeout",
    set_wait="SET SESSION innodb_lock_wait_timeout = {wait}",
    wait_unit_ms=1000,
    undoes_statement_only=True,
    codes=(),
    duplicates=frozenset({1062}),  # ER_DUP_ENTRY
    # ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_CHECKREAD (innodb_snapshot_isolation of MariaDB)
    locks=frozenset({1205, 1213, 1020}),
    stores_bytes=True,
    get_engine="SELECT ENGINE FROM information_schema.TABLES "
    "WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?",
)

"""``ShopDatabase``: the database of the simulated shops, with a decision table.

It is a variable that no fault reaches: a transaction is committed at once, or never. An order is locked
while the process that has begun its transaction lives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txnkafka.checkback.message import LocalTransactionState

if TYPE_CHECKING:
    from txnkafka.testing.simulation.simulated_reactor import SimulatedReactor


@dataclass(slots=True)
class ShopDatabase:
    """``rows`` is the decision table: True for the orders that were committed, False for those that a check
    has fenced. ``orders`` are the ids of all messages, by their numbers."""

    rows: dict[str, bool] = field(default_factory=dict)
    orders: list[str] = field(default_factory=list)
    locks: dict[str, SimulatedReactor] = field(default_factory=dict)

    def number(self, order: str) -> int:
        """Add an order; return its number."""
        self.orders.append(order)
        return len(self.orders) - 1

    def begin(self, order: str, process: SimulatedReactor) -> None:
        """Begin the transaction of an order, which locks its row."""
        self.locks[order] = process

    def commit(self, order: str) -> bool:
        """Commit the transaction; return False if the row has another decision, and roll back."""
        self.locks.pop(order, None)
        return self.rows.setdefault(order, True)

    def roll_back(self, order: str) -> None:
        """Roll the transaction back."""
        self.locks.pop(order, None)

    def check(self, order: str) -> LocalTransactionState:
        """Answer a check, and fence an order without a decision; see ``DecisionTable.check``."""
        process = self.locks.get(order)
        if process is not None and not process.is_closed:
            return LocalTransactionState.UNKNOWN
        if self.rows.setdefault(order, False):
            return LocalTransactionState.COMMIT_MESSAGE
        return LocalTransactionState.ROLLBACK_MESSAGE

"""``TransactionListener``: the two callbacks of a check-back producer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txnkafka.checkback.message import LocalTransactionState, MessageExt


class TransactionListener(ABC):
    """The local transaction, and the answer to a check.

    An answer is COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOWN. None, another value and an exception count as
    UNKNOWN. Let ``execute_local_transaction`` record its decision in the same database transaction
    (``DecisionTable.record``), and ``check_local_transaction`` ask the table (``DecisionTable.check``):
    then a commit of the database and a visible message always go together."""

    @abstractmethod
    def execute_local_transaction(self, msg: MessageExt, arg: Any) -> LocalTransactionState | None:
        """Run the local transaction, in the thread that sends, after the half is durable. ``arg`` is the
        argument of ``send_message_in_transaction``."""

    @abstractmethod
    def check_local_transaction(self, msg: MessageExt) -> LocalTransactionState | None:
        """Answer for a message that is not decided. Called in a thread of the pool, in any process of the
        producer group, at any time after the half was sent: also while its local transaction still runs."""

"""A service that inserts an order and sends a message about it, as a program that kills itself, or is killed.

``python -m tests.server.checkback.dying_service ADDRESS DATABASE RUN PLACE`` dies at PLACE, a name in
``PLACES``, while it sends the message ``RUN-0``. Without a place it sends one message after the other, and
prints the id of each before.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

from tests.server.checkback.order_database import OrderDatabase
from txnkafka.checkback import (
    LocalTransactionState,
    Message,
    MessageExt,
    TransactionListener,
    TransactionMQProducer,
)

PLACES = ("before the transaction", "in the transaction", "after the commit")


class OrderListener(TransactionListener):
    """Inserts an order, and dies at a place."""

    def __init__(self, database: OrderDatabase, place: str | None) -> None:
        self._database = database
        self._place = place

    def execute_local_transaction(self, msg: MessageExt, arg: Any) -> LocalTransactionState:
        assert msg.transaction_id is not None
        self._reach(PLACES[0])
        connection = self._database.connect()
        try:
            self._database.insert(connection, msg.transaction_id)
            self._reach(PLACES[1])
            connection.commit()
        finally:
            connection.close()
        self._reach(PLACES[2])
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, msg: MessageExt) -> LocalTransactionState:
        assert msg.transaction_id is not None
        return self._database.decisions.check(msg.transaction_id)

    def _reach(self, place: str) -> None:
        if place == self._place:
            os.kill(os.getpid(), signal.SIGKILL)


def main(address: str, described: str, run: str, place: str | None = None) -> None:
    listener = OrderListener(OrderDatabase.parsed(described), place)
    with TransactionMQProducer("shop", address, transaction_listener=listener) as producer:
        for number in itertools.count():
            transaction_id = f"{run}-{number}"
            print(transaction_id, flush=True)
            message = Message("orders", transaction_id, transaction_id=transaction_id)
            producer.send_message_in_transaction(message)


if __name__ == "__main__":
    main(*sys.argv[1:])

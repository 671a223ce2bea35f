"""EndTxn: commits or aborts a transaction.

Versions 0 to 5. Up to 4 the producer keeps its epoch. 5 raises it, and the response has the id and epoch for
the producer's next transaction (KIP-890). Before 2, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.old_clients import error_for
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("EndTxn")
def handle(broker: Broker, request: EndTxnRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the decision is durable and the markers are appended."""
    broker.transactions.end_txn(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        lambda answer: reply(
            EndTxnResponse(
                error_code=error_for("EndTxn", version, answer.error),
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
            )
        ),
        client_transaction_version=2 if version >= 5 else 0,
    )

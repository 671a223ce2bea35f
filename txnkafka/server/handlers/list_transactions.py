"""ListTransactions: the transactional ids that match all filters (KIP-664).

Versions 0 to 2. 0 filters by state and producer id, 1 also by duration (KIP-994), 2 by a pattern that must
match the whole id (KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.txn.txn_listing import Filters
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("ListTransactions")
def handle(broker: Broker, request: ListTransactionsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    filters = Filters(
        frozenset(request.producer_id_filters),
        frozenset(request.state_filters),
        request.duration_filter,
        request.transactional_id_pattern or "",
    )
    listing = broker.transactions.list(filters)
    reply(
        ListTransactionsResponse(
            error_code=listing.error,
            unknown_state_filters=listing.unknown_states,
            transaction_states=tuple(
                TransactionState(
                    transactional_id=transaction.transactional_id,
                    producer_id=transaction.producer_id,
                    transaction_state=transaction.state,
                )
                for transaction in listing.transactions
            ),
        )
    )

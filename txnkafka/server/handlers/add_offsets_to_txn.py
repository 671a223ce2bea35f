"""AddOffsetsToTxn: adds a group's partition of ``__consumer_offsets`` to a transaction.

Versions 0 to 4. Before 2, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH. Clients with ``transaction.version`` 2
do not send it, because TxnOffsetCommit adds the group (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.old_clients import error_for
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("AddOffsetsToTxn")
def handle(broker: Broker, request: AddOffsetsToTxnRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the coordinator's record with the partition is durable."""
    broker.transactions.add_offsets(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.group_id,
        lambda answer: reply(
            AddOffsetsToTxnResponse(error_code=error_for("AddOffsetsToTxn", version, answer.error))
        ),
    )

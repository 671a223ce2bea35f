"""InitProducerId: assigns a producer id and epoch to an idempotent producer or a transactional id.

Versions 0 to 6. From 3 on a producer sends its own id and epoch to continue after an error (KIP-360). Before
4, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH. 6 adds two-phase commit (KIP-939); it is unstable in Kafka, and
served with ``unstable.api.versions.enable`` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.old_clients import error_for
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.txn.txn_events import Answer
    from txnkafka.server.peer import Peer, Reply


@serves("InitProducerId")
def handle(broker: Broker, request: InitProducerIdRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the new state of the transactional id is durable."""

    def answered(answer: Answer) -> None:
        reply(
            InitProducerIdResponse(
                error_code=error_for("InitProducerId", version, answer.error),
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
                ongoing_txn_producer_id=answer.ongoing_producer_id,
                ongoing_txn_producer_epoch=answer.ongoing_producer_epoch,
            )
        )

    broker.transactions.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
        answered,
        enable_2pc=request.enable2_pc,
        keep_prepared_txn=request.keep_prepared_txn,
    )

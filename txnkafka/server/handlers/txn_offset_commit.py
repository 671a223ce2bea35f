"""TxnOffsetCommit: commits offsets of a group as part of a transaction (KIP-98).

Versions 0 to 6. 3 names the member, so that a member of an earlier generation is fenced (KIP-447). 4 knows
TRANSACTION_ABORTABLE. 5 also adds the group to the transaction (KIP-890). From 6 on topics have ids, which
are stored with the offsets (KIP-1319).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.model import ProducerIdAndEpoch
from txnkafka.server.committed_topics import answered_topics, identity_of, names_of, offsets_to_commit
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import TopicPartition
    from txnkafka.server.peer import Peer, Reply

TOPIC_IDS: Final = 6  # the first version with topic ids


@serves("TxnOffsetCommit")
def handle(broker: Broker, request: TxnOffsetCommitRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the offsets and the coordinator's record with the group's partition are durable."""
    by_id = version >= TOPIC_IDS
    names = names_of(broker, request.topics, by_id=by_id)
    wanted = offsets_to_commit(broker, names, request.topics, stores_topic_id=by_id)

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        types = TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition
        reply(TxnOffsetCommitResponse(topics=answered_topics(names, request.topics, errors, *types)))

    if not wanted:
        answer({})
        return
    broker.commit_in_transaction(
        identity_of(request),
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        wanted,
        answer,
        version=version,
    )

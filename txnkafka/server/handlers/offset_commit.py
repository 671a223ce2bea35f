"""OffsetCommit: commits offsets of a group.

Versions 2 to 10. 2 to 4 may set a retention time. 7 has static members. 9 knows GROUP_ID_NOT_FOUND. From 10
on topics have ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.server.committed_topics import answered_topics, identity_of, names_of, offsets_to_commit
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import TopicPartition
    from txnkafka.server.peer import Peer, Reply

_LAST_MS = 2**63 - 1  # largest timestamp


@serves("OffsetCommit")
def handle(broker: Broker, request: OffsetCommitRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the offsets are durable."""
    names = names_of(broker, request.topics, by_id=version >= 10)
    retention_ms = request.retention_time_ms
    expire_timestamp = -1 if retention_ms < 0 else min(broker.now_ms + retention_ms, _LAST_MS)
    wanted = offsets_to_commit(broker, names, request.topics, expire_timestamp=expire_timestamp)

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        types = OffsetCommitResponseTopic, OffsetCommitResponsePartition
        reply(OffsetCommitResponse(topics=answered_topics(names, request.topics, errors, *types)))

    if not wanted:
        answer({})
        return
    identity = identity_of(request)
    broker.groups.commit(identity, wanted, answer, version=version)

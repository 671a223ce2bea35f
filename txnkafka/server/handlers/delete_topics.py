"""DeleteTopics: deletes topics with all their records.

Versions 1 to 6. 1 to 5 name topics; 6 gives each topic by name or by id, not both. The response has error
messages from 5 on. While ``delete.topic.enable`` is false, versions before 3 get INVALID_REQUEST instead of
TOPIC_DELETION_DISABLED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.requests import DeletedTopic
    from txnkafka.server.peer import Peer, Reply


@serves("DeleteTopics")
def handle(broker: Broker, request: DeleteTopicsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the deletion is durable."""
    asked = (
        request.topics if version >= 6 else tuple(DeleteTopicState(name=name) for name in request.topic_names)
    )
    counts = Counter(asked)
    twice = _named_by_both(broker, counts)
    refused = [_refused(topic, counts[topic]) or twice.get(topic) for topic in counts]
    wanted = [each for each, refusal in zip(counts, refused, strict=True) if refusal is None]
    names = [each.name for each in wanted if each.name is not None]
    topic_ids = [each.topic_id for each in wanted if each.name is None]

    def deleted(results: list[DeletedTopic]) -> None:
        answers = [_result(result, version) for result in results]
        answers += [each for each in refused if each is not None and each not in twice.values()]
        answers += [each for asked, each in twice.items() if asked.name is not None]
        reply(DeleteTopicsResponse(responses=tuple(answers)))

    broker.topics.delete(names, topic_ids, deleted)


def _named_by_both(
    broker: Broker, asked: Iterable[DeleteTopicState]
) -> dict[DeleteTopicState, DeletableTopicResult]:
    """Return refusals for topics that are given both by name and by id: one answer for both, with the
    name."""
    by_id = {each.topic_id: each for each in asked if each.name is None}
    found = {}
    for each in asked:
        topic = None if each.name is None else broker.image.topics.get(each.name)
        other = None if topic is None or each.topic_id != ZERO_UUID else by_id.get(topic.topic_id)
        if topic is not None and other is not None:
            found[each] = found[other] = DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="The provided topic name maps to an ID that was already supplied.",
            )
    return found


def _refused(asked: DeleteTopicState, count: int) -> DeletableTopicResult | None:
    """Return the refusal of a topic that needs no lookup, or None."""
    if asked.name is not None and asked.topic_id != ZERO_UUID:
        message = "You may not specify both topic name and topic id."
    elif asked.name is None and asked.topic_id == ZERO_UUID:
        message = "Neither topic name nor id were specified."
    elif count > 1:
        message = "Duplicate topic name." if asked.name is not None else "Duplicate topic id."
    else:
        return None
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )


def _result(topic: DeletedTopic, version: int) -> DeletableTopicResult:
    error = topic.error
    if error == ErrorCode.TOPIC_DELETION_DISABLED and version < 3:
        error = ErrorCode.INVALID_REQUEST
    return DeletableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id or ZERO_UUID,
        error_code=error,
        error_message=None if error == ErrorCode.NONE else topic.message or error.name,
    )

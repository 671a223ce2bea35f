"""DeleteTopics (key 20): topics by name, and by id.

By version:

1  throttle time
3  TOPIC_DELETION_DISABLED
4  flexible
5  error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)
6  topic ids (KIP-516)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string, uuid
from txnkafka.wire.schema import STRING


@message
class DeleteTopicState:
    """An element of ``topics``."""

    name: str | None = string("6+", nullable="0+", default=None)
    topic_id: str = uuid("6+")


@message
class DeleteTopicsRequest:
    """``DeleteTopicsRequest.json``."""

    topics: tuple[DeleteTopicState, ...] = array(DeleteTopicState, "6+")
    topic_names: tuple[str, ...] = array(STRING, "1-5", ignorable=True)
    timeout_ms: int = int32()


@message
class DeletableTopicResult:
    """An element of ``responses``."""

    name: str | None = string(nullable="6+")
    topic_id: str = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="0+", default=None, ignorable=True)


@message
class DeleteTopicsResponse:
    """``DeleteTopicsResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = array(DeletableTopicResult)

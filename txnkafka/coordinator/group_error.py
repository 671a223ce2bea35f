"""``GroupError``: why a request of a member is refused, in the words of Kafka."""

from __future__ import annotations

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

__all__ = ["GroupError"]


class GroupError(KafkaError):
    """``code`` and the text are the answer to the request."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code

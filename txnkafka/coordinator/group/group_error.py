"""``GroupError``: the refusal of a member's request, in Kafka's words."""

from __future__ import annotations

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError


class GroupError(KafkaError):
    """A refusal: ``code`` and the text are the answer to the request."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code

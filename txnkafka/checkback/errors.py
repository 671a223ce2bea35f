"""The errors of check-back messages.

CheckBackError                   a ClientError
├── TransactionDecidedError      the half was decided before, with the contrary outcome
├── TransactionParkedError       the half was parked: resume it first
├── UnknownTransactionError      no half has this id, or it was decided too long ago
├── WrongGroupError              the half belongs to another producer group
├── ListenerMissingError         nothing could answer a check
├── DelayNotSupportedError       a delayed message cannot be transactional
└── HalfTooLargeError            a message is larger than its topic, or the half topic, takes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import ClientError

if TYPE_CHECKING:
    from txnkafka.checkback.message import LocalTransactionState


class CheckBackError(ClientError):
    """Base class of the errors of check-back messages."""


class TransactionDecidedError(CheckBackError):
    """The half was decided before, with the contrary ``outcome`` (a LocalTransactionState). The first
    decision in the log counts for every process, so this one has no effect."""

    code = ErrorCode.INVALID_TXN_STATE

    def __init__(self, message: str, outcome: LocalTransactionState) -> None:
        super().__init__(message)
        self.outcome = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.outcome)


class TransactionParkedError(CheckBackError):
    """The half was parked in ``__txn_check_max``; a decision has no effect until it is resumed
    (``resume_check_half_message``, ``txnkafka halves resume``)."""

    code = ErrorCode.INVALID_TXN_STATE


class UnknownTransactionError(CheckBackError):
    """The log has no half with this id. A decided half is remembered for ``decision.retention.ms``, by
    default 24 hours."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class WrongGroupError(CheckBackError):
    """The half belongs to another producer group, whose producers decide it."""

    code = ErrorCode.INVALID_TXN_STATE


class ListenerMissingError(CheckBackError):
    """The producer has no listener and no decision table, which could answer a check. Raised before
    anything is sent."""


class DelayNotSupportedError(CheckBackError):
    """A transactional message cannot have a delay. Raised before anything is sent; RocketMQ drops the delay
    level without an error, and loses messages with a timer."""


class HalfTooLargeError(CheckBackError):
    """A message, or the half with all its messages, is larger than the settings of the producer or the topics
    allow. Raised before the local transaction runs."""

    code = ErrorCode.MESSAGE_TOO_LARGE

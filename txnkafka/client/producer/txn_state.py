"""The states of a transactional producer, and its reactions to error codes, as tables.

Source: ``TransactionManager.State`` and the handlers in ``TransactionManager`` (KIP-98, KIP-360, KIP-588,
KIP-890, KIP-939, KIP-1050) of Apache Kafka 4.3.
"""

from __future__ import annotations

import enum
from typing import Final

from txnkafka.error_codes import ErrorCode


class State(enum.Enum):
    """The state of a producer with sequences."""

    UNINITIALIZED = enum.auto()
    INITIALIZING = enum.auto()
    READY = enum.auto()
    IN_TRANSACTION = enum.auto()
    PREPARED_TRANSACTION = enum.auto()
    """The transaction takes no more records, and its outcome is decided elsewhere (KIP-939)."""
    COMMITTING_TRANSACTION = enum.auto()
    ABORTING_TRANSACTION = enum.auto()
    ABORTABLE_ERROR = enum.auto()
    """Only ``abort_transaction`` is possible."""
    FATAL_ERROR = enum.auto()
    """Only ``close`` is possible."""

    __hash__ = object.__hash__  # as they are compared, by identity; Enum hashes the name, in Python


SOURCES: Final[dict[State, frozenset[State]]] = {
    State.UNINITIALIZED: frozenset((State.READY, State.ABORTABLE_ERROR)),
    State.INITIALIZING: frozenset(
        (State.UNINITIALIZED, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION)
    ),
    State.READY: frozenset((State.INITIALIZING, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION)),
    State.IN_TRANSACTION: frozenset((State.READY,)),
    State.PREPARED_TRANSACTION: frozenset((State.IN_TRANSACTION, State.INITIALIZING)),
    State.COMMITTING_TRANSACTION: frozenset((State.IN_TRANSACTION, State.PREPARED_TRANSACTION)),
    State.ABORTING_TRANSACTION: frozenset(
        (State.IN_TRANSACTION, State.PREPARED_TRANSACTION, State.ABORTABLE_ERROR)
    ),
    State.ABORTABLE_ERROR: frozenset(
        (State.IN_TRANSACTION, State.COMMITTING_TRANSACTION, State.ABORTABLE_ERROR, State.INITIALIZING)
    ),
    State.FATAL_ERROR: frozenset(State),
}
"""From which states a state can be entered."""
ADVICE: Final = {
    State.INITIALIZING: "init_transactions is called once, before the first transaction",
    State.IN_TRANSACTION: "call commit_transaction or abort_transaction first",
}
"""The next step of a caller that may not enter a state."""


class Reaction(enum.Enum):
    """The next step of the producer after an error code."""

    RETRY = enum.auto()
    FIND_COORDINATOR = enum.auto()
    """Find the coordinator again, and retry."""
    ABORTABLE = enum.auto()
    BUMP = enum.auto()
    """Abortable, and the producer needs a new epoch; fatal if the broker cannot give one (KIP-360)."""
    UNINITIALIZED = enum.auto()
    """The call fails and may be repeated: the producer is as before ``init_transactions``."""
    FENCED = enum.auto()
    """Fatal, as PRODUCER_FENCED: old coordinators answer INVALID_PRODUCER_EPOCH."""
    FATAL = enum.auto()


_E: Final = ErrorCode
_ALL: Final = {
    _E.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    _E.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    _E.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    _E.PRODUCER_FENCED: Reaction.FENCED,
    _E.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
}
REACTIONS: Final[dict[str, dict[ErrorCode, Reaction]]] = {
    "FindCoordinator": {
        _E.GROUP_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
        _E.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
    },
    "InitProducerId": {
        **_ALL,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.UNINITIALIZED,
        _E.CLUSTER_AUTHORIZATION_FAILED: Reaction.UNINITIALIZED,
    },
    "AddPartitionsToTxn": {
        **_ALL,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
        _E.INVALID_TXN_STATE: Reaction.FATAL,
        _E.INVALID_PRODUCER_ID_MAPPING: Reaction.FATAL,
        _E.UNKNOWN_PRODUCER_ID: Reaction.BUMP,
    },
    "AddOffsetsToTxn": {
        **_ALL,
        _E.GROUP_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
        _E.UNKNOWN_PRODUCER_ID: Reaction.BUMP,
    },
    "TxnOffsetCommit": {
        **_ALL,
        _E.REQUEST_TIMED_OUT: Reaction.FIND_COORDINATOR,
        _E.GROUP_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
        _E.FENCED_INSTANCE_ID: Reaction.ABORTABLE,
        _E.UNKNOWN_MEMBER_ID: Reaction.ABORTABLE,
        _E.ILLEGAL_GENERATION: Reaction.ABORTABLE,
    },
    "EndTxn": {**_ALL, _E.UNKNOWN_PRODUCER_ID: Reaction.BUMP},
}
"""By request and code. Retriable codes without a row are retried."""
_OTHERS: Final = {"AddPartitionsToTxn": Reaction.ABORTABLE}  # fatal for all other requests

PRODUCE_FATAL: Final = frozenset(
    (
        _E.CLUSTER_AUTHORIZATION_FAILED,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        _E.PRODUCER_FENCED,
        _E.UNSUPPORTED_VERSION,
        _E.INVALID_PRODUCER_ID_MAPPING,
    )
)
"""Codes of a failed batch after which the producer cannot continue; after all others its transaction is
aborted."""


def reaction(request: str, code: ErrorCode, *, is_abort: bool = False) -> Reaction:
    """Return the reaction to a code in the answer to a request. An abort that would have to be aborted is
    fatal (``is_abort``: EndTxn with committed=false)."""
    found = REACTIONS[request].get(code)
    if found is None:
        found = Reaction.RETRY if code.retriable else _OTHERS.get(request, Reaction.FATAL)
    if is_abort and found in (Reaction.ABORTABLE, Reaction.BUMP):
        return Reaction.FATAL
    return found

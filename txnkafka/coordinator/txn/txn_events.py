"""Events of a transactional id, and their results, all as values.

An event is a request of a client, or comes from the coordinator itself (``Timeout``, ``MarkersWritten``,
``Expire``). ``client_transaction_version`` is 2 if the version of the API has the semantics of KIP-890 part 2
(EndTxn 5, AddPartitionsToTxn 4, which only brokers send), else 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from txnkafka.wire.records import TransactionMetadata, encode_transaction_key, encode_transaction_value

# Events


class InitProducerId(NamedTuple):
    """A producer asks for its id. With ``producer_id`` and ``producer_epoch`` it continues with its
    identity (KIP-360). ``enable_2pc``: its transactions never time out. ``keep_prepared_txn``: an open
    transaction is not aborted, so that the producer can end it (KIP-939)."""

    transactional_id: str
    transaction_timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    enable_2pc: bool = False
    keep_prepared_txn: bool = False

    @property
    def is_continuation(self) -> bool:
        """Return whether the producer names its current id and epoch."""
        return self.producer_id != NO_PRODUCER_ID


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn, from a client; or from the partition leader, for a client of transaction version
    2."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_transaction_version: int = 0


class AddOffsets(NamedTuple):
    """AddOffsetsToTxn; the sender has computed the group's partition of ``__consumer_offsets``."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offsets_partition: TopicPartition
    client_transaction_version: int = 0

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions to add."""
        return frozenset((self.offsets_partition,))


class VerifyPartitions(NamedTuple):
    """AddPartitionsToTxn with VerifyOnly: asks whether the partitions are in the open transaction (KIP-890
    part 1)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class EndTxn(NamedTuple):
    """A client commits or aborts."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    client_transaction_version: int = 0


class Timeout(NamedTuple):
    """The open transaction may have exceeded its timeout; ``transition`` decides by its clock. The
    transaction had begun by ``began_by``, whatever its record contains; None if unknown."""

    transactional_id: str
    began_by: int | None = None


class MarkersWritten(NamedTuple):
    """All markers of the transaction with this marker epoch are durable."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Expire(NamedTuple):
    """The transactional id may have expired."""

    transactional_id: str


Event: TypeAlias = (
    InitProducerId
    | AddPartitions
    | AddOffsets
    | VerifyPartitions
    | EndTxn
    | Timeout
    | MarkersWritten
    | Expire
)


# Results


class Answer(NamedTuple):
    """The answer to a request; ids are -1 where the API or the error has none. ``missing`` are partitions
    that a verification did not find: TRANSACTION_ABORTABLE for each. The last two fields are the identity of
    a kept transaction (KIP-939)."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    missing: frozenset[TopicPartition] = frozenset()
    ongoing_producer_id: int = NO_PRODUCER_ID
    ongoing_producer_epoch: int = NO_PRODUCER_EPOCH


Reply: TypeAlias = Callable[[Answer], None]


class TransactionRecord(NamedTuple):
    """A record of ``__transaction_state``: the state of a transactional id, or its tombstone (None)."""

    transactional_id: str
    metadata: TransactionMetadata | None

    @property
    def key(self) -> bytes:
        """The key in the log."""
        return encode_transaction_key(self.transactional_id)

    def encoded(self, version: int) -> tuple[bytes, bytes | None]:
        """Return key and value for the log, at a level of ``transaction.version``.

        At level 0 the value has version 0, unless the state belongs to a newer client: Kafka refuses to write
        this state, and the id stays blocked. Raises SchemaError for an id that is too long."""
        transactional_id, metadata = self
        key = encode_transaction_key(transactional_id)
        if metadata is None:
            return key, None
        is_newer = (
            version or metadata.client_transaction_version or metadata.next_producer_id != NO_PRODUCER_ID
        )
        return key, encode_transaction_value(metadata, 1 if is_newer else 0)


class WriteMarkers(NamedTuple):
    """An effect of PREPARE_*: the partitions that get a marker with this identity. An empty set is
    complete."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


@dataclass(frozen=True, slots=True)
class Parked:
    """The request waits for COMPLETE_* of the transaction that is ending, and is then decided again. Kafka
    answers CONCURRENT_TRANSACTIONS; its clients sleep, and retry."""


class Transition(NamedTuple):
    """The event is accepted. ``record``, if any, must be durable before ``response`` is sent, ``metadata``
    becomes the state and ``effects`` take place, in this order."""

    metadata: TransactionMetadata | None
    record: TransactionRecord | None = None
    response: Answer | Parked = Answer()
    effects: tuple[WriteMarkers, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The event changes nothing."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class NeedsProducerId:
    """The event needs a new producer id: call ``transition`` again with one."""


Result: TypeAlias = Transition | Refused | Parked | NeedsProducerId


def answer_of(result: Result) -> Answer:
    """Return the answer to an event that is decided without a record."""
    if isinstance(result, Refused):
        return Answer(result.error)
    if isinstance(result, Transition) and isinstance(result.response, Answer):
        return result.response
    raise TypeError(f"{result} has no answer for a client")

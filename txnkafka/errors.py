"""The errors of txnkafka, one class for each case that a caller may have to distinguish.

    KafkaError                      has a code of Kafka's error table (``txnkafka.error_codes``)
    ├── CorruptRecordError          a batch or record in a ``.log`` file is damaged; has the position
    │   ├── UnsupportedCompressionTypeError
    │   └── FileChangedError        not damage: the file was replaced since it was listed or planned
    ├── CorruptFileError            an index, snapshot or checkpoint is damaged; the log itself may be fine
    ├── OffsetOutOfRangeError       below the log start offset or after the log end
    ├── UnknownTopicOrPartitionError
    ├── InvalidTopicError           the name is not allowed for a topic
    ├── InvalidRequestError         bytes or values do not fit the definition of their API and version
    ├── ProduceError                an append was refused; no part of it is in the log
    │   └── one class for each of Kafka's reasons, from MessageTooLargeError to InvalidRecordError
    ├── KafkaStorageError           files could not be written; the log accepts no more appends
    ├── FlushUnderWayError          a flush has begun and must be finished first
    ├── MissingPackageError         a package of an extra is not installed; also an ImportError
    ├── DecodeError                 a key or value does not fit its schema; has its place
    ├── ClientError                 raised by a client, not by a broker
    │   ├── NetworkError            no connection, or it ended before the response
    │   ├── KafkaTimeoutError       no result within the time limit
    │   ├── ClosedError             the client is closed, or belongs to another process
    │   ├── IllegalStateError       a call that the state of the client does not allow
    │   ├── BufferExhaustedError    no room in ``buffer.memory`` within ``max.block.ms``
    │   └── CommitFailedError       the group has given the partitions to another member
    ├── ProducerFencedError, …      one class for each error code, see ``class_of``
    └── LogDirError                 a directory cannot be read as a log directory

Every message has the place of the fault and the next step. ``class_of`` maps a code to its class.
"""

from __future__ import annotations

from typing import Final

from txnkafka.error_codes import ErrorCode
from txnkafka.kafka_error import KafkaError
from txnkafka.kafka_error import LocatedError as LocatedError

__all__ = [
    "BufferExhaustedError",
    "ClientError",
    "ClosedError",
    "CommitFailedError",
    "ConcurrentTransactionsError",
    "CorruptFileError",
    "CorruptRecordError",
    "DecodeError",
    "FencedInstanceIdError",
    "FileChangedError",
    "FlushUnderWayError",
    "IllegalGenerationError",
    "IllegalStateError",
    "InvalidProducerEpochError",
    "InvalidProducerIdMappingError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTxnStateError",
    "KafkaError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "LogDirError",
    "MessageTooLargeError",
    "MissingPackageError",
    "NetworkError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "ProduceError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordListTooLargeError",
    "TopicAlreadyExistsError",
    "TransactionAbortableError",
    "TransactionCoordinatorFencedError",
    "UnknownMemberIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedVersionError",
    "class_of",
    "error_for",
]


KafkaError.__module__ = LocatedError.__module__ = __name__  # as users import them


class CorruptRecordError(LocatedError):
    """A record batch is damaged (Kafka: CORRUPT_MESSAGE). ``position`` is its first byte in ``file``. A
    reader that continues at ``offset`` after a repair misses no record."""

    code = ErrorCode.CORRUPT_MESSAGE
    remedy = (
        "All records before it were returned; on_corrupt='skip' continues after it, "
        "'txnkafka verify' lists all damage"
    )


class FileChangedError(CorruptRecordError):
    """A file of the log changed after it was listed or planned: a broker has replaced, truncated or
    deleted it. This is not damage, so the error has no ``offset``, and no batch to leave out."""

    remedy = "Open the log directory again, and retry"


class CorruptFileError(LocatedError):
    """A file derived from the log (index, snapshot, checkpoint) is damaged; the log itself may be fine. Kafka
    has no code for this: CORRUPT_MESSAGE concerns batches, and is retriable."""

    remedy = "The log itself is not affected by this file; 'txnkafka verify' lists the effects"


class OffsetOutOfRangeError(KafkaError):
    """The offset is below the log start offset or after the log end offset."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class UnknownTopicOrPartitionError(KafkaError):
    """The directory does not contain the topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopicError(KafkaError):
    """The name is not allowed for a topic (Kafka: ``Topic.validate``)."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidRequestError(KafkaError):
    """A request or response cannot be read or written: its API or version is unknown, or it violates their
    definition.

    ``message`` is Kafka's name for it (``ProduceRequest``), ``path`` the field (``topic_data[0].name``, ""
    outside fields), ``position`` the byte in the frame after its size prefix, None for values. Kafka's broker
    then closes the connection without a response."""

    code = ErrorCode.INVALID_REQUEST

    def __init__(
        self,
        reason: str,
        *,
        message: str = "",
        version: int | None = None,
        path: str = "",
        position: int | None = None,
    ) -> None:
        name = message if version is None else f"{message} version {version}"
        byte = "" if position is None else f" (byte {position})"
        super().__init__(": ".join(filter(None, (name, path, reason))) + byte)
        self.reason = reason
        self.message = message
        self.version = version
        self.path = path
        self.position = position


class UnsupportedCompressionTypeError(CorruptRecordError):
    """A batch names a codec that does not exist (5 to 7) or that its magic does not allow."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class LogDirError(KafkaError):
    """A path is not a log directory, a partition directory or a segment, or cannot be read, or another
    process owns it. Kafka has no code for this: KAFKA_STORAGE_ERROR concerns a log that was usable before."""


class FlushUnderWayError(KafkaError):
    """A flush has begun, and must be finished first."""


class ProduceError(KafkaError):
    """An append was refused as a whole, and the log is unchanged. ``record_errors`` lists the refused records
    of the batch, as (number in the batch, message), at most 100 of them (KIP-467)."""

    record_errors: tuple[tuple[int, str], ...] = ()


class MessageTooLargeError(ProduceError):
    """A batch is larger than ``max.message.bytes``."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLargeError(ProduceError):
    """A batch is larger than a whole segment may be (``segment.bytes``)."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class InvalidTimestampError(ProduceError):
    """A record's timestamp is too far from the clock, or of a type that a producer must not set."""

    code = ErrorCode.INVALID_TIMESTAMP


class OutOfOrderSequenceError(ProduceError):
    """The sequence of a batch does not follow the previous one (Kafka: OUT_OF_ORDER_SEQUENCE_NUMBER)."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(ProduceError):
    """The producer's epoch is old: a newer one has written, or the coordinator has fenced this producer."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(ProduceError):
    """A batch does not belong to the transaction that the coordinator has for its producer."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFencedError(ProduceError):
    """An end marker comes from a coordinator that was replaced."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class InvalidRecordError(ProduceError):
    """A batch violates a rule, although its checksum is right."""

    code = ErrorCode.INVALID_RECORD


class MissingPackageError(KafkaError, ImportError):
    """An optional package is not installed; the message names the extra to install."""


class DecodeError(KafkaError):
    """A key or value cannot be decoded. ``reason`` is the cause; ``topic``, ``partition``, ``offset`` and
    ``field`` (key or value) identify it, if the decoder's caller knows them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.topic: str | None = None
        self.partition: int | None = None
        self.offset: int | None = None
        self.field = "value"

    def __str__(self) -> str:
        if self.offset is None:
            return self.reason
        place = f"{self.topic}-{self.partition}, offset {self.offset}"
        return f"{place}: the {self.field} cannot be decoded: {self.reason}"


class KafkaStorageError(KafkaError):
    """Files could not be written or synced. Records acknowledged before are safe.

    The log accepts no appends until it is opened again, unless the disk was full, or a lookup for a possible
    retry of a batch failed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class ClientError(KafkaError):
    """An error of a client: not the answer of a broker."""


class NetworkError(ClientError):
    """No connection to a broker, or it ended before the response. The request may have been executed."""

    code = ErrorCode.NETWORK_EXCEPTION


class KafkaTimeoutError(ClientError, TimeoutError):
    """No result within the time limit (Kafka: ``TimeoutException``). ``__cause__`` has the last error of a
    broker, if one came."""

    code = ErrorCode.REQUEST_TIMED_OUT


class ClosedError(ClientError):
    """The client or broker was closed, or this process is a fork of the process that created it."""


class IllegalStateError(ClientError):
    """A call that the state of the client does not allow, such as ``send`` before ``begin_transaction``."""


class BufferExhaustedError(KafkaTimeoutError):
    """The records that wait for the broker fill ``buffer.memory``, and no room came within
    ``max.block.ms``."""


class UnsupportedVersionError(KafkaError):
    """The broker does not support an API in the version that a call needs."""

    code = ErrorCode.UNSUPPORTED_VERSION


class ProducerFencedError(KafkaError):
    """Another producer uses the transactional id, and this one must be closed (KIP-98)."""

    code = ErrorCode.PRODUCER_FENCED


class InvalidProducerIdMappingError(KafkaError):
    """The coordinator does not know the producer id of this transactional id; it may have expired."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class TransactionAbortableError(KafkaError):
    """The transaction failed: abort it, and begin a new one (KIP-890)."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class ConcurrentTransactionsError(KafkaError):
    """The previous transaction of the transactional id is not complete yet."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class TopicAlreadyExistsError(KafkaError):
    """A topic of this name exists."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class RebalanceInProgressError(KafkaError):
    """The group rebalances: the member must join again."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class IllegalGenerationError(KafkaError):
    """The generation of the member is not the generation of its group."""

    code = ErrorCode.ILLEGAL_GENERATION


class UnknownMemberIdError(KafkaError):
    """The group does not have this member; it may have been removed after its session timeout."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceIdError(KafkaError):
    """Another member uses the ``group.instance.id`` (KIP-345)."""

    code = ErrorCode.FENCED_INSTANCE_ID


class CommitFailedError(ClientError):
    """Offsets were not committed, because the group has given their partitions to another member."""


def class_of(code: int) -> type[KafkaError]:
    """Return the error class for a code of Kafka. A code without a class in this module gets one with its
    name, such as ``NotControllerError``."""
    row = ErrorCode.of(code)
    found = _CLASSES.get(row)
    if found is None:
        name = "".join(word.capitalize() for word in row.name.removesuffix("_ERROR").split("_")) + "Error"
        doc = f"Kafka's error {row.name}."
        found = _CLASSES[row] = type(name, (KafkaError,), {"code": row, "__doc__": doc})
    return found


def error_for(code: int, message: str | None = None) -> KafkaError:
    """Return an error for a code in a broker's response, with the broker's message or Kafka's name of the
    code."""
    return class_of(code)(message or ErrorCode.of(code).name)


_CLASSES: Final[dict[int, type[KafkaError]]] = {ErrorCode.UNKNOWN_SERVER_ERROR: KafkaError}
_CLASSES.update(
    (kind.code, kind)
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, KafkaError) and "code" in vars(kind)
    if not issubclass(kind, ClientError)
)

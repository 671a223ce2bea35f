"""Types shared by all packages: topic partitions, producers, isolation levels, Kafka's "no value" numbers."""

from __future__ import annotations

import enum
import re
from typing import Final, Literal, NamedTuple

from txnkafka.errors import InvalidTopicError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_OFFSET = -1
NO_PARTITION_LEADER_EPOCH = -1
NO_COORDINATOR_EPOCH = -1
_LEAST_SECONDS, _LEAST_MILLISECONDS = 10**9, 10**11  # 2001 in seconds, 1973 in milliseconds
_LARGEST_SEQUENCE = 2**31 - 1
_LARGEST_PARTITION: Final = 2**31 - 1
_MAX_TOPIC_NAME_LENGTH: Final = 249
_LEGAL_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")


class TopicPartition(NamedTuple):
    """A partition of a topic, as Kafka writes it: ``orders-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    """The identity of one incarnation of a producer."""

    producer_id: int
    producer_epoch: int


class ProducerStateEntry(NamedTuple):
    """The state of one producer in a partition: epochs, open transaction, last batch; -1 for none."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    current_txn_first_offset: int
    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record of the last batch."""
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.last_sequence - self.offset_delta) & _LARGEST_SEQUENCE

    @property
    def has_open_transaction(self) -> bool:
        """Return whether the producer has an open transaction."""
        return self.current_txn_first_offset != NO_OFFSET


class CompletedTxn(NamedTuple):
    """A transaction that ended with the marker at ``last_offset``; ``.txnindex`` has the aborted ones."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


IsolationLevelName = Literal["read_committed", "read_uncommitted"]


class IsolationLevel(enum.Enum):
    """The visibility of transactional records to a reader; the values are Kafka's configuration values."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"

    @classmethod
    def of(cls, value: str | IsolationLevel) -> IsolationLevel:
        """Return the member for a name or a member; raises ``ValueError`` that lists the valid names."""
        if isinstance(value, cls):
            return value
        try:
            return cls(str(value).lower())
        except ValueError:
            names = " or ".join(level.value for level in cls)
            raise ValueError(f"isolation level must be {names}, not {value!r}") from None


class TimestampType(enum.IntEnum):
    """The source of a record's timestamp (``org.apache.kafka.common.record.TimestampType``)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @property
    def label(self) -> str:
        """The name in Kafka: ``CreateTime``, ``LogAppendTime``, ``NoTimestampType``."""
        return ("CreateTime", "LogAppendTime", "NoTimestampType")[self]


def check_milliseconds(**times: int | None) -> None:
    """Raise ValueError for a time since the epoch that looks like seconds, as ``time.time()`` returns them.
    Smaller times, as in made-up logs, are accepted."""
    for name, given in times.items():
        if given is not None and _LEAST_SECONDS <= given < _LEAST_MILLISECONDS:
            raise ValueError(f"{name} is in milliseconds since the epoch; {given} looks like seconds")


def check_integers(**given: object) -> None:
    """Raise TypeError for the first argument that is neither an int nor None."""
    for name, value in given.items():
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(f"{name} must be an int, not {value!r}{_how_to_get(name)}")


def _how_to_get(name: str) -> str:
    if name != "timestamp" and not name.endswith("_time"):
        return ""
    example = "int(datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000)"
    return f"; it is milliseconds since 1970 in UTC, as in {example}"


def validate_topic(name: str) -> None:
    """Raise InvalidTopicError for an invalid topic name (``common.internals.Topic.validate``)."""
    if name in ("", ".", ".."):
        fault = "is not allowed"
    elif len(name) > _MAX_TOPIC_NAME_LENGTH:
        fault = f"is longer than {_MAX_TOPIC_NAME_LENGTH} characters"
    elif not _LEGAL_TOPIC.fullmatch(name):
        fault = "contains characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise InvalidTopicError(f"topic name {name[:_MAX_TOPIC_NAME_LENGTH]!r} {fault}: choose another name")


def validate_partition(topic_partition: TopicPartition) -> None:
    """Raise InvalidTopicError for an invalid topic name, ValueError for an invalid number: Kafka does not
    start with ``x-2147483648``, and ``x--1`` is a partition of another topic."""
    if not isinstance(topic_partition, tuple):
        raise TypeError(f'a partition is TopicPartition("orders", 0), not {topic_partition!r}')
    topic, number = topic_partition
    validate_topic(topic)
    if isinstance(number, bool) or not hasattr(number, "__index__") or not 0 <= number <= _LARGEST_PARTITION:
        raise ValueError(f"{topic}: a partition number must be 0 to {_LARGEST_PARTITION}, not {number!r}")

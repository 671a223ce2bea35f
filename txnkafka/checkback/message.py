"""Messages and results, by the names of RocketMQ's client."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

TAGS: Final = "TAGS"
"""The header with the tags of a message."""
TXN_ID: Final = "txn.id"
"""The header with the transaction id, which each visible record of a half has."""


class LocalTransactionState(enum.Enum):
    """The answer of a TransactionListener, and the outcome of a half."""

    COMMIT_MESSAGE = "commit"
    ROLLBACK_MESSAGE = "rollback"
    UNKNOWN = "unknown"
    UNKNOW = "unknown"  # noqa: PIE796  RocketMQ's spelling

    def __repr__(self) -> str:
        return self.name


class SendStatus(enum.Enum):
    """The state of a sent message. A send that failed raises an error instead."""

    SEND_OK = "ok"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message. Only ``topic`` and ``body`` are positional.

    ``keys`` becomes the key of the Kafka record, and so chooses the partition unless ``partition`` is given;
    text is encoded in UTF-8. ``tags`` becomes the header ``TAGS``, each of ``properties`` a header; further
    ``headers`` are pairs of a name and bytes or None. ``timestamp`` is in milliseconds since 1970, by default
    the clock's.

    ``transaction_id`` makes the message idempotent: a second message with the same id is the same half.
    ``check_immunity_time_in_seconds`` delays the first check; it is never counted and refuses nothing.
    ``delay_time_level`` and ``deliver_time_ms`` exist to be refused with DelayNotSupportedError."""

    topic: str = field(kw_only=False)
    body: Buffer | str | None = field(default=None, kw_only=False)
    tags: str | None = None
    keys: Buffer | str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    headers: Iterable[tuple[str, Buffer | None]] = ()
    partition: int | None = None
    timestamp: int | None = None
    transaction_id: str | None = None
    check_immunity_time_in_seconds: float | None = None
    delay_time_level: int = 0
    deliver_time_ms: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise TypeError(f"the topic of a message is a name, not {self.topic!r}")
        object.__setattr__(self, "headers", tuple(self.headers))

    @property
    def is_delayed(self) -> bool:
        """Return whether the message asks for a delay."""
        return bool(self.delay_time_level) or self.deliver_time_ms is not None

    def key_bytes(self) -> Buffer | None:
        """Return the key of the record."""
        return _bytes(self.keys)

    def value_bytes(self) -> Buffer | None:
        """Return the value of the record."""
        return _bytes(self.body)

    def record_headers(self) -> list[tuple[str, Buffer | None]]:
        """Return the headers of the record, without the transaction id."""
        tags = [] if self.tags is None else [(TAGS, self.tags.encode())]
        named = [(name, value.encode()) for name, value in self.properties.items()]
        return [*tags, *named, *self.headers]


@dataclass(frozen=True, kw_only=True)
class MessageExt(Message):
    """A message as a listener gets it. ``check_times`` is the number of this check, 0 in
    ``execute_local_transaction``; ``born_timestamp`` the time of the half, in milliseconds. ``others`` are
    the further messages of the same half."""

    producer_group: str = ""
    born_timestamp: int = -1
    check_times: int = 0
    others: tuple[Message, ...] = ()

    @classmethod
    def of(
        cls,
        message: Message,
        *,
        transaction_id: str,
        producer_group: str,
        born_timestamp: int,
        check_times: int = 0,
        others: tuple[Message, ...] = (),
    ) -> MessageExt:
        """Return a message with the facts of its half."""
        given = {each.name: getattr(message, each.name) for each in fields(Message)}
        given["transaction_id"] = transaction_id
        return cls(
            **given, producer_group=producer_group, born_timestamp=born_timestamp, check_times=check_times,
            others=others,
        )  # fmt: skip

    @property
    def msg_id(self) -> str | None:
        """The transaction id, as in RocketMQ."""
        return self.transaction_id


class SendResult(NamedTuple):
    """The place of a plain message."""

    send_status: SendStatus
    topic: str
    partition: int
    queue_offset: int


@dataclass(frozen=True, kw_only=True)
class TransactionSendResult:
    """The result of ``send_message_in_transaction``, which does not wait until the message is visible.

    ``local_transaction_state`` is the answer of the local transaction, UNKNOWN after the exception
    ``local_exception``. ``queue_offset`` is the offset of the half in its partition of ``__txn_half``,
    as in RocketMQ: the visible record has another."""

    send_status: SendStatus
    msg_id: str
    transaction_id: str
    queue_offset: int
    local_transaction_state: LocalTransactionState
    local_exception: BaseException | None = field(default=None, compare=False)


def _bytes(value: Buffer | str | None) -> Buffer | None:
    return value.encode() if isinstance(value, str) else value

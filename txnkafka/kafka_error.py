"""The base classes of all errors; ``txnkafka.errors`` has them with the others."""

from __future__ import annotations

from txnkafka.error_codes import ErrorCode


class KafkaError(Exception):
    """Base class of all errors of this package. ``code`` is Kafka's error code; UNKNOWN_SERVER_ERROR (-1) for
    an error without a code in Kafka."""

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    @property
    def retriable(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.code.retriable

    @property
    def txn_requires_abort(self) -> bool:
        """Return whether the transaction of the request must be aborted, after which its producer can
        continue."""
        return self.code.abortable

    @property
    def fatal(self) -> bool:
        """Return whether the sender of the request must stop sending."""
        return self.code.fatal


class LocatedError(KafkaError):
    """An error about bytes in a file, with file and position; outer layers fill in the parts that inner
    layers do not know."""

    remedy = ""

    def __init__(
        self,
        reason: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        file: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.offset = offset
        self.file = file
        self.topic = topic
        self.partition = partition

    def locate(
        self, *, file: str | None = None, topic: str | None = None, partition: int | None = None
    ) -> None:
        """Set the unknown parts of the location; known parts stay."""
        self.file = self.file if self.file is not None else file
        if self.topic is None:
            self.topic, self.partition = topic, partition

    def __reduce__(self) -> tuple[object, ...]:
        # Spark sends errors between processes; keyword-only arguments need this.
        return (_rebuild, (type(self), self.reason, self.__dict__.copy()))

    def __str__(self) -> str:
        where = []
        if self.topic is not None:
            where.append(f"{self.topic}-{self.partition}")
        if self.file is not None:
            where.append(str(self.file))
        if self.position is not None:
            where.append(f"position {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        text = self.reason + (f" ({', '.join(where)})" if where else "")
        return f"{text}. {self.remedy}" if self.remedy else text


def _rebuild(kind: type[LocatedError], reason: str, state: dict[str, object]) -> LocatedError:
    error = kind(reason)
    error.__dict__.update(state)
    return error

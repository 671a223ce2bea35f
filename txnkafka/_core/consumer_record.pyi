from collections.abc import Callable, Iterable
from typing import Any, final

from txnkafka._core.columns import RecordColumns
from txnkafka.model import TimestampType

@final
class ConsumerRecord:
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        key: Any = None,
        value: Any = None,
        timestamp: int = -1,
        timestamp_type: int = 0,
        headers: Iterable[tuple[str, bytes | None]] = (),
        leader_epoch: int | None = None,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def rebuilt(
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    timestamp_type: int,
    key: Any,
    value: Any,
    headers: Iterable[tuple[str, bytes | None]],
    leader_epoch: int | None,
) -> ConsumerRecord: ...
def consumer_records(
    columns: RecordColumns,
    topic: str,
    partition: int,
    begin: int,
    end: int,
    *,
    header_key: Callable[[bytes], str],
    key_deserializer: Callable[[bytes], Any] | None = None,
    value_deserializer: Callable[[bytes], Any] | None = None,
) -> list[ConsumerRecord]: ...

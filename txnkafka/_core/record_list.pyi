from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, final

from typing_extensions import Buffer

_T = TypeVar("_T")

class RecordFuture(Generic[_T]):
    """The result of one ``send``."""

    @property
    def index(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def batch(self) -> Any: ...
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> _T: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def add_done_callback(self, call: Callable[[RecordFuture[_T]], object]) -> None: ...

class RecordList:
    @property
    def records(self) -> list[tuple[object, ...]]: ...
    @property
    def size(self) -> int: ...
    is_open: bool
    def __new__(cls, batch: object, limit: int) -> RecordList: ...
    def __len__(self) -> int: ...
    def add(
        self,
        key: Buffer | None,
        value: Buffer | None,
        timestamp: int,
        headers: Iterable[tuple[str, Buffer | None]] | None = None,
    ) -> RecordFuture[Any] | None: ...

@final
class RecordAppender:
    accepts: bool
    def __init__(
        self, topics: dict[str, Any], process: object, now_ms: Callable[[], int] | None, *, accepts: bool,
        hashes: bool,
    ) -> None: ...  # fmt: skip
    def append(
        self,
        topic: str,
        key: Buffer | None,
        value: Buffer | None,
        partition: int | None,
        timestamp: int | None,
        headers: Iterable[tuple[str, Buffer | None]] | None,
    ) -> RecordFuture[Any] | None: ...

def record_size(
    key: Buffer | None, value: Buffer | None, headers: Iterable[tuple[str, Buffer | None]] | None = None
) -> int: ...

from collections.abc import Iterable, Iterator
from typing import Literal

from txnkafka._core.columns import RecordColumns

FIELDS: tuple[str, ...]

class TextWriter:
    topic: str
    partition: int
    encoding: str
    fields: tuple[str, ...]
    def __new__(
        cls,
        topic: str,
        partition: int,
        *,
        encoding: Literal["utf8", "base64"] = "utf8",
        terminal: bool = False,
        fields: Iterable[str] = ...,
    ) -> TextWriter: ...
    @property
    def csv_header(self) -> bytes: ...
    def json_lines(
        self, columns: RecordColumns, start: int = 0, stop: int | None = None
    ) -> Iterator[memoryview]: ...
    def csv_rows(
        self, columns: RecordColumns, start: int = 0, stop: int | None = None
    ) -> Iterator[memoryview]: ...
    def base64_lines(
        self, columns: RecordColumns, column: Literal["key", "value"] = "value"
    ) -> Iterator[memoryview]: ...

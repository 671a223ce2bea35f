from collections.abc import Iterator
from typing import Literal

from txnkafka._core.columns import RecordColumns

class TextWriter:
    topic: str
    partition: int
    encoding: str
    def __new__(
        cls,
        topic: str,
        partition: int,
        *,
        encoding: Literal["utf8", "base64"] = "utf8",
        terminal: bool = False,
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

from collections.abc import Iterable

from typing_extensions import Buffer

_Headers = Iterable[tuple[str | Buffer, Buffer | None]]
_InputRecord = tuple[Buffer | None, Buffer | None, int] | tuple[Buffer | None, Buffer | None, int, _Headers]

class RecordInput:
    def __len__(self) -> int: ...

class InputColumns(RecordInput):
    def __new__(
        cls,
        *,
        timestamps: Buffer,
        offsets: Buffer | None = None,
        key_offsets: Buffer | None = None,
        key_data: Buffer | None = None,
        key_validity: Buffer | None = None,
        value_offsets: Buffer | None = None,
        value_data: Buffer | None = None,
        value_validity: Buffer | None = None,
        header_offsets: Buffer | None = None,
        header_key_offsets: Buffer | None = None,
        header_key_data: Buffer | None = None,
        header_value_offsets: Buffer | None = None,
        header_value_data: Buffer | None = None,
        header_value_validity: Buffer | None = None,
    ) -> InputColumns: ...

class InputRecords(RecordInput):
    def __new__(cls, records: Iterable[_InputRecord]) -> InputRecords: ...

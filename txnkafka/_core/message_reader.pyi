from typing import Any

from txnkafka._core.message_table import Table

def read(
    table: Table, data: bytes | bytearray | memoryview, position: int, left: list[int]
) -> tuple[Any, int]: ...
def read_client_id(
    data: bytes | bytearray | memoryview, position: int, flexible: bool, limit: int
) -> tuple[str | None, int]: ...
def skip_tagged_fields(data: bytes | bytearray | memoryview, position: int, limit: int) -> int: ...

from collections.abc import Callable
from typing import Any

MAX_STRING_BYTES: int

def misfit(kind: str, value: object) -> SchemaError: ...

class SchemaError(ValueError):
    """Bytes or values that do not follow the table: ``path`` is the field (``members[2].client_id``),
    ``position`` the byte, or None for values."""

    reason: str
    position: int | None
    steps: list[str]
    def __init__(self, reason: str, position: int | None = None) -> None: ...
    def inside(self, step: str) -> SchemaError: ...
    @property
    def path(self) -> str: ...

class Part:
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    def __init__(
        self,
        name: str,
        type: str,
        *,
        nullable: bool = False,
        compact: bool = False,
        strict: bool = False,
        tag: int | None = None,
        default: Any = None,
        make_default: Callable[[], Any] | None = None,
        element: Part | None = None,
        table: Table | None = None,
        minimum_size: int = 1,
        values: int = 1,
    ) -> None: ...

class Table:
    def __init__(
        self,
        cls: type | None,
        *,
        flexible: bool,
        positional: tuple[Part, ...],
        tagged: tuple[Part, ...],
        absent: tuple[Part, ...] = (),
        refused: tuple[Part, ...] = (),
    ) -> None: ...

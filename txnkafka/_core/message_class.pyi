from collections.abc import Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")

def message_class(
    cls: type[_T], names: tuple[str, ...], defaults: tuple[Any, ...], shown: Iterable[bool]
) -> type[_T]: ...

"""Memory that ends exactly where an input ends.

A bytes object has a zero byte behind its end and comes out of Python's own arenas, so that reading past its
end goes unnoticed. An array of bytes that was made by slicing has memory of its own, of exactly its size;
with ``PYTHONMALLOC=malloc`` that is a block of the address sanitizer, with poison behind it.
"""

from __future__ import annotations

import ctypes
from array import array
from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = ["compiled_modules", "guarded", "protection_gap", "sanitizer_is_loaded"]

PACKAGE = Path(__file__).parents[2] / "txnkafka"


def guarded(content: bytes | memoryview) -> memoryview:
    """A copy of ``content`` with nothing readable behind it."""
    return memoryview(array("B", bytes(content))[:])


def compiled_modules() -> list[ModuleType]:
    """Every module of the package that is compiled, by its source file."""
    sources = (each.relative_to(PACKAGE.parent).with_suffix("") for each in sorted(PACKAGE.rglob("*.pyx")))
    return [import_module(".".join(each.parts)) for each in sources]


def sanitizer_is_loaded() -> bool:
    """Whether this process runs with the address sanitizer."""
    return hasattr(ctypes.CDLL(None), "__asan_address_is_poisoned")


def protection_gap(*modules: ModuleType) -> str | None:
    """Why an overread in these compiled modules would go unnoticed; None when it would not."""
    if not sanitizer_is_loaded():
        return "the address sanitizer is not loaded"
    is_poisoned = ctypes.CDLL(None).__asan_address_is_poisoned
    is_poisoned.argtypes, is_poisoned.restype = [ctypes.c_void_p], ctypes.c_int
    for size in (1, 7, 8, 61, 500, 513, 5000):
        block = array("B", bytes(size))[:]
        address, _ = block.buffer_info()
        if is_poisoned(address + size - 1) or not is_poisoned(address + size):
            return f"the byte behind {size} bytes can be read; is PYTHONMALLOC=malloc set?"
    for module in modules:
        with open(module.__file__ or "", "rb") as file:
            if b"__asan_report_load" not in file.read():
                return f"{module.__file__} was not compiled with the address sanitizer"
    return None

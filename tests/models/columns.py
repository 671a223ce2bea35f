"""Turns records into the columns that an encoder takes, with the variants that Arrow allows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from tests.models.builder import PlainRecord

__all__ = ["columns_of"]


def _validity(contents: Sequence[bytes | None]) -> bytes | None:
    """Return a validity bitmap; None if there are no nulls."""
    if None not in contents:
        return None
    bits = sum(1 << i for i, content in enumerate(contents) if content is not None)
    return bits.to_bytes((len(contents) + 7) // 8, "little")


def _offsets(lengths: Iterable[int], typecode: str, begin: int) -> array[int]:
    return array(typecode, accumulate(lengths, initial=begin))


def _binary(name: str, contents: Sequence[bytes | None], typecode: str, junk: bytes) -> dict[str, Any]:
    """Return offsets, data and validity; ``junk`` is put before and after the data."""
    lengths = (len(content or b"") for content in contents)
    return {
        f"{name}_offsets": _offsets(lengths, typecode, len(junk)),
        f"{name}_data": junk + b"".join(content or b"" for content in contents) + junk,
        f"{name}_validity": _validity(contents),
    }


def columns_of(
    records: Sequence[PlainRecord],
    *,
    typecode: str = "i",
    junk: bytes = b"",
    offsets: Sequence[int] | None = None,
    buffer: Callable[[Any], Any] = lambda content: content,
) -> dict[str, Any]:
    """Return arguments for InputColumns; ``buffer`` may copy each buffer to another place."""
    headers = [header for record in records for header in record.headers]
    columns: dict[str, Any] = {"timestamps": array("q", [record.timestamp for record in records])}
    columns |= _binary("key", [record.key for record in records], typecode, junk)
    columns |= _binary("value", [record.value for record in records], typecode, junk)
    if headers:
        columns["header_offsets"] = _offsets((len(record.headers) for record in records), typecode, 0)
        columns |= _binary("header_key", [key for key, _ in headers], typecode, junk)
        columns |= _binary("header_value", [value for _, value in headers], typecode, junk)
        del columns["header_key_validity"]
    if offsets is not None:
        columns["offsets"] = array("q", offsets)
    return {name: None if each is None else buffer(each) for name, each in columns.items()}

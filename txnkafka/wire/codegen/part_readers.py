"""What generated readers call for parts that contain others: arrays, structs, tagged fields.

Each is made for one field, and is ``(data, position, end, left) -> (value, next position)``. A count is
checked against the bytes that are left before anything is made of it, and ``left[0]`` is how many more values
the message may have, of ``left[-1]`` in all: an element of three bytes becomes an object of a hundred times
that size.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Any, Final, NamedTuple

from txnkafka.wire.codegen.primitive_readers import ReadSized, count_reader, null, uuid_text
from txnkafka.wire.scalars import read_uvarint, short
from txnkafka.wire.schema import SchemaError

__all__ = [
    "UNKNOWN_TAGGED_FIELDS",
    "Element",
    "ReadPart",
    "array_reader",
    "number_reader",
    "numbers_reader",
    "read_all_tagged_fields",
    "read_tagged_fields",
    "sized_part",
    "skip_tagged_fields",
    "struct_reader",
]

UNKNOWN_TAGGED_FIELDS: Final = "unknown_tagged_fields"
ReadPart = Callable[[memoryview, int, int, list[int]], tuple[Any, int]]
Collected = type[tuple[Any, ...]] | type[list[Any]]


class Element(NamedTuple):
    """What an array of one version consists of: the least bytes of an element, and the most Python values it
    becomes without those of arrays in it."""

    read: ReadPart
    minimum_size: int
    values: int


def number_reader(layout: str, size: int, name: str) -> ReadPart:
    """One number; a uuid where the layout is ``>16s``."""

    def number(data: memoryview, position: int, end: int, left: list[int]) -> tuple[Any, int]:
        if position + size > end:
            raise short(size, position, end).inside(name)
        (value,) = unpack_from(layout, data, position)
        return uuid_text(value) if layout == ">16s" else value, position + size

    return number


def sized_part(read: ReadSized, name: str) -> ReadPart:
    """A string or bytes."""
    return lambda data, position, end, left: read(data, position, end, name)


def struct_reader(read: ReadPart, name: str, *, nullable: bool, null: int = -1) -> ReadPart:
    """A struct that is a field; where it may be null behind an int8, which is 1 or that of ``null``."""

    def struct(data: memoryview, position: int, end: int, left: list[int]) -> tuple[Any, int]:
        try:
            if nullable:
                is_present, position = _presence(data, position, end, null)
                if not is_present:
                    return None, position
            return read(data, position, end, left)
        except SchemaError as error:
            raise error.inside(name) from None

    return struct


def _presence(data: memoryview, position: int, end: int, null: int) -> tuple[bool, int]:
    if position >= end:
        raise short(1, position, end)
    (presence,) = unpack_from("b", data, position)
    if presence not in (1, null):
        raise SchemaError(f"a struct that may be null begins with 1 or {null}, not {presence}", position)
    return presence == 1, position + 1


# Arrays


def array_reader(
    element: Element, name: str, collected: Collected, *, flexible: bool, nullable: bool
) -> ReadPart:
    """Structs or strings, as ``collected``."""
    read_count, read_element = _checked_count(element, name, flexible, nullable), element.read

    def array(data: memoryview, position: int, end: int, left: list[int]) -> tuple[Any, int]:
        count, position = read_count(data, position, end, left)
        if count < 0:
            return None, position
        found: list[Any] = []
        try:
            for _ in range(count):
                value, position = read_element(data, position, end, left)
                found.append(value)
        except SchemaError as error:
            raise error.inside(f"[{len(found)}]").inside(name) from None
        return collected(found), position

    return array


def numbers_reader(
    element: Element, layout: str, name: str, collected: Collected, *, flexible: bool, nullable: bool
) -> ReadPart:
    """Numbers, as ``collected``; ``layout`` is that of one of them."""
    read_count, size = _checked_count(element, name, flexible, nullable), element.minimum_size

    def numbers(data: memoryview, position: int, end: int, left: list[int]) -> tuple[Any, int]:
        count, position = read_count(data, position, end, left)
        if count < 0:
            return None, position
        return collected(unpack_from(f">{count}{layout}", data, position)), position + count * size

    return numbers


def _checked_count(element: Element, name: str, flexible: bool, nullable: bool) -> ReadPart:
    """A count that fits into the bytes and the values that are left; -1 where null is allowed."""
    read_count = count_reader(flexible)
    _, minimum_size, values = element

    def count(data: memoryview, position: int, end: int, left: list[int]) -> tuple[int, int]:
        found, start = read_count(data, position, end, name)
        if found < 0:
            if nullable:
                return found, start
            raise null(name, position)
        if found * minimum_size > end - start:
            reason = f"{found} elements do not fit into the {end - start} bytes left"
            raise SchemaError(reason, position).inside(name)
        try:
            _take(left, found * values, position)
        except SchemaError as error:
            raise error.inside(name) from None
        return found, start

    return count


def _take(left: list[int], values: int, position: int) -> None:
    left[0] -= values
    if left[0] < 0:
        raise SchemaError(f"the message has more than {left[-1]} values", position)


# Tagged fields (KIP-482). Kafka does not check, and we do: tags ascend, a known field fills its size.


def skip_tagged_fields(data: memoryview, position: int, end: int, left: list[int]) -> int:
    """The position behind the tagged fields of a struct that knows none."""
    if position < end and not data[position]:
        return position + 1
    return read_tagged_fields(data, position, end, left, {})[1]


def read_tagged_fields(
    data: memoryview, position: int, end: int, left: list[int], known: dict[int, tuple[str, ReadPart]]
) -> tuple[dict[str, Any], int]:
    """Values of the known tagged fields that are there, by name; others are skipped, but counted."""
    return _read_tagged_fields(data, position, end, left, known=known, unknown=None)


def read_all_tagged_fields(
    data: memoryview, position: int, end: int, left: list[int], known: dict[int, tuple[str, ReadPart]]
) -> tuple[dict[str, Any], int]:
    """The same, and where there are others, pairs of their tags and bytes as UNKNOWN_TAGGED_FIELDS."""
    if position < end and not data[position]:
        return {}, position + 1
    unknown: list[tuple[int, bytes]] = []
    found, position = _read_tagged_fields(data, position, end, left, known=known, unknown=unknown)
    if unknown:
        found[UNKNOWN_TAGGED_FIELDS] = unknown
    return found, position


def _read_tagged_fields(
    data: memoryview,
    position: int,
    end: int,
    left: list[int],
    *,
    known: dict[int, tuple[str, ReadPart]],
    unknown: list[tuple[int, bytes]] | None,
) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    count, start = read_uvarint(data, position, end)
    if 2 * count > end - start:
        raise SchemaError(f"{count} tagged fields do not fit into the {end - start} bytes left", position)
    _take(left, count if unknown is None else 3 * count, position)
    last_tag = -1
    for _ in range(count):
        tag, position = read_uvarint(data, start, end)
        size, position = read_uvarint(data, position, end)
        if tag <= last_tag:
            raise SchemaError(f"tag {tag} follows tag {last_tag}", start)
        if size > end - position:
            raise short(size, position, end)
        last_tag, start = tag, position + size
        if tag in known:
            name, read_field = known[tag]
            found[name], position = read_field(data, position, start, left)
            if position != start:
                reason = f"{start - position} bytes are left over in the tagged field"
                raise SchemaError(reason, position).inside(name)
        elif unknown is not None:
            unknown.append((tag, bytes(data[position:start])))
    return found, start

"""Kafka's zigzag varints as org.apache.kafka.common.utils.ByteUtils reads them.

At most 5 bytes (int) or 10 bytes (long); bits that do not fit are dropped, longer encodings are errors,
non-minimal encodings are accepted.
"""

from __future__ import annotations

__all__ = ["VarintError", "read_varint", "read_varlong", "write_varint", "write_varlong"]


class VarintError(ValueError):
    """The varint is too long, or the bytes end inside it."""


def _read(data: bytes, position: int, bits: int, longest: int) -> tuple[int, int]:
    result = 0
    for i in range(longest):
        if position + i >= len(data):
            raise VarintError("the bytes end inside a varint")
        byte = data[position + i]
        result |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            unsigned = result & ((1 << bits) - 1)
            return (unsigned >> 1) ^ -(unsigned & 1), position + i + 1
    raise VarintError(f"a varint of more than {longest} bytes")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the 32-bit number at ``position`` and the position after it."""
    return _read(data, position, 32, 5)


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return the 64-bit number at ``position`` and the position after it."""
    return _read(data, position, 64, 10)


def _write(value: int, bits: int) -> bytes:
    rest = ((value << 1) ^ (value >> (bits - 1))) & ((1 << bits) - 1)
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def write_varint(value: int) -> bytes:
    """Encode a 32-bit number in as few bytes as possible."""
    return _write(value, 32)


def write_varlong(value: int) -> bytes:
    """Encode a 64-bit number in as few bytes as possible."""
    return _write(value, 64)

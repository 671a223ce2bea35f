"""One raw snappy block, element by element (format_description.txt of google/snappy)."""

from __future__ import annotations

__all__ = ["SnappyError", "decompress_block", "store_block"]


class SnappyError(ValueError):
    """The bytes are no snappy block."""


def _length(block: bytes) -> tuple[int, int]:
    value = 0
    for i in range(5):
        if i >= len(block):
            raise SnappyError("no length")
        value |= (block[i] & 0x7F) << (7 * i)
        if block[i] < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, i + 1
    raise SnappyError("length too large")


def decompress_block(block: bytes) -> bytes:
    """Return the content; raises ``SnappyError``."""
    expected, position = _length(block)
    output = bytearray()
    while position < len(block):
        tag = block[position]
        position += 1
        if tag & 3 == 0:
            position = _literal(block, position, tag >> 2, output)
        else:
            position = _copy(block, position, tag, output)
        if len(output) > expected:
            raise SnappyError("more bytes than promised")
    if len(output) != expected:
        raise SnappyError("fewer bytes than promised")
    return bytes(output)


def _literal(block: bytes, position: int, code: int, output: bytearray) -> int:
    size_bytes = max(0, code - 59)
    size = int.from_bytes(block[position : position + size_bytes], "little") if size_bytes else code
    position += size_bytes
    stop = position + size + 1
    if stop > len(block):
        raise SnappyError("a literal runs past the end")
    output += block[position:stop]
    return stop


def _copy(block: bytes, position: int, tag: int, output: bytearray) -> int:
    offset_bytes = (0, 1, 2, 4)[tag & 3]
    if position + offset_bytes > len(block):
        raise SnappyError("a copy is cut off")
    offset = int.from_bytes(block[position : position + offset_bytes], "little")
    if tag & 3 == 1:
        size = (tag >> 2 & 7) + 4
        offset |= (tag >> 5) << 8
    else:
        size = (tag >> 2) + 1
    if not 0 < offset <= len(output):
        raise SnappyError("a copy from before the beginning")
    for _ in range(size):
        output.append(output[-offset])
    return position + offset_bytes


def store_block(content: bytes) -> bytes:
    """Encode as literals only: valid, not smaller."""
    encoded = bytearray()
    rest = len(content)
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    for start in range(0, len(content), 60):
        piece = content[start : start + 60]
        encoded.append((len(piece) - 1) << 2)
        encoded += piece
    return bytes(encoded)

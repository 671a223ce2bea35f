"""Changes that fit any bytes: flips, boundary numbers, varints, cuts, repeats, pieces of other inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.models.varint import write_varint, write_varlong

__all__ = [
    "Field", "boundary_number", "change_bytes", "put_number", "resize_bytes", "splice", "tricky_varint",
]  # fmt: skip

Field = tuple[int, int]  # position and size of a big-endian number

INTERESTING = (0, 1, -1, 2, -2, 7, 8, 16, 32, 48, 49, 60, 61, 62, 63, 64, 127, 128, 129, 255, 256, 4096)
VARINT_ODDITIES = (
    b"\x80\x80\x80\x80\x00",  # zero, in as many bytes as a varint may have
    b"\x80\x80\x80\x80\x80\x00",  # one byte too many for a varint
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff\xff\xff\xff\x7f",  # bits beyond the thirty-second
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",  # one too many for a varlong
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\x80\x00",
    b"\x80",
    b"\xff",
    b"\x01",
    b"\x00",
)


def boundary_number(random: Random, size: int) -> int:
    """A number of ``size`` bytes, two's complement: near a limit, small, or near a power of two."""
    bits = 8 * size
    kind = random.randrange(4)
    if kind == 0:
        number = random.choice(INTERESTING)
    elif kind == 1:
        number = random.choice((-(1 << bits - 1), (1 << bits - 1) - 1)) + random.randint(-2, 2)
    elif kind == 2:
        number = (1 << random.randrange(bits)) + random.randint(-2, 2)
    else:
        number = random.randint(-300, 300)
    return number % (1 << bits)


def put_number(random: Random, content: bytes, field: Field) -> bytes:
    """Write a boundary number into a field, or move the field's value by a little."""
    position, size = field
    if position + size > len(content):
        return content
    old = int.from_bytes(content[position : position + size], "big")
    moved = (old + random.randint(-3, 3)) % (1 << 8 * size)
    new = moved if random.random() < 0.3 else boundary_number(random, size)
    return content[:position] + new.to_bytes(size, "big") + content[position + size :]


def tricky_varint(random: Random) -> bytes:
    """A varint or varlong as a writer would not write it, or with a value at a limit."""
    if random.random() < 0.4:
        return random.choice(VARINT_ODDITIES)
    if random.random() < 0.5:
        value = boundary_number(random, 4)
        return write_varint(value - (1 << 32) if value >> 31 else value)
    value = boundary_number(random, 8)
    return write_varlong(value - (1 << 64) if value >> 63 else value)


def _flip(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _byte(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    changed[random.randrange(len(changed))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return bytes(changed)


def _number(random: Random, content: bytes) -> bytes:
    return put_number(random, content, (random.randrange(len(content)), random.choice((1, 2, 4, 8))))


def _little_endian(random: Random, content: bytes) -> bytes:
    position, size = random.randrange(len(content)), random.choice((2, 3, 4, 8))
    number = boundary_number(random, size).to_bytes(size, "little")
    return content[:position] + number + content[position + size :]


def _varint(random: Random, content: bytes) -> bytes:
    position = random.randrange(len(content))
    return content[:position] + tricky_varint(random) + content[position + random.randint(0, 3) :]


def _insert(random: Random, content: bytes) -> bytes:
    position = random.randint(0, len(content))
    filler = random.choice((bytes(8), b"\xff" * 4, b'"\\\n\0', b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"))
    return content[:position] + filler[: random.randint(1, len(filler))] + content[position:]


def _delete(random: Random, content: bytes) -> bytes:
    position = random.randrange(len(content))
    return content[:position] + content[position + random.choice((1, 1, 2, 4, 8, 30)) :]


def _repeat(random: Random, content: bytes) -> bytes:
    position = random.randrange(len(content))
    piece = content[position : position + random.choice((1, 4, 16, 64))]
    return content[:position] + piece * random.choice((2, 2, 3, 40)) + content[position + len(piece) :]


def _cut(random: Random, content: bytes) -> bytes:
    return content[: random.randrange(len(content))]


IN_PLACE: Sequence[Callable[[Random, bytes], bytes]] = (_flip, _byte, _number, _little_endian)
RESIZING: Sequence[Callable[[Random, bytes], bytes]] = (_varint, _insert, _delete, _repeat, _cut)


def change_bytes(random: Random, content: bytes) -> bytes:
    """A change that keeps the size."""
    return random.choice(IN_PLACE)(random, content) if content else content


def resize_bytes(random: Random, content: bytes) -> bytes:
    """A change that may move what follows."""
    if not content:
        return tricky_varint(random)
    return random.choice((*IN_PLACE, *RESIZING))(random, content)


def splice(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """The beginning of one input and the end of another."""
    other = random.choice(pool)
    return content[: random.randint(0, len(content))] + other[random.randint(0, len(other)) :]

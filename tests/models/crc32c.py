"""CRC-32C (Castagnoli), reflected, from the polynomial: for the tests of our own code. Other tests use the
package crc32c, which is a thousand times as fast."""

from __future__ import annotations

__all__ = ["crc32c", "crc32c_bitwise"]

_POLYNOMIAL = 0x82F63B78


def _shift(value: int, bits: int) -> int:
    for _ in range(bits):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = [_shift(byte, 8) for byte in range(256)]


def crc32c_bitwise(data: bytes, value: int = 0) -> int:
    """Compute the CRC one bit at a time."""
    state = value ^ 0xFFFFFFFF
    for byte in data:
        state = _shift(state ^ byte, 8)
    return state ^ 0xFFFFFFFF


def crc32c(data: bytes, value: int = 0) -> int:
    """Compute the CRC one byte at a time, starting from ``value``, the CRC of the preceding bytes."""
    state = value ^ 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ _TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF

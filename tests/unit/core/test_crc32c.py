"""CRC-32C: every implementation that this machine can run equals the bit-by-bit model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.crc32c import crc32c as model_crc32c
from tests.models.crc32c import crc32c_bitwise
from txnkafka._core.crc32c import crc32c, crc32c_with, implementations

NOISE = bytes((i * i * 7 + i // 3) & 0xFF for i in range(8192))


def test_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_the_table_is_always_there() -> None:
    assert implementations()[-1] == "table"


@pytest.mark.parametrize("name", implementations())
def test_every_length_and_alignment(name: str) -> None:
    lengths = [*range(300), 447, 448, 511, 512, 513, 575, 767, 768, 769, 1023, 1535, 1536, 2304, 4096, 8100]
    for length in lengths:
        for start in (0, 1, 7):
            data = NOISE[start : start + length]
            assert crc32c_with(name, data, 0) == crc32c_with("table", data, 0), (length, start)


@pytest.mark.parametrize("name", implementations())
@given(data=st.binary(max_size=2000), value=st.integers(0, 2**32 - 1), cut=st.integers(0, 2000))
def test_against_the_model_and_in_two_parts(name: str, data: bytes, value: int, cut: int) -> None:
    whole = crc32c_with(name, data, value)
    assert whole == model_crc32c(data, value)
    assert whole == crc32c_with(name, data[cut:], crc32c_with(name, data[:cut], value))


def test_the_model_is_the_definition() -> None:
    for length in (0, 1, 2, 3, 9, 64):
        assert model_crc32c(NOISE[:length]) == crc32c_bitwise(NOISE[:length])


def test_an_unknown_implementation_is_named() -> None:
    with pytest.raises(ValueError, match="no CRC-32C implementation 'magic' here, only"):
        crc32c_with("magic", b"")

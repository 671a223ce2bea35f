"""C functions and Python's bindings decompress the same, and ``TXNKAFKA_CODECS`` selects one of them."""

from __future__ import annotations

import pytest

from tests.models.framing import lz4_block, lz4_frame
from txnkafka._core.codec_functions import codec_libraries
from txnkafka.errors import CorruptRecordError
from txnkafka.record import codecs
from txnkafka.record.compression import CompressionType, Compressor, Decompressor

CONTENT = bytes(range(256)) * 3000 + b"the end"
NAMES = ["gzip", "snappy", "lz4", "zstd"]
READERS = ["functions", "bindings"]


def result(payload: bytes, name: str, max_bytes: int) -> bytes | str:
    decompressor = Decompressor(max_bytes=max_bytes)
    try:
        begin, end = decompressor.append(CompressionType.named(name), payload)
    except CorruptRecordError as error:
        return str(error)
    return bytes(decompressor.buffer[begin:end])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 1000, 1 << 16, len(CONTENT)])
def test_both_readers_return_the_same_within_each_limit(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = bytes(Compressor(name).compress(CONTENT[:size]))
    for limit in {max(size - 1, 0), size, size + 1, 1 << 20}:
        found = []
        for reader in READERS:
            monkeypatch.setenv("TXNKAFKA_CODECS", reader)
            found.append(result(payload, name, limit))
        assert found[0] == found[1]
        assert limit < size or found[0] == CONTENT[:size]


@pytest.mark.parametrize("name", sorted(codec_libraries()))  # others are read by the bindings
def test_the_bindings_are_not_called_for_usual_batches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise AssertionError("the reader of the bindings was called")

    monkeypatch.setattr(codecs, f"decompress_{name}", refused)
    payload = bytes(Compressor(name).compress(CONTENT))
    assert result(payload, name, 1 << 20) == CONTENT
    monkeypatch.setenv("TXNKAFKA_CODECS", "bindings")
    with pytest.raises(AssertionError, match="was called"):
        result(payload, name, 1 << 20)


def test_an_lz4_frame_with_checksums_of_blocks_is_left_to_the_bindings() -> None:
    frame = lz4_frame([lz4_block(b"content" * 9, checksum=True)], flags=0x70)
    assert result(frame, "lz4", 1 << 20) == b"content" * 9


def test_an_unknown_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXNKAFKA_CODECS", "java")
    with pytest.raises(ValueError, match="TXNKAFKA_CODECS must be functions or bindings, not 'java'"):
        Decompressor()

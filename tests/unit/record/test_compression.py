"""The decompressor as a whole: its buffer, its limits, and the cost of hostile payloads."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import igzip_lib

from tests.models.builder import compress
from tests.models.framing import XERIAL_HEADER, gzip_member, lz4_block, lz4_frame, zstd_frame
from txnkafka.errors import CorruptRecordError, UnsupportedCompressionTypeError
from txnkafka.record import CompressionType, Decompressor
from txnkafka.record.output_buffer import RETAINED_CAPACITY

ALL_CODECS = list(CompressionType)
MIB = 1 << 20
REAL_INFLATE = igzip_lib.IgzipDecompressor


def content_of(decompressor: Decompressor, region: tuple[int, int]) -> bytes:
    return bytes(decompressor.buffer[region[0] : region[1]])


def test_names_are_kafkas() -> None:
    assert [codec.label for codec in CompressionType] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [int(codec) for codec in CompressionType] == [0, 1, 2, 3, 4]
    assert CompressionType.of(3) is CompressionType.LZ4


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_5_to_7_do_not_exist(codec: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError):
        Decompressor().append(codec, b"payload")
    with pytest.raises(UnsupportedCompressionTypeError):
        CompressionType.of(codec)


@given(st.lists(st.tuples(st.sampled_from(ALL_CODECS), st.binary(min_size=1)), max_size=8))
@settings(max_examples=100)
def test_batches_lie_behind_each_other(batches: list[tuple[CompressionType, bytes]]) -> None:
    decompressor = Decompressor()
    regions = [decompressor.append(codec, compress(codec, content)) for codec, content in batches]
    assert [content_of(decompressor, region) for region in regions] == [content for _, content in batches]
    assert [start for start, _ in regions] == [0, *[end for _, end in regions]][: len(regions)]
    assert decompressor.end == sum(len(content) for _, content in batches)


@given(st.sampled_from(ALL_CODECS), st.binary(max_size=200), st.integers(min_value=1, max_value=3000))
@settings(max_examples=100)
def test_round_trip_over_block_and_chunk_borders(codec: CompressionType, piece: bytes, times: int) -> None:
    content = piece * times + b"."
    decompressor = Decompressor()
    assert content_of(decompressor, decompressor.append(codec, compress(codec, content))) == content


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_growing_keeps_what_is_there_and_old_views(codec: CompressionType) -> None:
    decompressor = Decompressor()
    first = decompressor.append(codec, compress(codec, b"first" * 1000))
    old_view = decompressor.buffer[first[0] : first[1]]
    content = bytes(range(256)) * (5 * MIB // 256)
    second = decompressor.append(codec, compress(codec, content))
    assert content_of(decompressor, second) == content
    assert content_of(decompressor, first) == old_view == b"first" * 1000


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_reset_reuses_the_memory(codec: CompressionType) -> None:
    decompressor = Decompressor()
    decompressor.append(codec, compress(codec, b"some content"))
    buffer = decompressor.buffer
    decompressor.reset()
    assert decompressor.end == 0
    assert decompressor.append(codec, compress(codec, b"other")) == (0, 5)
    assert decompressor.buffer is buffer


def test_reset_gives_unusually_much_memory_back() -> None:
    decompressor = Decompressor()
    decompressor.append(0, bytes(RETAINED_CAPACITY + 1))
    decompressor.reset()
    assert len(decompressor.buffer) == 0


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_damaged_batch_leaves_no_trace(codec: int) -> None:
    decompressor = Decompressor()
    region = decompressor.append(codec, compress(codec, b"good " * 20_000))
    damaged = compress(codec, b"other " * 20_000)[:-9]
    with pytest.raises(CorruptRecordError):
        decompressor.append(codec, damaged)
    assert decompressor.end == region[1]
    assert content_of(decompressor, region) == b"good " * 20_000


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_the_limit_is_exact(codec: CompressionType) -> None:
    decompressor = Decompressor(max_bytes=100_000)
    for _ in range(2):
        start, end = decompressor.append(codec, compress(codec, b"ab" * 50_000))
        assert end - start == 100_000
    with pytest.raises(CorruptRecordError, match="100000"):
        decompressor.append(codec, compress(codec, b"ab" * 50_000 + b"c"))
    assert decompressor.end == 200_000


@pytest.mark.parametrize("codec", [1, 4])
def test_the_ratio_is_limited(codec: int) -> None:
    """16 MiB are always allowed; larger content only up to 2048 times the payload's size, which gzip cannot
    exceed."""
    decompressor = Decompressor()
    assert decompressor.append(codec, compress(codec, bytes(16 * MIB))) == (0, 16 * MIB)
    payload = zstd_frame(bytes(17 * MIB))
    assert 2048 * len(payload) < 17 * MIB
    with pytest.raises(CorruptRecordError, match=str(16 * MIB)):
        decompressor.append(CompressionType.ZSTD, payload)


def zstd_that_claims(blocks: int) -> bytes:
    """Encode a frame of blocks that repeat one byte 128 KiB times."""
    run = (128 << 10) << 3 | 1 << 1
    last = struct.pack("<I", run | 1)[:3] + b"x"
    return b"\x28\xb5\x2f\xfd\0\x58" + (struct.pack("<I", run)[:3] + b"x") * blocks + last


BOMBS = {
    "gzip 1 GiB in members": (1, gzip_member(bytes(64 * MIB)) * 16),
    "zstd 1 GiB of runs": (4, zstd_that_claims(8192)),
    "zstd 1 GiB in frames": (4, zstd_frame(bytes(64 * MIB)) * 16),
    "lz4 1 GiB": (3, lz4_frame([lz4_block(bytes(4 * MIB))] * 256, descriptor=0x70)),
    "snappy that says 4 GiB": (2, b"\xff\xff\xff\xff\x0f" + b"\0a"),
    "snappy chunk that says 4 GiB": (2, XERIAL_HEADER + struct.pack(">i", 7) + b"\xff\xff\xff\xff\x0f\0a"),
    "zstd single segment of 2^62 bytes": (
        4,
        b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 62) + b"\1\0\0",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_bounded_memory(name: str) -> None:
    codec, payload = BOMBS[name]
    decompressor = Decompressor(max_bytes=32 * MIB)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError):
            decompressor.append(codec, payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # tracemalloc sees everything but the buffer
    assert peak < 12 * MIB
    assert len(decompressor.buffer) <= 64 * MIB
    assert decompressor.end == 0


class WatchedInflate:
    """An isal decompressor that records the sizes of its inputs: it copies what it does not use."""

    largest = 0

    def __init__(self, flag: int) -> None:
        self._inflate = REAL_INFLATE(flag)

    def decompress(self, data: memoryview, max_length: int) -> bytes:
        WatchedInflate.largest = max(WatchedInflate.largest, len(data))
        return self._inflate.decompress(data, max_length)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inflate, name)


@pytest.mark.slow
def test_thousands_of_gzip_members_take_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """60,000 members: copying the rest of the payload for each of them would be 36 GB."""
    members = 60_000
    payload = gzip_member(b"a") * members
    monkeypatch.setattr(igzip_lib, "IgzipDecompressor", WatchedInflate)
    decompressor = Decompressor()
    assert content_of(decompressor, decompressor.append(1, payload)) == b"a" * members
    assert 0 < WatchedInflate.largest <= 64 << 10 < len(payload)


@pytest.mark.parametrize("frame", ["single segment", "window descriptor"])
def test_a_zstd_window_is_looked_at_before_anything_is_decoded(frame: str) -> None:
    size = (1 << 27) + 1
    headers = {"single segment": b"\xe0" + struct.pack("<Q", size), "window descriptor": b"\0\x89"}
    with pytest.raises(CorruptRecordError, match="window of"):
        Decompressor().append(4, b"\x28\xb5\x2f\xfd" + headers[frame] + b"\1\0\0")

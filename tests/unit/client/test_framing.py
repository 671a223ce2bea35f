"""Frames of responses, from bytes that arrive in any pieces."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.client.framing import FrameReader
from txnkafka.errors import InvalidRequestError

SIZES = st.one_of(st.integers(0, 40), st.sampled_from([65_531, 65_532, 65_533, 65_536, 131_072, 200_001]))


def feed(reader: FrameReader, content: bytes, pieces: list[int]) -> list[memoryview]:
    """Give bytes to a reader in pieces of these sizes, at most as many as it has room for."""
    frames, at, turn = [], 0, 0
    while at < len(content):
        space = reader.space()
        assert len(space) > 0
        count = min(len(space), pieces[turn % len(pieces)], len(content) - at)
        space[:count] = content[at : at + count]
        space.release()
        frames += reader.received(count)
        at, turn = at + count, turn + 1
    return frames


@given(st.lists(SIZES, max_size=8), st.lists(st.integers(1, 100_000), min_size=1, max_size=5))
def test_frames_come_out_whole_and_stay_unchanged(sizes: list[int], pieces: list[int]) -> None:
    contents = [bytes([i % 251]) * size for i, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(each)) + each for each in contents)
    frames = feed(FrameReader("peer"), stream, pieces)
    assert [bytes(frame) for frame in frames] == contents


@pytest.mark.parametrize("size", [-1, 1_001, 2**31 - 1])
def test_a_frame_with_an_invalid_size_is_refused(size: int) -> None:
    reader = FrameReader("127.0.0.1:9092", max_frame_bytes=1_000)
    with pytest.raises(InvalidRequestError, match=r"127\.0\.0\.1:9092 announced a response of"):
        feed(reader, struct.pack(">i", size), [4])


def test_a_size_alone_takes_no_memory() -> None:
    reader = FrameReader("peer")
    assert feed(reader, struct.pack(">i", 1 << 30) + bytes(100), [104]) == []
    assert len(reader.space()) < 1 << 20

"""Frames come out of whatever pieces the bytes came in, and no memory is spent on what is only announced."""

from __future__ import annotations

import resource
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.errors import InvalidRequestError
from txnkafka.server import receive_buffer
from txnkafka.server.receive_buffer import BLOCK_SIZE, COPIED_SIZE, BlockPool, Frame, ReceiveBuffer

LIMIT = 100 << 20
SMALL = 64  # of a block, so that frames span blocks
WAITING = 1000  # connections


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def feed(buffer: ReceiveBuffer, data: bytes) -> list[Frame]:
    """All frames that are complete after ``data``."""
    found: list[Frame] = []
    while data:
        space = buffer.space()
        assert len(space) > 0
        count = min(len(space), len(data))
        space[:count] = data[:count]
        buffer.received(count)
        data = data[count:]
        while (frame := buffer.next_frame()) is not None:
            found.append(frame)
    return found


@pytest.fixture(params=["copied", "viewed"])
def small_blocks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(receive_buffer, "BLOCK_SIZE", SMALL)
    if request.param == "viewed":
        monkeypatch.setattr(receive_buffer, "COPIED_SIZE", -1)


FRAMES = (b"", b"abc", bytes(range(60)), bytes(range(256)), b"x" * 61, b"last")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("is_held", [True, False])
def test_every_split(is_held: bool) -> None:
    stream = framed(*FRAMES)
    for split in range(len(stream) + 1):
        buffer, frames = ReceiveBuffer(BlockPool(), LIMIT), []
        for part in (stream[:split], stream[split:]):
            for frame in feed(buffer, part):
                frames.append(frame if is_held else bytes(frame.view))
                if not is_held:
                    buffer.release(frame)
        assert [bytes(frame.view) if isinstance(frame, Frame) else frame for frame in frames] == [*FRAMES]


@pytest.mark.usefixtures("small_blocks")
def test_byte_by_byte() -> None:
    buffer, found = ReceiveBuffer(BlockPool(), LIMIT), []
    for number in framed(*FRAMES):
        found += feed(buffer, bytes([number]))
    assert [bytes(frame.view) for frame in found] == [*FRAMES]


@given(st.lists(st.binary(max_size=200), max_size=12), st.sampled_from([-1, 20, 200]), st.data())
def test_frames_do_not_change_before_they_are_released(
    frames: list[bytes], copied_size: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receive_buffer, "BLOCK_SIZE", SMALL)
        patch.setattr(receive_buffer, "COPIED_SIZE", copied_size)
        buffer, held, stream, count = ReceiveBuffer(BlockPool(), LIMIT), [], framed(*frames), 0
        while stream:
            size = data.draw(st.integers(1, len(stream)))
            found = feed(buffer, stream[:size])
            stream = stream[size:]
            held += list(zip(found, frames[count:], strict=False))
            count += len(found)
            for frame, expected in held:
                assert bytes(frame.view) == expected
            for _ in range(data.draw(st.integers(0, len(held)))):
                frame, _ = held.pop(data.draw(st.integers(0, len(held) - 1)))
                buffer.release(frame)
        assert count == len(frames)


def test_an_announced_size_allocates_nothing() -> None:
    buffer = ReceiveBuffer(BlockPool(), LIMIT)
    assert feed(buffer, struct.pack(">i", LIMIT)) == []
    buffer.space()
    assert buffer.allocated == BLOCK_SIZE


def test_memory_grows_with_the_bytes_that_came() -> None:
    size = 5 * BLOCK_SIZE + 7
    buffer, came = ReceiveBuffer(BlockPool(), LIMIT), 0
    stream = framed(bytes(size))
    while came < size:
        piece = stream[came : came + 10_000]
        assert feed(buffer, piece) == [] or came + len(piece) == len(stream)
        came += len(piece)
        assert buffer.allocated <= max(BLOCK_SIZE, 2 * came)
    buffer.space()
    assert buffer.allocated == BLOCK_SIZE  # large memory is given back with its frame


def test_an_idle_connection_has_no_memory() -> None:
    pool = BlockPool()
    buffer = ReceiveBuffer(pool, LIMIT)
    (frame,) = feed(buffer, framed(bytes(COPIED_SIZE + 1)))
    assert buffer.allocated == BLOCK_SIZE
    buffer.release(frame)
    assert buffer.allocated == 0
    assert pool.take() is frame.block


def test_connections_whose_small_requests_wait_share_one_block() -> None:
    pool = BlockPool()
    buffers = [ReceiveBuffer(pool, LIMIT) for _ in range(WAITING)]
    frames = [feed(buffer, framed(bytes(COPIED_SIZE))) for buffer in buffers]
    assert [(len(frame.view), frame.block) for (frame,) in frames] == [(COPIED_SIZE, None)] * WAITING
    assert not any(buffer.allocated for buffer in buffers)
    block = pool.take()
    assert pool.take() is not block
    for buffer, (frame,) in zip(buffers, frames, strict=True):
        buffer.release(frame)


def test_connections_that_have_sent_part_of_a_request_take_memory_for_that_part() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    buffers = [ReceiveBuffer(BlockPool(), LIMIT) for _ in range(WAITING)]
    for buffer in buffers:
        assert feed(buffer, framed(b"a request")[:-1]) == []
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < WAITING * BLOCK_SIZE / resource.getpagesize() / 4
    found = [bytes(frame.view) for buffer in buffers for frame in feed(buffer, b"t")]
    assert found == [b"a request"] * WAITING


def test_blocks_are_used_again_after_their_frames_are_released() -> None:
    buffer, blocks = ReceiveBuffer(BlockPool(), LIMIT), set()
    for _ in range(50):
        for frame in feed(buffer, framed(bytes(BLOCK_SIZE // 3), b"part")[:-2]):
            blocks.add(id(frame.block))
            buffer.release(frame)
        feed(buffer, b"rt")
    assert len(blocks) <= 3


@pytest.mark.parametrize("size", [-1, LIMIT + 1, -(2**31), 2**31 - 1])
def test_a_size_that_no_frame_has(size: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"a request of {size} bytes; .*max.bytes is {LIMIT}"):
        feed(ReceiveBuffer(BlockPool(), LIMIT), struct.pack(">i", size))


@pytest.mark.parametrize(
    ("hello", "what"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP client"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP client"),
        (b"PRI * HTTP/2.0\r\n", "HTTP/2 client"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS connection"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH client"),
    ],
)
def test_what_is_no_kafka_client(hello: bytes, what: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"does not use Kafka's protocol; .*{what}"):
        feed(ReceiveBuffer(BlockPool(), LIMIT), hello)


def test_later_bytes_are_not_taken_for_a_greeting() -> None:
    buffer = ReceiveBuffer(BlockPool(), LIMIT)
    assert len(feed(buffer, framed(b"abc"))) == 1
    with pytest.raises(InvalidRequestError, match="announced a request"):
        feed(buffer, b"GET / HTTP/1.1\r\n")

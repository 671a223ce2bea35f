"""Every framing that Kafka accepts or rejects, read by the package and by the model."""

from __future__ import annotations

import pytest

from tests.models.builder import Batch
from tests.models.codecs import CodecError, decompress
from tests.models.framing import lz4_frame, xerial, zstd_frame
from tests.models.framing_cases import CASES, CONTENT, RECORD_COUNT, STRICTER, FramingCase
from tests.models.record_batch import InvalidBatchError, decode_batch
from txnkafka.errors import CorruptRecordError, UnsupportedCompressionTypeError
from txnkafka.record import Decompressor
from txnkafka.record.codecs import lz4, zstd

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def decompressed(codec: int, payload: bytes, magic: int = 2) -> bytes:
    decompressor = Decompressor()
    start, end = decompressor.append(codec, payload, magic=magic)
    return bytes(decompressor.buffer[start:end])


@each_case
def test_accepts_and_rejects_what_kafka_does(case: FramingCase) -> None:
    if case.content is None:
        with pytest.raises(CorruptRecordError):
            decompressed(case.codec, case.payload)
    else:
        assert decompressed(case.codec, case.payload) == case.content


@each_case
def test_bindings_of_free_threaded_python_agree(case: FramingCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """cramjam replaces lz4 and zstandard where they have no wheels."""
    monkeypatch.setattr(lz4, "_decompress_block_into", lz4._with_cramjam)
    monkeypatch.setattr(zstd, "_decompress_into", zstd._with_cramjam)
    test_accepts_and_rejects_what_kafka_does(case)


def test_an_lz4_block_is_not_taken_for_one_with_its_size_in_front() -> None:
    broken = (
        b"\x04\x22\x4d\x18\x60\x40\x82" + bytes.fromhex("0a000000") + bytes.fromhex("208200005068656c6c6f")
    )
    with pytest.raises(CorruptRecordError):
        decompressed(3, broken + b"\0\0\0\0")


def test_a_snappy_length_has_at_most_five_bytes() -> None:
    with pytest.raises(CorruptRecordError, match="more than five bytes"):
        decompressed(2, bytes.fromhex("808080808000"))


@each_case
def test_a_memoryview_inside_other_bytes_is_read_up_to_its_end(case: FramingCase) -> None:
    payload = memoryview(b"\x55" * 9 + case.payload + b"\xaa" * 9)[9:-9]
    if case.content is None:
        with pytest.raises(CorruptRecordError):
            decompressed(case.codec, payload)
    else:
        assert decompressed(case.codec, payload) == case.content


@each_case
def test_the_model_agrees(case: FramingCase) -> None:
    if case.content is None:
        with pytest.raises(CodecError):
            decompress(case.codec, case.payload)
    else:
        assert decompress(case.codec, case.payload) == case.content


@each_case
def test_the_model_reads_the_records_of_each_case(case: FramingCase) -> None:
    batch = Batch(codec=case.codec, payload=case.payload, count=RECORD_COUNT).encode()
    if case.content is None:
        with pytest.raises(InvalidBatchError):
            decode_batch(batch)
    else:
        assert len(decode_batch(batch)) == RECORD_COUNT


def test_the_stricter_cases_are_in_the_table() -> None:
    assert {case.name for case in CASES if case.content is None} >= STRICTER


def test_magic_0_has_a_wrong_lz4_header_checksum() -> None:
    """KIP-57: writers of magic 0 included the frame magic in it; readers of magic 0 ignore it."""
    wrong, right = lz4_frame(CONTENT, magic=0), lz4_frame(CONTENT)
    for payload in (wrong, right):
        assert decompressed(3, payload, magic=0) == decompress(3, payload, 0) == CONTENT
    assert decompressed(3, right, magic=1) == decompress(3, right, 1) == CONTENT
    with pytest.raises(CorruptRecordError, match="checksum"):
        decompressed(3, wrong, magic=1)
    with pytest.raises(CodecError):
        decompress(3, wrong, 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_does_not_exist_before_magic_2(magic: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError):
        decompressed(4, zstd_frame(CONTENT), magic)
    with pytest.raises(CodecError):
        decompress(4, zstd_frame(CONTENT), magic)


def usual_payload(codec: int) -> bytes:
    return next(case.payload for case in CASES if case.codec == codec and case.content == CONTENT)


def check_against_model(codec: int, payload: bytes) -> bytes | None:
    """Check that both accept the payload or both refuse it; return the content."""
    try:
        expected = decompress(codec, payload)
    except CodecError:
        with pytest.raises(CorruptRecordError):
            decompressed(codec, payload)
        return None
    assert decompressed(codec, payload) == expected
    return expected


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_every_length_of_a_cut_payload(codec: int) -> None:
    """Snappy has no end mark, so a payload cut between chunks is valid; other codecs accept no cut
    payload."""
    payload = xerial(CONTENT, chunk_bytes=50) if codec == 2 else usual_payload(codec)
    contents = [check_against_model(codec, payload[:length]) for length in range(len(payload))]
    assert all(content is None or (codec == 2 and CONTENT.startswith(content)) for content in contents)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_every_flipped_bit(codec: int) -> None:
    payload = usual_payload(codec)
    for bit in range(8 * len(payload)):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        check_against_model(codec, bytes(flipped))

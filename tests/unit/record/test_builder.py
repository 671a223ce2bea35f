"""Batches with every codec and every kind of level: content, framing, and refused arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.models.codecs import decompress
from tests.models.columns import columns_of
from tests.models.vectors import VECTORS
from txnkafka._core.encode import encode_batch
from txnkafka.record import codecs
from txnkafka.record.builder import InputColumns, RecordBatchBuilder, build_batch
from txnkafka.record.codecs import lz4, zstd
from txnkafka.record.compression import CompressionType, Compressor, Decompressor

TWO = [(b"key", b"a" * 32, 1), (None, b"a" * 32, 2)]
LEVELS: dict[str, list[int | None]] = {
    "none": [None],
    "gzip": [None, -1, 1, 2, 3, 4, 6, 9],
    "snappy": [None],
    "lz4": [None, 1, 8, 9, 10, 17],
    "zstd": [None, -131072, -7, 1, 3, 12],
}
EVERY_LEVEL = [(name, level) for name, levels in LEVELS.items() for level in levels]
CODEC = {codec.label: codec for codec in CompressionType}


def payloads() -> dict[str, bytes]:
    """Return payloads that codecs treat differently: empty, noise, text across the ends of blocks."""
    source = random.Random(5)
    words = [source.randbytes(6) for _ in range(50)]
    text = b" ".join(source.choice(words) for _ in range(24_000))
    sizes = {"empty": 0, "byte": 1, "a snappy chunk": 32 << 10, "an lz4 block": 64 << 10, "more": 150_000}
    return {name: text[:size] for name, size in sizes.items()} | {"noise": source.randbytes(70_000)}


PAYLOADS = payloads()


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4"])
def test_vectors_are_written(name: str) -> None:
    assert build_batch(TWO, compression=name) == VECTORS[name].log


def test_the_zstd_vector_is_written_but_for_its_empty_last_block() -> None:
    ours, theirs = build_batch(TWO, compression="zstd")[61:], VECTORS["zstd"].log[61:]
    last, empty_block = 1, b"\1\0\0"
    assert ours[:6] == theirs[:6]
    assert ours[6] == theirs[6] | last
    assert ours[7:] + empty_block == theirs[7:]


@pytest.mark.parametrize(("name", "level"), EVERY_LEVEL)
@pytest.mark.parametrize("content", PAYLOADS)
def test_content_comes_back_from_other_readers_and_from_ours(
    name: str, level: int | None, content: str
) -> None:
    payload = PAYLOADS[content]
    compressed = bytes(Compressor(name, level).compress(payload))
    assert decompress(CODEC[name], compressed) == payload
    decompressor = Decompressor()
    begin, end = decompressor.append(CODEC[name], compressed)
    assert decompressor.buffer[begin:end] == payload


def test_levels_that_compress_more_do() -> None:
    text = PAYLOADS["more"]

    def size(name: str, level: int | None) -> int:
        return len(Compressor(name, level).compress(text))

    assert size("gzip", 9) < size("gzip", 4) < size("gzip", 1)
    assert size("gzip", None) == size("gzip", -1) == size("gzip", 6)
    assert size("zstd", 12) < size("zstd", 1) < size("zstd", -50)
    # Kafka's default is the fast compressor, and level 1 is not
    assert size("lz4", None) == size("lz4", 9) > size("lz4", 1) > size("lz4", 17)


FRAMINGS = {
    "gzip": "1f8b08000000000000ff",
    "snappy": "82534e415050590000000001000000010000",
    "lz4": "04224d18604082",
    "zstd": "28b52ffd0058",
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_headers_are_those_of_kafkas_writers(name: str) -> None:
    begin = bytes.fromhex(FRAMINGS[name])
    assert bytes(Compressor(name).compress(PAYLOADS["more"]))[: len(begin)] == begin


def test_what_lz4_cannot_make_smaller_is_stored() -> None:
    payload = PAYLOADS["noise"]
    compressed = bytes(Compressor("lz4").compress(payload))
    assert compressed[7:11] == (0x80000000 | 64 << 10).to_bytes(4, "little")
    assert len(compressed) == 7 + 4 + len(payload) + 4 + 4


@pytest.mark.parametrize("module", [lz4, zstd])
@pytest.mark.parametrize("level", [1, 3, 9])
def test_cramjam_replaces_a_missing_binding(
    monkeypatch: pytest.MonkeyPatch, module: Any, level: int
) -> None:
    name = "lz4" if module is lz4 else "zstd"
    monkeypatch.setattr(module, "lz4_block" if module is lz4 else "zstandard", None)
    compressed = bytes(Compressor(name, level).compress(PAYLOADS["more"]))
    assert decompress(CODEC[name], compressed) == PAYLOADS["more"]


@pytest.mark.parametrize("name", LEVELS)
def test_a_compressed_batch_has_the_header_of_the_plain_one(name: str) -> None:
    records = [PlainRecord(b"k", b"v" * i, 1000 - i, [(b"h", None)]) for i in range(40)]
    fields: dict[str, Any] = {
        "base_offset": 9,
        "partition_leader_epoch": 4,
        "producer_id": 1,
        "producer_epoch": 2,
        "base_sequence": 3,
        "transactional": True,
        "log_append_time": 5000,
    }
    columns = InputColumns(**columns_of(records))
    batch = RecordBatchBuilder(name).build(columns, **fields)
    plain = encode_batch(columns, **fields)
    expected = Batch(records=records, codec=CODEC[name], payload=bytes(batch[61:]), **fields)
    assert batch == expected.encode()
    assert decompress(CODEC[name], bytes(batch[61:])) == plain[61:]


def test_a_batch_has_at_least_one_record() -> None:
    with pytest.raises(ValueError, match="a batch has at least one record"):
        build_batch([], compression="zstd")


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Compressor("lzma"), "unknown codec 'lzma': Kafka has none, gzip, snappy, lz4, zstd"),
    (lambda: Compressor("none", 1), "none has no levels"),
    (lambda: Compressor("snappy", -1), "snappy has no levels"),
    (lambda: Compressor("gzip", 0), "gzip has levels 1 to 9, not 0"),
    (lambda: Compressor("gzip", 10), "gzip has levels 1 to 9, not 10"),
    (lambda: Compressor("lz4", 18), "lz4 has levels 1 to 17, not 18"),
    (lambda: Compressor("zstd", 23), "zstd has levels -131072 to 22, not 23"),
]


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_names_and_levels_that_kafka_has_not_are_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_every_codec_of_the_package_has_both_directions() -> None:
    names = {name.partition("_") for name in codecs.__all__ if "compress_" in name}
    assert {codec for way, _, codec in names if way == "compress"} == {
        codec for way, _, codec in names if way == "decompress"
    }

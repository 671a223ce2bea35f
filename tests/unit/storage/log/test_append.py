"""Which batches a leader accepts: every check, with Kafka's error, in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crc32c import crc32c

from tests.models.builder import legacy_entry
from tests.models.fetch_filter import decode_any
from tests.unit.storage.client import NOW, data, marker
from txnkafka._core.encode import replace_payload
from txnkafka._core.scan import scan
from txnkafka._core.validate import IncomingBatch
from txnkafka.config import LogConfig
from txnkafka.errors import InvalidRecordError, InvalidTimestampError, KafkaError
from txnkafka.record.builder import build_batch
from txnkafka.record.compression import CompressionType, Compressor
from txnkafka.storage.log.log_validator import AppendOrigin, LogValidator, batch_rules

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = [(b"key", b"value" * 20, NOW + i) for i in range(3)]
CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR

Fault = Callable[[bytearray], Any]


def put(position: int, size: int, value: int) -> Fault:
    """Return a fault that writes a number into a batch."""

    def change(batch: bytearray) -> None:
        batch[position : position + size] = (value % (1 << 8 * size)).to_bytes(size, "big")

    return change


def sealed(batch: bytearray) -> bytearray:
    """Set the CRC of the batch to the one of its bytes."""
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def validate(batch: bytes | bytearray, origin: AppendOrigin = CLIENT, **configs: Any) -> IncomingBatch:
    config = LogConfig(**configs)
    return LogValidator().validate(batch, config, batch_rules(config), origin, NOW)


def stored(batch: IncomingBatch) -> bytes:
    """Return the bytes that are written to the log."""
    return b"".join(batch.parts())


def refusal(batch: bytes | bytearray, origin: AppendOrigin = CLIENT, **configs: Any) -> int:
    """Return the error code of the refusal; the batch must stay unchanged."""
    content = bytearray(batch)
    with pytest.raises(KafkaError) as caught:
        validate(content, origin, **configs)
    assert content == batch
    assert str(caught.value)
    return caught.value.code


# In the order of the checks: fault, whether the CRC is computed after it, Kafka's error.
CHECKS: list[tuple[str, Fault, int]] = [
    ("cut off", lambda batch: batch.__delitem__(slice(-1, None)), 2),
    ("length below that of a header", put(8, 4, 48), 2),
    ("magic 3", put(16, 1, 3), 2),
    ("base offset that is not 0", put(0, 8, 5), 87),
    ("larger than max.message.bytes", lambda batch: None, 10),
    ("another CRC", put(17, 4, 1), 2),
    ("codec 5", put(21, 2, 5), 76),
    ("last offset below the first", put(23, 4, -1), 87),
    ("no records", put(57, 4, 0), 87),
    ("count that is not the range of offsets", put(57, 4, 2), 87),
    ("control bit", put(21, 2, 0x20), 87),
    ("producer without a sequence", put(43, 8, 7), 87),
]
UNCOVERED = {"cut off", "another CRC"}


def faulty(*numbers: int) -> tuple[bytearray, dict[str, Any]]:
    batch = data(count=3)
    size = len(batch)
    for number in sorted(numbers, reverse=True):
        name, fault, _ = CHECKS[number]
        fault(batch)
        if name not in UNCOVERED:
            sealed(batch)
    too_large = any(CHECKS[number][0].startswith("larger") for number in numbers)
    return batch, {"max_message_bytes": size - 5} if too_large else {}


@pytest.mark.parametrize("number", range(len(CHECKS)), ids=[name for name, _, _ in CHECKS])
def test_a_fault(number: int) -> None:
    batch, configs = faulty(number)
    assert refusal(batch, **configs) == CHECKS[number][2]


@pytest.mark.parametrize("number", range(len(CHECKS) - 1), ids=[name for name, _, _ in CHECKS[:-1]])
def test_the_first_of_two_faults_counts(number: int) -> None:
    """Tests each pair of faults that one batch can have."""
    for later in range(number + 1, len(CHECKS)):
        batch, configs = faulty(number, later)
        if CHECKS[number][0] == "last offset below the first" and CHECKS[later][0].startswith(
            ("no", "count")
        ):
            continue  # the same error
        assert refusal(batch, **configs) == CHECKS[number][2], CHECKS[later][0]


def test_bytes_behind_the_batch_and_old_formats_are_refused() -> None:
    assert refusal(data() + data()) == 87
    assert refusal(data() + b"\0") == 87
    assert refusal(legacy_entry(0, b"key", b"value", timestamp=NOW)) == 87
    assert refusal(b"") == refusal(bytes(30)) == 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("position", "value"), [(0, 126), (0, 4), (3, 9), (4, 127)])
def test_records_are_read_in_full(codec: str, position: int, value: int) -> None:
    """Tests faults in the length, the offset delta and the key length of the first record."""
    batch = data(count=3)
    batch[61 + position] = value
    if codec != "none":
        payload = Compressor(codec).compress(bytes(batch[61:]))
        batch = replace_payload(batch, payload, codec=CompressionType[codec.upper()])
    assert refusal(sealed(batch)) == 87


@pytest.mark.parametrize("codec", CODECS)
def test_all_codecs_are_taken_as_they_are(codec: str) -> None:
    batch = build_batch(RECORDS, compression=codec)
    prepared = validate(batch)
    assert stored(prepared) == batch
    assert (prepared.max_timestamp, prepared.log_append_time) == (NOW + 2, -1)


def test_damaged_compression_is_refused() -> None:
    for codec in CODECS[1:]:
        batch = build_batch(RECORDS, compression=codec)
        del batch[-3:]
        batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
        assert refusal(sealed(batch)) in (2, 87), codec


@pytest.mark.parametrize("kept", CODECS)
@pytest.mark.parametrize("sent", CODECS)
def test_lv_129_another_codec_is_recompressed(sent: str, kept: str) -> None:
    batch = build_batch(RECORDS, compression=sent)
    wanted = "uncompressed" if kept == "none" else kept
    found = bytearray(stored(validate(batch, compression_type=wanted)))
    assert scan(found)[0].attributes & 7 == CODECS.index(kept)
    assert decode_any(bytes(found)) == decode_any(bytes(batch))
    assert found[17:21] == crc32c(bytes(found[21:])).to_bytes(4, "big")
    if sent == kept:
        assert found == batch


def test_a_batch_that_is_too_large_when_recompressed() -> None:
    batch = build_batch([(b"key", b"x" * 5000, NOW)], compression="zstd")
    assert refusal(batch, compression_type="uncompressed", max_message_bytes=1000) == 10


def test_lv_127_log_append_time() -> None:
    """The log changes only the timestamp type bit and the largest timestamp of the batch."""
    for codec in CODECS:
        batch = build_batch(RECORDS, compression=codec)
        prepared = validate(batch, message_timestamp_type="LogAppendTime")
        content = stored(prepared)
        assert (prepared.max_timestamp, prepared.log_append_time) == (NOW, NOW)
        assert [record.timestamp for record in decode_any(content)] == [NOW] * 3
        assert content[61:] == batch[61:]
        assert content[17:21] == crc32c(content[21:]).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("timestamps", "code"),
    [
        ([NOW - 1000, NOW + 500], 0),
        ([-1, NOW], 0),
        ([NOW, NOW - 1001], 32),
        ([NOW + 501, NOW], 32),
        ([-1, NOW + 501], 32),
    ],
)
def test_lv_125_timestamps_too_old_or_too_new(timestamps: list[int], code: int) -> None:
    configs = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 500}
    for codec in CODECS:
        batch = build_batch([(b"k", b"v", timestamp) for timestamp in timestamps], compression=codec)
        if code:
            assert refusal(batch, **configs) == code
        else:
            assert validate(batch, **configs).max_timestamp == max(timestamps)
    assert validate(batch, **configs, message_timestamp_type="LogAppendTime").max_timestamp == NOW


def test_a_batch_that_arrives_with_log_append_time() -> None:
    """The timestamps of such a batch are checked, and the bit is cleared; a batch without timestamps is
    refused."""
    batch = data(timestamp=NOW - 5, log_append_time=NOW - 5)
    assert scan(stored(validate(batch)))[0].attributes & 8 == 0
    assert refusal(data(timestamp=-1, log_append_time=-1)) == 32


def test_lv_126_a_compacted_topic_needs_keys() -> None:
    batch = build_batch([(b"key", b"", NOW), (None, b"", NOW)])
    assert refusal(batch, cleanup_policy="compact") == 87
    assert validate(batch).record_count == 2
    assert refusal(build_batch([(None, b"", NOW)], compression="lz4"), cleanup_policy="compact,delete") == 87


def test_lv_121_control_batches_come_from_coordinators() -> None:
    content = marker(7)
    assert refusal(content) == 87
    assert stored(validate(content, COORDINATOR)) == content
    assert stored(validate(content, COORDINATOR, compression_type="zstd")) == content


def test_contradictory_producer_fields_are_not_checked() -> None:
    """A producer id without an epoch, a transactional batch without a producer id: Kafka's broker does not
    check these either."""
    lonely = data()
    put(21, 2, 0x10)(lonely)
    assert validate(sealed(lonely)).attributes == 0x10
    epochless = data(7, 0)
    put(51, 2, -1)(epochless)
    assert validate(sealed(epochless)).producer_epoch == -1


@pytest.mark.parametrize("codec", CODECS)
def test_every_record_that_is_refused_is_listed(codec: str) -> None:
    """Lists up to a hundred refused records of any kind; the raised error is that of the first failed
    check."""
    times = [NOW, NOW - 2000, NOW, NOW + 900]
    batch = build_batch(
        [(None if number == 2 else b"key", b"", timestamp) for number, timestamp in enumerate(times)],
        compression=codec,
    )
    configs = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 500}
    with pytest.raises(InvalidTimestampError, match="record 1 is 1699999998000, outside") as refused:
        validate(batch, cleanup_policy="compact", **configs)
    assert [number for number, _ in refused.value.record_errors] == [1, 2, 3]
    assert refused.value.record_errors[1][1] == "record 2 has no key, which a compacted topic needs"
    keyless = build_batch([(None, b"", NOW)] * 101, compression=codec)
    with pytest.raises(InvalidRecordError, match="record 0 has no key") as listed:
        validate(keyless, cleanup_policy="compact")
    assert [number for number, _ in listed.value.record_errors] == list(range(100))


def test_the_first_refused_record_of_a_kind_behind_a_hundred_others() -> None:
    batch = build_batch([(None, b"", NOW)] * 100 + [(b"key", b"", NOW - 2000)])
    with pytest.raises(InvalidTimestampError, match="records of the batch are refused") as refused:
        validate(batch, cleanup_policy="compact", message_timestamp_before_max_ms=1000)
    assert len(refused.value.record_errors) == 100


@pytest.mark.parametrize("count", [1, 60])
def test_a_buffer_that_is_cut_before_it_is_written(count: int) -> None:
    batch = data(count=count)
    incoming = validate(batch)
    del batch[-1]
    with pytest.raises(BufferError, match="was cut while it was appended"):
        incoming.parts()

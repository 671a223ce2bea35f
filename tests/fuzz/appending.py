"""The append target: one batch that a client sends, through what a leader looks at before it takes it.

What is taken can be read by every reader, says the same to the independent decoder, and is what was sent but
for the fields that a leader writes. What is refused has an error of Kafka's, and was not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.fuzz.decoding import WHOLE, decoded, only, selected
from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log, sealed
from tests.models.fetch_filter import decode_any
from tests.models.record_batch import InvalidBatchError
from txnkafka._core.encode import end_txn_marker
from txnkafka._core.scan import scan
from txnkafka._core.validate import IncomingBatch, read_batch
from txnkafka.config import LogConfig
from txnkafka.errors import KafkaError
from txnkafka.record.builder import build_batch
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.storage.log.log_validator import AppendOrigin, LogValidator, batch_rules

__all__ = ["APPEND", "append_seeds", "check_append"]

NOW = 1_700_000_000_000
CONFIGS = (
    LogConfig(max_message_bytes=100_000),
    LogConfig(message_timestamp_type="LogAppendTime", max_message_bytes=3000),
    LogConfig(compression_type="lz4", message_timestamp_before_max_ms=1000),
    LogConfig(compression_type="uncompressed", cleanup_policy="compact"),
)
CODES = {2, 10, 32, 76, 87}
HEADER_SIZE, LARGEST = 61, (1 << 63) - 1


def append_seeds() -> Iterator[tuple[str, bytes]]:
    """Batches of every codec, idempotent, transactional and control."""
    records = [(b"key", b"value" * 9, NOW + i, [("h", b"x"), ("", None)]) for i in range(4)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        yield f"codec-{codec}", bytes(build_batch(records, compression=codec))
    sender = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 5}
    yield "transactional", bytes(build_batch(records, transactional=True, **sender))
    yield "keyless", bytes(build_batch([(None, None, -1)]))
    yield "log-append-time", bytes(build_batch(records, log_append_time=NOW))
    marker = {"producer_id": 9, "producer_epoch": 1, "coordinator_epoch": 2}
    yield "marker", end_txn_marker(base_offset=0, timestamp=NOW, commit=True, **marker)


def check_append(content: bytes) -> str:
    """As a client's batch and as a coordinator's, by settings that the content chooses."""
    _walk(content)
    config = CONFIGS[sum(content[-3:]) % len(CONFIGS)]
    label = _prepare(content, config, AppendOrigin.CLIENT)
    _prepare(content, config, AppendOrigin.COORDINATOR)
    return label


def _walk(content: bytes) -> None:
    """The bare walk, in memory that ends where the bytes end, whatever the header says of them."""
    batch = read_batch(guarded(content))
    if batch.magic == 2 and HEADER_SIZE <= batch.size <= len(content):
        batch.walk_decompressed(guarded(content[HEADER_SIZE:]))


def _prepare(content: bytes, config: LogConfig, origin: AppendOrigin) -> str:
    batch = bytearray(content)
    try:
        prepared = LogValidator().validate(batch, config, batch_rules(config), origin, NOW)
    except KafkaError as error:
        require(error.code in CODES, f"{error!r} is no answer of a log")
        require(batch == content, "a batch that is refused was changed")
        return f"refused: {error.code} {''.join(c for c in str(error)[:40] if not c.isdigit())}"
    require(batch == content, "a batch that is taken was changed")
    if origin == AppendOrigin.CLIENT:
        _check(content, prepared, config)
    return f"accepted: codec {content[22] & 7}, {config.compression_type}, {config.message_timestamp_type}"


def _check(content: bytes, prepared: IncomingBatch, config: LogConfig) -> None:
    stored = b"".join(prepared.parts())
    log = guarded(stored)
    index = scan(log)
    require(len(index) == 1 and index.end_position == len(stored), "it is not one batch")
    found = decoded(ChunkDecoder(headers=True), selected(log, index, only(index, 0, WHOLE), 0, LARGEST))
    require(not isinstance(found, str), f"it cannot be read: {found}")
    try:
        sent, kept = decode_any(_by_its_records(content)), decode_any(stored)
    except InvalidBatchError as error:
        raise AssertionError("the model refuses what was taken") from error
    require(found == kept, "the readers disagree")
    require(
        [each[3:6] for each in sent] == [each[3:6] for each in kept], "keys, values or headers were changed"
    )
    require([each.offset for each in kept] == list(range(len(kept))), "offsets are not 0 to n - 1")
    require(index.last_offset[0] == len(kept) - 1, "the batch does not end with its last record")
    times = [NOW] * len(kept) if config.log_append_time else [each.timestamp for each in sent]
    require([each.timestamp for each in kept] == times, "times were changed")
    require(index.max_timestamp[0] == max(times), "the largest timestamp is another one")


def _by_its_records(content: bytes) -> bytes:
    """The batch without the bit that says LogAppendTime, which a client has no say in."""
    return sealed(content[:22] + bytes([content[22] & ~8]) + content[23:])


def mutate_batch(random: Random, content: bytes, pool: object) -> bytes:
    """Mostly inside what lengths and CRC allow."""
    return mutate_log(random, content, [content])


APPEND = Target("append", check_append, mutate_batch, iterations=3000)

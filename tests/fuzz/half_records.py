"""The target for the records of check-back messages: halves and decisions, checks, parked copies.

An input is that of ``log_records``. The decoders never raise; a typed record is encoded and decoded again; an
image of halves takes any record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.fuzz.engine import Target, require
from tests.fuzz.log_records import CONSTANT_SIZE, LARGEST_GROWTH, mutate_record, packed, unpacked
from txnkafka.coordinator.half.half_image import HalfImage
from txnkafka.wire.records.check_records import (
    AskRecord,
    ParkedRecord,
    ask_record_of,
    decode_ask_log,
    decode_parked_log,
    parked_record_of,
)
from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecidedBy,
    DecideRecord,
    EndRecord,
    HalfBatch,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
    decode_half_log,
    half_record_of,
)

__all__ = ["HALF_RECORD", "half_record_seeds"]

_KINDS = (
    (decode_half_log, half_record_of),
    (decode_ask_log, ask_record_of),
    (decode_parked_log, parked_record_of),
)
_BATCHES = (HalfBatch("orders", 0, b"\0" * 70), HalfBatch("bills-ü", 11, b""))


def check_half_record(content: bytes) -> str:
    """Decode a record, encode it again, and replay it."""
    kind, key, value = unpacked(content)
    decode, typed = _KINDS[kind % len(_KINDS)]
    decoded = decode(key, value)
    shown = json.dumps(decoded.as_dict(), allow_nan=False)
    bound = CONSTANT_SIZE + LARGEST_GROWTH * len(content)
    require(len(shown) <= bound, f"{len(content)} bytes become {len(shown)}")
    record = typed(decoded)
    require((record is None) >= (decoded.error is not None), "a typed record of an error")
    image = HalfImage()
    image.replay(0, key, value)
    if record is None:
        require(decoded.error or value is None, "no typed record, and no error")
        return f"refused: {kind % len(_KINDS)} {_where(decoded.error)}"
    require(typed(decode(*record.encode())) == record, "encoded and decoded, it is another record")
    return f"accepted: {kind % len(_KINDS)} {type(record).__name__} {len(image)}"


def _where(error: str | None) -> str:
    return "".join(each for each in (error or "")[:50] if not each.isdigit() and each != "-")


def half_record_seeds() -> Iterator[tuple[str, bytes]]:
    """Return a record of each type."""
    records = [
        HalfRecord("a" * 32, -1, "orders", 1_700_000_000_000, _BATCHES, 6_000, 15),
        HalfRecord("", 0, "", 0, ()),
        *(DecideRecord("id", 1, "g", outcome, DecidedBy.CHECK, 5, 2, "text") for outcome in Outcome),
        *(DecideRecord("id", 1, "g", Outcome.COMMIT, by, 5) for by in DecidedBy),
        AskedRecord("id", 15, 1_700_000_000_000, "host-1"),
        EndRecord("id", "g", Outcome.COMMIT, DecidedBy.PRODUCER, 9, 1, (("orders", 0), ("bills", 1))),
        EndRecord("id", "g", Outcome.PARK, DecidedBy.POLICY, 9, 15, (), "undecided after 15 checks"),
        *(HalfTombstone(kind, "id", 7 * (kind < HalfRecordType.ASKED)) for kind in HalfRecordType),
    ]
    for number, record in enumerate(records):
        yield f"half-{number:02}", packed(0, *record.encode())
    yield "ask", packed(1, *AskRecord("orders", "id", 1, 2, 3, 4, 5, _BATCHES).encode())
    yield "parked", packed(2, *ParkedRecord("id", "g", 1, -1, -1, 15, 2, "why", _BATCHES).encode())


HALF_RECORD = Target("half-record", check_half_record, mutate_record, iterations=3000)

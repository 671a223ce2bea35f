"""A world of clients and one owner that write to a log of halves, for property tests."""

from __future__ import annotations

from itertools import count

from tests.models.half_log import Log, Standing
from txnkafka.coordinator.half.half_image import Half, HalfImage, HalfState
from txnkafka.coordinator.half.settlement import Settlement, chosen
from txnkafka.wire.records.check_records import ParkedRecord, decode_parked_log, parked_record_of
from txnkafka.wire.records.half_records import (
    DecidedBy,
    DecideRecord,
    HalfBatch,
    HalfLogRecord,
    HalfRecord,
    Outcome,
    decode_half_log,
    half_record_of,
)

GROUP = "orders"


def half_record(transaction_id: str, nonce: int = 0, group: str = GROUP, size: int = 10) -> HalfRecord:
    """Return a half with one batch, which names the half."""
    batch = HalfBatch("t", 0, f"{transaction_id}/{nonce}".encode().ljust(size, b"."))
    return HalfRecord(transaction_id, nonce, group, 1_000, (batch,))


def decide_record(
    transaction_id: str, outcome: Outcome, nonce: int, group: str = GROUP, by: DecidedBy = DecidedBy.PRODUCER
) -> DecideRecord:
    """Return a decision."""
    return DecideRecord(transaction_id, nonce, group, outcome, by, 2_000)


def folded(log: Log, payload_budget: int = 1 << 20) -> HalfImage:
    """Return the image of a log."""
    image = HalfImage(payload_budget)
    for offset, record in log:
        image.replay(offset, *record.encode())
    assert not image.unreadable
    return image


def standings(image: HalfImage) -> dict[str, Standing]:
    """Return the states of all known halves."""
    found = {name: Standing("done", outcome=end.outcome) for name, end in image.ended.items()}
    return found | {half.transaction_id: standing_of(half) for half in image}


def standing_of(half: Half) -> Standing:
    """Return the state of a half of an image."""
    return Standing(
        half.state.value, half.producer_group, half.nonce, half.asks, half.outcome, half.decision_nonce,
        half.resume_nonce,
    )  # fmt: skip


class World:
    """``log`` has the committed records. ``visible`` are the payloads that became visible, in order;
    ``parked`` the content of ``__txn_check_max``."""

    def __init__(self) -> None:
        self.log: Log = []
        self.visible: list[bytes] = []
        self.parked: dict[str, ParkedRecord] = {}
        self.image = HalfImage(64)  # most payloads are only in the log
        self.nonces = count(1)
        self._payloads: dict[int, tuple[HalfBatch, ...]] = {}

    def append(self, record: HalfLogRecord) -> int:
        """Append a record of a client, or of a committed transaction."""
        offset = self.log[-1][0] + 1 if self.log else 0
        self.log.append((offset, record))
        if isinstance(record, HalfRecord):
            self._payloads[offset] = record.batches
        self.image.replay(offset, *record.encode())
        return offset

    def settle(self, *, crashes: bool) -> None:
        """Let the owner settle all decided halves in one transaction. ``crashes``: it is aborted."""
        content = Settlement()
        for half in chosen(self.image, {}):
            content.end(half, half.batches or self._payloads[half.offset], 3_000)
        for half in list(self.image.resuming.values()):
            content.resume(half, self.parked[half.transaction_id], next(self.nonces), 4_000)
        content.clean(list(self.image.strays), [])
        self.carry_out(content, crashes=crashes)

    def expire(self) -> None:
        """Let the owner forget all outcomes."""
        content = Settlement()
        content.clean([], self.image.expired(1 << 60, 1_000))
        self.carry_out(content, crashes=False)

    def carry_out(self, content: Settlement, *, crashes: bool) -> None:
        """Commit a settlement, or abort it."""
        if crashes:
            return
        self.visible += [each.records for each in content.batches]
        for key, value in content.parked_rows:
            record = parked_record_of(decode_parked_log(key, value))
            if record is None:
                parked = decode_parked_log(key, value).key or {}
                del self.parked[parked["transaction_id"]]
            else:
                self.parked[record.transaction_id] = record
        for key, value in content.half_rows:
            half_record = half_record_of(decode_half_log(key, value))
            assert half_record is not None
            self.append(half_record)

    def count(self, state: HalfState) -> int:
        """Return the number of halves in a state."""
        return sum(half.state is state for half in self.image)

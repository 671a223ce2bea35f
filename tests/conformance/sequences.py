"""Random steps for two logs, from a seed: what producers, coordinators and operators do, sound or not."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import NamedTuple

from tests.conformance.append_answer import Answer
from tests.conformance.twins import Twins
from txnkafka._core.crc32c import crc32c
from txnkafka._core.encode import end_txn_marker, set_max_timestamp
from txnkafka.record.builder import build_batch
from txnkafka.storage.log.log_validator import AppendOrigin

__all__ = ["Sequence"]

CODECS = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
PRODUCER_IDS = (0, 1, 7, 4000, 2**40, 2**63 - 1)
LARGEST_SEQUENCE = 2**31 - 1
REMEMBERED = 8  # batches that may be sent again, of each producer


class Known(NamedTuple):
    """One producer as Kafka describes it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int

    @property
    def is_open(self) -> bool:
        return self.transaction_start >= 0


class Sequence:
    """``run`` takes so many steps; the same seed takes the same ones."""

    def __init__(self, twins: Twins, seed: int, *, verify: bool, crashes: bool = True) -> None:
        self._twins = twins
        self._rng = random.Random(seed)
        self._verify = verify
        self._leader_epoch = 0
        self._sent: dict[int, list[bytes]] = {}
        steps: dict[Callable[[], None], int] = {
            self._plain: 12,
            self._idempotent: 14,
            self._transactional: 30,
            self._marker: 16,
            self._again: 8,
            self._unsound: 4,
            self._high_watermark: 8,
            self._wait: 10,
            self._elect: 2,
            self._roll: 1,
            self._truncate: 2,
            self._delete_records: 1,
            self._retain: 2,
            self._expire: 1,
            self._checkpoint: 1,
            self._restart: 1,
            self._crash: 1 if crashes else 0,
        }
        self._steps, self._weights = list(steps), list(steps.values())

    def run(self, steps: int) -> None:
        """Take the steps, and stop cleanly."""
        for _ in range(steps):
            (step,) = self._rng.choices(self._steps, self._weights)
            step()
        self._twins.close()

    # Producers

    def _plain(self) -> None:
        self._append(self._batch())

    def _idempotent(self) -> None:
        self._from_producer(self._rng.choice(PRODUCER_IDS[:3]), transactional=self._rng.random() < 0.05)

    def _transactional(self) -> None:
        self._from_producer(self._rng.choice(PRODUCER_IDS[2:]), transactional=self._rng.random() < 0.97)

    def _from_producer(self, producer_id: int, *, transactional: bool) -> None:
        epoch, sequence = self._next(producer_id)
        batch = self._batch(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
        )
        guards = (0, 0)
        if transactional and self._verify and self._rng.random() < 0.9:
            guards = self._twins.verify(producer_id, epoch, sequence, bump=self._rng.random() < 0.5)
        if self._append(batch, guards=guards).code == 0:
            self._sent[producer_id] = [*self._sent.get(producer_id, []), batch][-REMEMBERED:]

    def _next(self, producer_id: int) -> tuple[int, int]:
        """Epoch and sequence, mostly those that are next."""
        known = self._known().get(producer_id)
        if known is None:
            return self._rng.choice((0, 0, 3)), self._rng.choice((0, 0, 17, LARGEST_SEQUENCE - 1))
        next_sequence = (known.last_sequence + 1) & LARGEST_SEQUENCE
        luck = self._rng.random()
        if luck < 0.86:
            return known.producer_epoch, next_sequence
        if luck < 0.90:
            return known.producer_epoch, (next_sequence + self._rng.choice((-3, 1, 5))) & LARGEST_SEQUENCE
        if luck < 0.95:
            return min(known.producer_epoch + 1, 32767), self._rng.choice((0, 0, 0, 2))
        return max(known.producer_epoch - 1, 0), next_sequence

    def _again(self) -> None:
        """What was sent before is sent again; one batch in eight is one that nobody remembers."""
        if self._sent:
            producer_id = self._rng.choice(sorted(self._sent))
            self._append(self._rng.choice(self._sent[producer_id]))

    def _batch(self, **fields: int) -> bytes:
        now, rng = self._twins.now_ms, self._rng
        records = [
            (
                rng.choice((None, b"", b"key-%d" % rng.randrange(9))),
                rng.choice((None, b"", rng.randbytes(rng.randrange(90)))),
                now - rng.choice((0, 0, 1, 5, 40, 700, 5000)),
                [("h", b"v"), ("", None)] if rng.random() < 0.1 else [],
            )
            for _ in range(rng.choice((1, 1, 2, 3, 7)))
        ]
        if not fields and rng.random() < 0.05:
            # a producer of such a batch would count as idle since 1970
            records = [(key, value, -1, headers) for key, value, _, headers in records]
        return bytes(build_batch(records, compression=rng.choice(CODECS), **fields))  # type: ignore[arg-type]

    # Coordinators

    def _marker(self) -> None:
        known = self._known()
        opened = [each for each in known.values() if each.is_open]
        others = list(known.values()) or [Known(4000, 0, -1, -1, -1, -1)]
        producer = self._rng.choice(opened if opened and self._rng.random() < 0.85 else others)
        version = self._rng.choice((0, 0, 1, 2, 2, 2))
        usual = 1 if version == 2 and self._rng.random() < 0.85 else 0
        unusual = self._rng.choice((-1, 1)) if self._rng.random() < 0.05 else 0
        marker = end_txn_marker(
            base_offset=0,
            timestamp=self._twins.now_ms,
            producer_id=producer.producer_id,
            producer_epoch=min(max(producer.producer_epoch + usual + unusual, 0), 32767),
            coordinator_epoch=max(producer.coordinator_epoch + self._rng.choice((0, 0, 0, 0, 1, -1)), 0),
            commit=self._rng.random() < 0.5,
        )
        self._append(marker, origin=AppendOrigin.COORDINATOR, transaction_version=version)

    # What nobody should send

    def _unsound(self) -> None:
        batch = bytearray(self._batch())
        fault = self._rng.randrange(6)
        if fault == 0:
            batch[-1] ^= 1  # the CRC
        elif fault == 1:
            batch[7] = 1  # a base offset
        elif fault == 2:
            struct.pack_into(">q", batch, 43, 9)  # a producer without a sequence
            struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
        elif fault == 3:
            marker = end_txn_marker(
                base_offset=0, timestamp=0, producer_id=7, producer_epoch=0, coordinator_epoch=0, commit=True
            )
            batch = bytearray(marker)  # a client must not
        elif fault == 4:
            batch[16] = 3  # the magic
        else:
            set_max_timestamp(batch, 0, timestamp_type=0, max_timestamp=5)  # is put right
        self._append(bytes(batch))

    # Operators and time

    def _high_watermark(self) -> None:
        low, end = self._twins.theirs["hw"], self._twins.theirs["end"]
        self._twins.advance_high_watermark(self._rng.choice((end, self._rng.randint(low, end))))

    def _wait(self) -> None:
        self._twins.wait(self._rng.choice((1, 20, 300, 4000)))

    def _elect(self) -> None:
        self._leader_epoch += self._rng.choice((1, 3))

    def _roll(self) -> None:
        self._twins.roll()

    def _truncate(self) -> None:
        start, end = self._twins.theirs["start"], self._twins.theirs["end"]
        if self._is_whole():
            self._twins.truncate(self._rng.randint(max(start, end - 40), end))

    def _is_whole(self) -> bool:
        """Whether nothing was deleted: of what lies below the log start Kafka remembers more or less, as it
        happens."""
        return bool(self._twins.theirs["start"] == 0)

    def _delete_records(self) -> None:
        start, end = self._twins.theirs["start"], self._twins.theirs["hw"]
        self._twins.delete_records(self._rng.randint(start, min(start + 60, end + 1)))

    def _retain(self) -> None:
        self._twins.retain()

    def _expire(self) -> None:
        self._twins.expire()

    def _checkpoint(self) -> None:
        self._twins.checkpoint()

    def _restart(self) -> None:
        self._twins.restart()

    def _crash(self) -> None:
        if self._is_whole():
            self._twins.crash(lose_recovery_point=self._rng.random() < 0.5)

    def _append(self, batch: bytes, **how: object) -> Answer:
        return self._twins.append(batch, leader_epoch=self._leader_epoch, **how)  # type: ignore[arg-type]

    def _known(self) -> dict[int, Known]:
        return {each[0]: Known(*each) for each in self._twins.theirs["producers"]}

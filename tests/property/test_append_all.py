"""Several batches in one call, compared with single appends: answers, files and state are equal."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.storage.client import NOW, data, marker, opened
from txnkafka.errors import KafkaError
from txnkafka.record.builder import build_batch
from txnkafka.storage.log.append_all import append_all
from txnkafka.storage.log.append_info import AppendInfo, AppendRequest
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.segment_tail import SegmentTail
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.memory_files import MemoryFiles

CONFIGS: list[dict[str, Any]] = [
    {"segment_bytes": 400},
    {"segment_bytes": 900, "index_interval_bytes": 150, "message_timestamp_type": "LogAppendTime"},
    {"segment_bytes": 5000, "segment_index_bytes": 30, "index_interval_bytes": 0, "max_message_bytes": 300},
    {"segment_bytes": 700, "segment_ms": 50, "compression_type": "lz4"},
]


class Sent(NamedTuple):
    """What a client sends next: ``sequence`` is relative to the expected one."""

    kind: str
    producer_id: int
    sequence: int
    epoch: int
    count: int
    timestamp: int


sent = st.builds(
    Sent,
    st.sampled_from(["plain", "damaged", "end", *["idempotent", "transactional"] * 2]),
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 0, -1, -2, -4, -8, 1]),
    st.sampled_from([0, 0, 0, 0, 1]),
    st.integers(1, 3),
    st.integers(0, 100),
)


class Clients:
    """The batches that the clients of one log send without waiting for answers."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    def batch(self, what: Sent) -> bytes:
        known = self._next.get((what.producer_id, what.epoch), 0)
        sequence = max(0, known + what.sequence)
        time = NOW + what.timestamp
        if what.kind in ("plain", "damaged"):
            batch = build_batch([(b"k", b"plain", time)] * what.count, compression="gzip")
            batch[-1] ^= what.kind == "damaged"
            return bytes(batch)
        if what.kind == "end":
            commit = what.count > 1
            return marker(what.producer_id, commit=commit, timestamp=time, producer_epoch=what.epoch)
        if sequence == known:
            self._next[what.producer_id, what.epoch] = known + what.count
        return bytes(
            data(
                what.producer_id, sequence, what.count, epoch=what.epoch, timestamp=time,
                transactional=what.kind == "transactional",
            )
        )  # fmt: skip


def requests(log: PartitionLog, what: list[Sent], clients: Clients) -> list[AppendRequest]:
    """Make requests with the guards of verifications that began before the first append."""
    found = []
    for each in what:
        guard = 0
        if each.kind == "transactional":
            pending = log.verification.pending(each.producer_id)
            guard = 0 if pending is None else pending.guard
        origin = AppendOrigin.COORDINATOR if each.kind == "end" else AppendOrigin.CLIENT
        found.append(AppendRequest(memoryview(clients.batch(each)), origin, 1, guard))
    return found


def verify(log: PartitionLog, what: list[Sent]) -> None:
    """Verify transactions that begin in a call."""
    for each in what:
        entry = log.producers.entry(each.producer_id)
        if each.kind == "transactional" and (entry is None or entry.producer_epoch <= each.epoch):
            log.verification.maybe_start(
                log.producers, each.producer_id, each.epoch, 0,
                supports_epoch_bump=each.producer_id == 3, now_ms=NOW,
            )  # fmt: skip


def one_by_one(log: PartitionLog, batches: list[AppendRequest], epoch: int) -> list[AppendInfo | KafkaError]:
    found: list[AppendInfo | KafkaError] = []
    for batch, origin, version, guard in batches:
        try:
            found.append(
                log.append(
                    batch, now_ms=NOW, leader_epoch=epoch, origin=origin, transaction_version=version,
                    guard=guard,
                )
            )  # fmt: skip
        except KafkaError as error:
            found.append(error)
    return found


def comparable(answers: list[AppendInfo | KafkaError]) -> list[object]:
    return [each if isinstance(each, AppendInfo) else (type(each), str(each)) for each in answers]


def state(log: PartitionLog) -> tuple[object, ...]:
    names = [entry.name for entry in log.files.list("/data/t-0")]
    files = {name: log.files.read(f"/data/t-0/{name}", 1 << 20) for name in names}
    producers = [log.producers.known_batches(each.producer_id) for each in log.producers.entries()]
    unstable = log.producers.first_unstable_offset
    position = None if unstable is None else log.offsets.positions.first_unstable(unstable)
    waiting = [log.verification.pending(producer_id) is None for producer_id in range(4)]
    return (
        log.log_end_offset, log.last_stable_offset, unstable, files, producers,
        log.producers.snapshot(), waiting, log.epochs.entries,
        [SegmentTail.of(segment) for segment in log.segments],
        log.log_end_metadata, log.offsets.high_watermark_metadata, position,
        [None if each.txn_index is None else each.txn_index.entries for each in log.segments],
    )  # fmt: skip


@given(
    st.lists(st.lists(sent, min_size=1, max_size=12), min_size=1, max_size=4),
    st.sampled_from(CONFIGS),
    st.sampled_from(["", "restart", "flush"]),
)
def test_the_answers_the_files_and_the_state_are_those_of_single_appends(
    calls: list[list[Sent]], config: dict[str, Any], between: str
) -> None:
    logs = [opened(MemoryFiles(), **config) for _ in range(2)]
    clients = [Clients(), Clients()]
    for number, what in enumerate(calls):
        for log in logs:
            verify(log, what)
        single = one_by_one(logs[0], requests(logs[0], what, clients[0]), number // 2)
        together = append_all(
            logs[1], requests(logs[1], what, clients[1]), now_ms=NOW, leader_epoch=number // 2
        )
        assert comparable(together) == comparable(single)
        assert state(logs[1]) == state(logs[0])
        if between == "flush":
            for log in logs:
                log.flush()
        elif between == "restart":
            for log in logs:
                log.close()
            logs = [opened(log.files, Start(True, log.recovery_point, 0), **config) for log in logs]
    for log in logs:
        log.close()
    assert state(logs[1])[3] == state(logs[0])[3]

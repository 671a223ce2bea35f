"""Power cuts while a broker compacts: the last acknowledged value of each key is there, and the coordinator
knows its producers."""

from __future__ import annotations

import pytest

from tests.conftest import LONG
from tests.unit.broker.node import NOW, Node, Producer
from txnkafka._core.encode import encode_batch
from txnkafka.broker.requests import ProduceRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.storage.cleaner import cleaner_pass
from txnkafka.storage.cleaner.cleaned_segment import CleanedSegment
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

STATES, LEAST = (3_000, 1_500) if LONG else (150, 105)  # states that look alike count once
WHERE = TopicPartition("c", 0)
COMPACT = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_bytes": "230"}
KEYS = (b"a", b"b", b"c")


class History:
    """What was acknowledged, and behind which change of the disk."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.node = Node(
            self.files, transaction_state_log_num_partitions=1, transaction_state_log_segment_bytes=900
        )
        self.values: list[tuple[int, bytes, int]] = []  # change, key, number
        self.transactions: list[int] = []

    def append(self, key: bytes, number: int) -> None:
        node = self.node
        batch = memoryview(encode_batch([(key, b"%s%d" % (key, number), NOW)]))
        results: list[object] = []
        node.request(node.broker.produce, ProduceRequest({WHERE: batch}), results.append)
        self.flush()
        assert len(results) == 1
        self.values.append((len(self.files.journal), key, number))

    def flush(self) -> None:
        node = self.node
        while (flush := node.broker.begin_flush()) is not None:
            node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)

    def compact(self, number: int) -> None:
        """All due compactions, with an append behind each piece."""
        node = self.node
        while True:
            node.now_ms += 15_000
            node.broker.advance(node.now_ms)
            if (work := node.broker.begin_work()) is None:
                return
            while work is not None:
                work.run()
                node.broker.finish_work(work, None, now_ms=node.now_ms)
                if number < 60:
                    self.append(KEYS[number % 2], number)
                number += 1
                self.flush()
                work = node.broker.begin_work()


def workload() -> History:
    history = History()
    node = history.node
    node.create()
    assert node.create("c", 1, **COMPACT) == ErrorCode.NONE
    producer = Producer(node)
    for number in range(4):
        assert producer.send(b"%d" % number) == [ErrorCode.NONE]
        assert producer.end() == ErrorCode.NONE
        history.transactions.append(len(history.files.journal))
        for key in KEYS:
            history.append(key, number)
    history.compact(10)
    return history


def check(history: History, disk: object, changes: int) -> None:
    node = Node(MemoryFiles(base=disk), transaction_state_log_num_partitions=1)  # type: ignore[arg-type]
    if WHERE in node.broker.logs:
        found: dict[bytes, int] = {}
        for value in node_values(node):
            found[value[:1]] = int(value[1:])
        for told, key, number in history.values:
            assert told > changes or found.get(key, -1) >= number, (key, number, found)
    else:
        assert not [told for told, *_ in history.values if told <= changes]
    if "t" in node.broker.image.topics:
        values = node.values()
        assert values == [b"%d" % number for number in range(len(values))]
        assert len(values) >= sum(told <= changes for told in history.transactions)
        producer = Producer(node)
        assert producer.send(b"later") == [ErrorCode.NONE]
        assert producer.end() == ErrorCode.NONE
        assert node.values() == [*values, b"later"]
    assert not node.broker.data.refused
    node.wait(15_000)
    node.close()


def node_values(node: Node) -> list[bytes]:
    return [value for value in node.values(topic="c") if value]


def explore(history: History, limit: int = STATES) -> int:
    count = 0
    news = [*history.transactions, *(told for told, *_ in history.values)]
    for state in crash_states(history.files, limit=limit, news=news):
        try:
            check(history, state.disk, state.changes)
        except AssertionError as error:
            raise AssertionError(f"{state.name}: {error}") from error
        count += 1
    return count


def test_compaction_loses_nothing_that_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner_pass, "PIECE_COST", 1)
    history = workload()
    offsets = history.node.broker.data.checkpoints.cleaner_offsets
    assert len(offsets) == 2, "both compacted topics were compacted"
    assert explore(history) >= LEAST


def test_a_segment_that_is_not_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: the new segment replaces others, and its bytes may be lost."""
    monkeypatch.setattr(cleaner_pass, "PIECE_COST", 1)
    monkeypatch.setattr(CleanedSegment, "sync", lambda _: None)
    with pytest.raises((AssertionError, KafkaError)):
        explore(workload())

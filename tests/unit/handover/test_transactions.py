"""What becomes of transactions and groups at the next owner."""

from __future__ import annotations

from tests.unit.broker.node import NOW, Node, Producer
from txnkafka import LogDir
from txnkafka._core.encode import encode_batch
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.error_codes import ErrorCode
from txnkafka.handover.groups import group_rows
from txnkafka.handover.report import GroupRow, Owner
from txnkafka.handover.transactions import coordinator_findings, hanging, transaction_rows
from txnkafka.logdir.coordinator import CoordinatorView
from txnkafka.model import TopicPartition
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.records import TransactionMetadata, TransactionState
from txnkafka.wire.records.group_log import (
    ConsumerRecordType,
    GroupOffset,
    encode_consumer_record,
    encode_group_key,
    encode_group_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)

S = TransactionState
BASE = TransactionMetadata("x", 7, -1, -1, 0, -1, 60_000, S.EMPTY, frozenset(), NOW, NOW, 2)
WHERE = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})


def fate(to: Owner = Owner.KAFKA, now_ms: int = NOW, **fields: object) -> str:
    state = BASE._replace(**fields)  # type: ignore[arg-type]
    view = CoordinatorView({"x": state}, {"x": 0}, (0,), frozenset())
    (row,) = transaction_rows(view, to, now_ms)
    assert row.is_open == (state.state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT))
    return row.fate


def test_every_state() -> None:
    assert fate(state=S.PREPARE_COMMIT, topic_partitions=WHERE) == (
        "committed: Apache Kafka writes the markers that are missing in 2 partitions when it starts"
    )
    assert fate(Owner.TXNKAFKA, state=S.PREPARE_ABORT, topic_partitions=frozenset([min(WHERE)])) == (
        "aborted: txnkafka serve writes the markers that are missing in 1 partition when it starts"
    )
    for state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
        assert fate(state=state) == "continues with its producer id and epoch"
    for state in (S.DEAD, S.PREPARE_EPOCH_FENCE):
        assert fate(state=state).startswith("is being removed")


def test_an_open_transaction_and_its_timeout() -> None:
    assert fate(state=S.ONGOING, now_ms=NOW + 59_999) == (
        "stays open; Apache Kafka aborts it in 1 ms unless its producer ends it"
    )
    assert "its timeout is over" in fate(state=S.ONGOING, now_ms=NOW + 60_000)
    assert "no timeout" in fate(state=S.ONGOING, transaction_timeout_ms=(1 << 31) - 1)
    kept = {"state": S.ONGOING, "next_producer_id": 7, "next_producer_epoch": 1}
    assert "cannot end it there" in fate(**kept)
    assert "unless its producer ends it" in fate(Owner.TXNKAFKA, **kept)


def log_of(*records: tuple[bytes, bytes | None], producer_id: int = -1) -> MemoryFiles:
    """A directory whose one partition of ``__consumer_offsets`` has these records; those of a producer are in
    a transaction that is open."""
    files = MemoryFiles()
    for path in ("/data", f"/data/{CONSUMER_OFFSETS_TOPIC}-0"):
        files.make_directory(path)
    is_open = producer_id >= 0
    batch = encode_batch(
        [(key, value, NOW) for key, value in records], producer_id=producer_id,
        producer_epoch=0 if is_open else -1, base_sequence=0 if is_open else -1, transactional=is_open,
    )  # fmt: skip
    file = files.create(f"/data/{CONSUMER_OFFSETS_TOPIC}-0/{0:020}.log")
    file.write(0, [batch])
    return files


def rows(files: MemoryFiles, to: Owner = Owner.KAFKA) -> list[GroupRow]:
    damage: list[object] = []
    found = group_rows(LogDir("/data", file_system=files).partitions(), to, damage)  # type: ignore[arg-type]
    assert damage == []
    return found


def offset_of(group: str, partition: int = 0) -> tuple[bytes, bytes]:
    value = GroupOffset(group, "t", partition, 5, -1, "", NOW, -1, None)
    return encode_offset_commit_key(group, "t", partition), encode_offset_commit_value(value)


def classic(group: str, *members: str) -> tuple[bytes, bytes]:
    fields = {
        "protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": None,
        "current_state_timestamp": NOW,
        "members": [
            {
                "member_id": member, "group_instance_id": None, "client_id": "c", "client_host": "h",
                "rebalance_timeout": 1, "session_timeout": 1, "subscription": b"", "assignment": b"",
            }
            for member in members
        ],
    }  # fmt: skip
    return encode_group_key(group), encode_group_value(fields)


def consumer(group: str, epoch: int, *members: str) -> list[tuple[bytes, bytes | None]]:
    """The records of a group of the consumer protocol."""
    fields = {
        "instance_id": None, "rack_id": None, "client_id": "c", "client_host": "h",
        "subscribed_topic_names": [], "subscribed_topic_regex": None,
        "rebalance_timeout_ms": 1, "server_assignor": None, "classic_member_metadata": None,
    }  # fmt: skip
    return [
        encode_consumer_record(ConsumerRecordType.GROUP, group, None, {"epoch": epoch, "metadata_hash": 0}),
        *(encode_consumer_record(ConsumerRecordType.MEMBER, group, member, fields) for member in members),
    ]


def key_of(kind: int, group: str) -> bytes:
    return kind.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group.encode()


def test_kinds_of_groups() -> None:
    files = log_of(
        classic("b", "m1", "m2"), offset_of("b"), offset_of("b", 1), offset_of("a"), classic("gone"),
        (encode_group_key("gone"), None), *consumer("new", 5, "m1", "m2", "m3"),
        (key_of(10, "shared"), b"\0\0"), (key_of(17, "streaming"), b"\0\0"),
    )  # fmt: skip
    found = rows(files)
    assert [row[:6] for row in found] == [
        ("a", "simple", -1, 0, 1, 0),
        ("b", "classic", 3, 2, 2, 0),
        ("new", "consumer", 5, 3, 0, 0),
        ("shared", "share", -1, 0, 0, 0),
        ("streaming", "streams", -1, 0, 0, 0),
    ]
    assert "session timeout" in found[1].fate
    assert {row.fate for row in found if not row.members} == {"its offsets stay"}
    here = rows(files, Owner.TXNKAFKA)
    assert [row.group for row in here if "are not" in row.fate] == ["shared", "streaming"]


def test_pending_offsets() -> None:
    (row,) = rows(log_of(offset_of("g"), offset_of("g", 1), producer_id=7))
    assert row[:6] == ("g", "simple", -1, 0, 0, 2)
    assert "2 pending offsets count when their transaction commits" in row.fate


def test_hanging_transactions_are_named() -> None:
    """The coordinator's log is there, and does not know the transaction."""
    node = Node(transaction_state_log_num_partitions=1)
    assert node.create("t", 1) == ErrorCode.NONE
    producer = Producer(node)
    assert producer.send(b"x", 0) == [ErrorCode.NONE]
    node.close()
    directory = LogDir("/data", file_system=node.files)
    view = directory.partition("t", 0)
    assert list(hanging([view], directory.coordinator, NOW)) == []
    stranger = directory.coordinator.transactions["x"]._replace(producer_id=99)
    unknown = CoordinatorView({"x": stranger}, {"x": 0}, tuple(range(50)), frozenset())
    (finding,) = hanging([view], unknown, NOW)
    assert (finding.code, finding.severity) == ("hanging-transaction", "warning")
    assert "kafka-transactions.sh" in finding.remedy


def test_damage_in_the_coordinators_log_prevents_it() -> None:
    node = Node(transaction_state_log_num_partitions=1)
    Producer(node, "x")
    node.close()
    path = f"/data/__transaction_state-0/{0:020}.log"
    content = bytearray(node.files.read(path, 1 << 20))
    content[100] ^= 1
    node.files.open_to_write(path).write(0, [content])
    (finding,) = coordinator_findings(LogDir("/data", file_system=node.files).coordinator)
    assert (finding.code, finding.severity) == ("coordinator-log-damaged", "error")

"""A hand-over uses the log of the coordinator and the settings of topics."""

from __future__ import annotations

from tests.unit.broker.node import NOW, Node, Producer
from tests.unit.handover.stories import PARTITION, replaced, write_story
from txnkafka._core.encode import encode_batch
from txnkafka.coordinator.txn.txn_image import record_of
from txnkafka.error_codes import ErrorCode
from txnkafka.handover.hand_over import hand_over
from txnkafka.handover.report import HandOver, Owner
from txnkafka.model import TopicPartition
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.wire.records import TransactionState


def handed(files: MemoryFiles) -> HandOver:
    return hand_over(files, "/data", Owner.KAFKA, now_ms=NOW)


def test_a_producer_id_that_only_a_decision_names_is_given_out() -> None:
    """The coordinator's log ends with a PREPARE_COMMIT whose producer changes its id when the transaction
    is complete."""
    files = MemoryFiles()
    node = Node(files)
    producer = Producer(node)
    coordinator = node.broker.transactions.coordinator
    before = coordinator.metadata_of("x")
    assert before is not None
    decided = before._replace(
        state=TransactionState.PREPARE_COMMIT, producer_epoch=32767, last_producer_epoch=32766,
        next_producer_id=5000, client_transaction_version=2,
    )  # fmt: skip
    key, value = record_of(decided).encoded(2)
    log = node.broker.logs[TopicPartition("__transaction_state", coordinator.partition_of("x"))]
    batch = encode_batch([(key, value, NOW)])
    log.append(batch, now_ms=NOW, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    node.close()
    assert producer.identity.producer_id == 0
    report = handed(files)
    assert (report.largest_producer_id, report.next_producer_id) == (5000, 5001)


def test_an_index_is_rebuilt_with_the_interval_of_its_topic() -> None:
    files = MemoryFiles()
    node = Node(files, topic_defaults={"segment.bytes": "700"})
    assert node.create("t", index_interval_bytes="80") == ErrorCode.NONE
    write_story(node)
    node.close()
    path = f"/data/{PARTITION}/{0:020}.index"
    before = files.read(path, 1 << 20)
    assert len(before) > 8, "with the default interval the file has no entry"
    replaced(files, path, None)
    assert handed(files).is_ready
    assert files.read(path, 1 << 20) == before

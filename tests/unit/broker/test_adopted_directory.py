"""A directory whose metadata log was lost: the broker that starts on it adopts the partitions."""

from __future__ import annotations

from tests.unit.broker.node import Node, Producer, batch_of
from tests.unit.broker.test_metadata_log import DIRECTORY, remove_log, snapshots
from txnkafka.error_codes import ErrorCode


def test_no_producer_id_of_an_adopted_directory_is_given_out_again() -> None:
    """A broker wrote the directory, and another node had the metadata log."""
    node = Node()
    node.create("t")
    used = {"producer_id": 5000, "producer_epoch": 0, "base_sequence": 0}
    assert node.append(batch_of(b"a", **used)).error == ErrorCode.NONE
    node.close()
    remove_log(node.files)
    for snapshot in snapshots(node):
        node.files.remove(f"{DIRECTORY}/{snapshot.name}")
    node = Node(node.files)
    assert node.values() == [b"a"], "the partition has become a topic"
    assert Producer(node).identity.producer_id == 5001

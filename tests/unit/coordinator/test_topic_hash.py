"""The hash of the topics of a group; that it is Kafka's is tested in tests/conformance."""

from __future__ import annotations

from txnkafka.coordinator.group.consumer.topic_hash import topics_hash
from txnkafka.coordinator.registry.cluster_image import PartitionImage, TopicImage


def topic(name: str, topic_id: str, partitions: int) -> TopicImage:
    image = PartitionImage([1], [1], 1, 0, 0, [])
    return TopicImage(name, topic_id, dict.fromkeys(range(partitions), image))


def test_no_topic_is_no_hash() -> None:
    assert topics_hash([]) == 0


def test_name_id_partitions_and_other_topics_count_but_not_their_order() -> None:
    one, other = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
    hashes = [
        topics_hash([topic("a", one, 1)]),
        topics_hash([topic("a", one, 2)]),
        topics_hash([topic("a", other, 1)]),
        topics_hash([topic("b", one, 1)]),
        topics_hash([topic("a", one, 1), topic("b", other, 1)]),
    ]
    assert len(set(hashes)) == len(hashes)
    assert hashes[-1] == topics_hash([topic("b", other, 1), topic("a", one, 1)])

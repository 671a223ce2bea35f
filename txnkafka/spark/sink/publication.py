"""Publishes the staged batches of all tasks in one transaction, with the id of the batch.

The transaction coordinator of the target makes the durable decision (PREPARE_COMMIT), and finishes a decided
transaction itself. At that time all rows are in the log, so a decision needs no staged file. The next
publication with the same transactional id begins with InitProducerId, which ends the transaction before:
one that was decided is complete, another one is aborted. Then the recorded id tells which.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.env import unique_name
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.spark.sink.decision import BatchId, Publication, Verdict, decide, refusal
from txnkafka.spark.sink.staged_reader import read_staged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.client.producer import Producer
    from txnkafka.env import FileSystem
    from txnkafka.spark.sink.sink_options import SinkOptions
    from txnkafka.spark.sink.staged import Staged
    from txnkafka.spark.sink.target import Clients

LOG = logging.getLogger("txnkafka.spark")
_REQUEST_ROOM: Final = 1 << 10  # of a produce request, besides its batch


class Recorded(NamedTuple):
    """The last publication, and the partition whose offset has it."""

    partition: TopicPartition
    publication: Publication


def publish(
    clients: Clients, options: SinkOptions, batch: BatchId | None, staged: Sequence[Staged], files: FileSystem
) -> Verdict:
    """Publish a batch, unless it was published. A batch without id is published with a fresh transactional
    id.

    Raises BatchRefusedError; ProducerFencedError if another publication with the same transactional id has
    begun; LogDirError and KafkaStorageError for staged files; KafkaError of the producer, OSError.
    Nothing is published then, except after KafkaTimeoutError of the commit, whose result is unknown until the
    batch is published again."""
    transactional_id = options.transactional_id or f"txnkafka-{unique_name()}"
    largest = max((each.size for task in staged for each in task.batches), default=0)
    settings = options.producer_settings()
    settings.setdefault("max.request.size", max(1 << 20, largest + _REQUEST_ROOM))
    settings.setdefault("buffer.memory", max(32 << 20, 2 * largest))
    with clients.producer(transactional_id=transactional_id, **settings) as producer:
        producer.init_transactions()
        if batch is None:
            with producer.transaction():
                _send(producer, staged, files)
            return Verdict.PUBLISH
        group = group_of(transactional_id)
        recorded = last_publication(clients, options, group)
        verdict = decide(recorded and recorded.publication, batch)
        LOG.info("batch %s of transactional id %s: %s", batch.number, transactional_id, verdict.value)
        if verdict is Verdict.SKIP:
            return verdict
        before = Publication(batch.number) if recorded is None else recorded.publication
        if verdict not in (Verdict.PUBLISH, Verdict.REGISTER):
            raise refusal(transactional_id, before, batch, verdict)
        with producer.transaction():
            place = None if recorded is None else recorded.partition
            if verdict is Verdict.PUBLISH:
                place = _send(producer, staged, files)
            assert place is not None
            note = OffsetAndMetadata(batch.number + 1, before.after(batch).to_text())
            producer.send_offsets_to_transaction({place: note}, ConsumerGroupMetadata(group))
        return verdict


def group_of(transactional_id: str) -> str:
    """Return the group whose offsets have the id of the last batch."""
    return f"txnkafka-sink-{transactional_id}"


def last_publication(clients: Clients, options: SinkOptions, group: str) -> Recorded | None:
    """Return the last publication of a group, after transactions that are about to commit one (KIP-447).
    Raises KafkaError for offsets of another program."""
    with clients.admin(**options.admin_settings()) as admin:
        offsets = admin.list_group_offsets(group, require_stable=True)
    return newest(group, offsets)


def newest(group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Recorded | None:
    """Return the publication with the largest number: the offsets of other topics are of older batches."""
    found: Recorded | None = None
    for partition, offset in offsets.items():
        try:
            publication = Publication.of_text(offset.metadata)
        except ValueError as error:
            raise KafkaError(
                f"group {group} has an offset of another program for {partition}: {error}. Use another "
                "transactionalId"
            ) from None
        if found is None or publication.number > found.publication.number:
            found = Recorded(partition, publication)
    return found


def _send(producer: Producer, staged: Sequence[Staged], files: FileSystem) -> TopicPartition:
    """Send all batches, in the order of the tasks; return a partition that gets some, the same for the same
    topics."""
    topics = set()
    for task in staged:
        for batch, content in read_staged(files, task):
            topics.add(batch.topic)
            producer.send_batch(batch.topic, batch.partition, content)
    return TopicPartition(min(topics), 0)

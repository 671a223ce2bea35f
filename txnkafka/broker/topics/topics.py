"""Creation and deletion of topics: first in the registry, then on the disk.

The order is Kafka's: the record is durable before a directory is made or removed. So a crash in between
leaves work for the next start (``reconcile``), but never a partition outside the registry.

Source: ``ReplicationControlManager.createTopics``, ``TopicConfig``, ``LogManager``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.broker.config.broker_config import MOST_PARTITIONS, check_topic
from txnkafka.broker.durability import error_code
from txnkafka.broker.registry.leader_epochs import begin_epochs
from txnkafka.broker.requests import TopicResult
from txnkafka.broker.topics.colliding_names import CollidingNames
from txnkafka.broker.topics.internal_topics import COORDINATORS_TOPICS, topic_by_default
from txnkafka.broker.topics.missing_logs import MissingLogs
from txnkafka.broker.topics.strays import set_aside
from txnkafka.broker.topics.topic_deletion import TopicDeletion
from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.cluster_image import TOPIC_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError, KafkaError
from txnkafka.model import TopicPartition, validate_topic
from txnkafka.storage.identity import random_uuid
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from txnkafka.broker.requests import DeletedTopic, NewTopic
    from txnkafka.broker.services import Services
    from txnkafka.coordinator.registry.metadata_records import LogRecord

LOG = logging.getLogger("txnkafka.broker")
_METADATA_TOPIC = "__cluster_metadata"


class Topics:
    """The topics of a broker. ``on_created`` is called when their partitions exist, ``on_deleted`` with the
    name and the partitions of a deleted topic."""

    def __init__(
        self,
        services: Services,
        on_created: Callable[[], None],
        on_deleted: Callable[[str, Collection[int]], None],
    ) -> None:
        self._services = services
        self._on_created = on_created
        self._deletion = TopicDeletion(services, self.is_in_creation, on_deleted)
        self.missing_logs = MissingLogs(services, self.is_in_creation, on_created)
        self._in_creation: dict[str, list[Callable[[TopicResult], None]]] = {}
        self._colliding = CollidingNames()

    # At start

    def reconcile(self, now_ms: int) -> None:
        """Make the disk and the registry agree, now: all partitions get a new leader epoch, those without a
        directory an empty one.

        Directories that the registry does not know are not served; a registry that was just created adopts
        them as topics. Raises KafkaError and OSError."""
        services = self._services
        if not services.image.topics and services.metadata.epoch == 1:
            self._adopt(now_ms)
        begin_epochs(services, now_ms)
        known = {
            TopicPartition(topic.name, number): topic.topic_id
            for topic in services.image.topics.values()
            for number in topic.partitions
        }
        self._remove_strays(known)
        for partition in sorted(known.keys() & services.logs.keys() - services.data.topic_ids.keys()):
            # after a crash during its creation; Apache Kafka would set this directory aside
            services.data.give_topic_id(partition, known[partition])
        missing = {
            partition: topic_id
            for partition, topic_id in known.items()
            if partition not in services.logs and partition not in services.data.refused
        }
        if missing:
            perform(services.data.creation(missing, now_ms=now_ms))

    def _remove_strays(self, known: Mapping[TopicPartition, str]) -> None:
        """Finish deletions that a crash has interrupted. Other partitions outside the registry stay, and
        are not served. Raises KafkaError for one whose name the registry gives to another topic."""
        services = self._services
        for partition, topic_id in list(services.data.topic_ids.items()):
            if known.get(partition) == topic_id:
                continue
            if topic_id in services.image.removed_topic_ids:
                perform(services.manager.deletion(partition))
            elif partition in known:
                raise KafkaError(
                    f"{partition} has the topic id {topic_id}, but the metadata log has {known[partition]}"
                )
        for partition in services.logs:
            if partition not in known:
                LOG.warning("%s is not in the metadata log, and is not served", partition)

    def _adopt(self, now_ms: int) -> None:
        """Add the partitions of a directory that no broker has used to the registry; coordinators' topics
        get the configs of their creation."""
        records: list[LogRecord] = []
        topic_ids: dict[str, str] = {}
        for partition in sorted(self._services.logs):
            topic_id = self._services.data.topic_ids.get(partition)
            if topic_id is None:
                continue
            if partition.topic not in topic_ids:
                topic_ids[partition.topic] = topic_id
                records.append(metadata_records.topic(partition.topic, topic_id))
                configs = topic_by_default(partition.topic, self._services.config).configs
                records += (
                    metadata_records.config(TOPIC_RESOURCE, partition.topic, name, value)
                    for name, value in configs.items()
                )
            records.append(self.partition_record(topic_id, partition.partition))
        if records:
            self._services.metadata.append(records, now_ms)
            self._services.metadata.log.flush()
            self._services.metadata.apply(records)
        for partition, log in self._services.logs.items():
            log.update_config(self._services.configs.of_topic(partition.topic))

    def partition_record(self, topic_id: str, number: int) -> LogRecord:
        """Return the record of a new partition, led by this node."""
        directory_id = self._services.data.identity.directory_id or random_uuid()
        return metadata_records.partition(topic_id, number, self._services.node_id, directory_id)

    # Creation

    def create(
        self,
        topics: Sequence[NewTopic],
        reply: Callable[[list[TopicResult]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Create topics, each by itself; answer when all are writable."""
        results: dict[int, TopicResult] = {}

        def done(i: int, result: TopicResult) -> None:
            results[i] = result
            if len(results) == len(topics):
                reply([results[i] for i in range(len(topics))])

        if not topics:
            reply([])
        # a negative count, refused below, must not make room for others
        if sum(max(0, self._partition_count(topic)) for topic in topics) > MOST_PARTITIONS:
            message = f"at most {MOST_PARTITIONS} partitions can be created by one request"
            refused = [TopicResult(topic.name, ErrorCode.POLICY_VIOLATION, message) for topic in topics]
            self._services.durability.soon(lambda: reply(refused))
            topics = ()
        for i, topic in enumerate(topics):
            self._create(topic, partial(done, i), validate_only)
        self._begun(topic.name for topic in topics)

    def auto_create(self, names: Iterable[str], reply: Callable[[dict[str, ErrorCode]], None]) -> None:
        """Create topics that a client has named, with the defaults of the broker. A topic that exists, or
        is in creation, is no error."""
        wanted = [topic_by_default(name, self._services.config) for name in names]

        def created(results: list[TopicResult]) -> None:
            ok = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            reply({result.name: ErrorCode.NONE if result.error in ok else result.error for result in results})

        self.create(wanted, created)

    def create_internal(self, name: str) -> None:
        """Create an internal topic, unless its creation is running."""
        if name not in self._in_creation:
            self._create(topic_by_default(name, self._services.config), _log_failure, False)
            self._begun([name])

    def when_created(self, name: str, call: Callable[[TopicResult], None]) -> bool:
        """Call when the running creation of a topic has succeeded or failed. Return False, without a call,
        if none is running."""
        waiting = self._in_creation.get(name)
        if waiting is None:
            return False
        waiting.append(call)
        return True

    def _create(self, topic: NewTopic, reply: Callable[[TopicResult], None], validate_only: bool) -> None:
        services = self._services
        waiting = self._in_creation.get(topic.name)
        if waiting is not None:
            waiting.append(lambda result: reply(_there_already(topic.name) if not result.error else result))
            return
        refusal = self._refusal(topic)
        count = self._partition_count(topic)
        configs = {name: value for name, value in topic.configs.items() if value is not None}
        if refusal is not None or validate_only:  # Kafka's answer also has an id
            result = refusal or TopicResult(topic.name, ErrorCode.NONE, None, random_uuid(), count, configs)
            services.durability.soon(lambda: reply(result))
            return
        topic_id = random_uuid()
        records = [
            metadata_records.topic(topic.name, topic_id),
            *(metadata_records.config(TOPIC_RESOURCE, topic.name, *item) for item in configs.items()),
            *(self.partition_record(topic_id, number) for number in range(count)),
        ]
        created = TopicResult(topic.name, ErrorCode.NONE, None, topic_id, count, configs)
        self._in_creation[topic.name] = [reply]
        partitions = [TopicPartition(topic.name, number) for number in range(count)]
        set_aside(services, partitions, partial(self._register, created, records, services.now_ms))

    def _begun(self, names: Iterable[str]) -> None:
        """Note the topics of a request whose creation has begun."""
        self._colliding.begin(name for name in names if name in self._in_creation)

    def _register(
        self, created: TopicResult, records: Sequence[LogRecord], now_ms: int, error: Exception | None
    ) -> None:
        """Register the topic, after blocking files were set aside."""
        services = self._services
        try:
            if error is None:
                services.metadata.append(records, now_ms)
        except KafkaError as refused:
            error = refused
        if error is not None:
            failed = _failed(created, error)
            services.durability.soon(lambda: self._created(failed))
            return
        services.durability.when_durable(
            services.metadata.log, lambda error: self._registered(created, records, error, now_ms)
        )

    def _registered(
        self, created: TopicResult, records: Sequence[LogRecord], error: ErrorCode, now_ms: int
    ) -> None:
        """Make the directories of the registered topic."""
        if error != ErrorCode.NONE:
            self._created(created._replace(error=error, topic_id=None))
            return
        self._services.metadata.apply(records)
        topic_id = created.topic_id or ""
        partitions = {
            TopicPartition(created.name, number): topic_id for number in range(created.partition_count)
        }
        self._services.jobs.add(
            lambda: self._services.data.creation(partitions, now_ms=now_ms),
            lambda failed: self._created(_failed(created, failed)),
        )

    def is_in_creation(self, name: str) -> bool:
        """Return whether a topic is in creation."""
        return name in self._in_creation

    def _created(self, result: TopicResult) -> None:
        if result.error != ErrorCode.NONE:
            self.missing_logs.creation_failed()
        elif result.name in COORDINATORS_TOPICS:
            self._on_created()
        self._colliding.end(result.name)
        for reply in self._in_creation.pop(result.name, ()):
            reply(result)

    def _partition_count(self, topic: NewTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        return self._services.config.num_partitions if topic.partition_count == -1 else topic.partition_count

    def _refusal(self, topic: NewTopic) -> TopicResult | None:
        """Return the refusal of a topic, or None."""

        def refused(error: ErrorCode, message: str) -> TopicResult:
            return TopicResult(topic.name, error, message)

        try:
            validate_topic(topic.name)
        except InvalidTopicError as error:
            return refused(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error))
        if topic.name == _METADATA_TOPIC:
            return refused(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {topic.name} is prohibited."
            )
        if topic.name in self._services.image.topics:
            return _there_already(topic.name)
        collides = self._colliding.find(topic.name, self._services.image)
        if collides is not None:
            return refused(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{topic.name}' collides with existing topic: {collides}",
            )
        if topic.assignments:
            if topic.partition_count != -1 or topic.replication_factor != -1:
                return refused(
                    ErrorCode.INVALID_REQUEST, "assignments exclude num_partitions and replication_factor"
                )
            if sorted(topic.assignments) != list(range(len(topic.assignments))) or any(
                list(nodes) != [self._services.node_id] for nodes in topic.assignments.values()
            ):
                return refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the only node has all replicas")
        if topic.replication_factor not in (-1, 1):
            return refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"the replication factor must be 1, not {topic.replication_factor}: only one broker exists",
            )
        count = self._partition_count(topic)
        if count < 1:
            return refused(
                ErrorCode.INVALID_PARTITIONS, f"the number of partitions must be at least 1, not {count}"
            )
        return self._config_refusal(topic)

    def _config_refusal(self, topic: NewTopic) -> TopicResult | None:
        for name, value in topic.configs.items():
            if value is None:
                return TopicResult(
                    topic.name, ErrorCode.INVALID_CONFIG, f"Null value for {name} is not allowed"
                )
        try:
            configs = {name: value for name, value in topic.configs.items() if value is not None}
            check_topic(self._services.config, configs)
        except ValueError as error:
            return TopicResult(topic.name, ErrorCode.INVALID_CONFIG, str(error))
        return None

    # Deletion

    def delete(
        self,
        names: Sequence[str],
        topic_ids: Sequence[str],
        reply: Callable[[list[DeletedTopic]], None],
    ) -> None:
        """Delete topics by name or by id; answer when the deletion is durable."""
        image = self._services.image
        wanted: list[tuple[str | None, str | None]] = [(name, None) for name in names]
        wanted += [(image.topic_names.get(topic_id), topic_id) for topic_id in topic_ids]
        results: dict[int, DeletedTopic] = {}

        def done(i: int, result: DeletedTopic) -> None:
            results[i] = result
            if len(results) == len(wanted):
                reply([results[i] for i in range(len(wanted))])

        if not wanted:
            reply([])
        for i, (name, topic_id) in enumerate(wanted):
            self._deletion.delete(name, topic_id, partial(done, i))


def _log_failure(result: TopicResult) -> None:
    if result.error != ErrorCode.NONE:
        LOG.error("%s could not be created: %s", result.name, result.message or result.error.name)


def _there_already(name: str) -> TopicResult:
    return TopicResult(name, ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _failed(created: TopicResult, error: Exception | None) -> TopicResult:
    if error is None:
        return created
    return TopicResult(created.name, error_code(error), str(error))

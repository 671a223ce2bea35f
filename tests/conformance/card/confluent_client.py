"""librdkafka through confluent-kafka: members of groups and the admin client beside ``ConfluentClient``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.conformance.card.answering import PATIENCE, NoSuchCommandError
from tests.server.client_commands import ClientError, ConfluentClient

__all__ = ["ConfluentCardClient"]

Options = Mapping[str, str]
CLASSIC = {"heartbeat.interval.ms": 300}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {**CLASSIC, "partition.assignment.strategy": "range,roundrobin"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


class Member:
    """A consumer, and what it was given and nobody has asked for yet."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.given: deque[str] = deque()

    def poll(self) -> None:
        """Take what there is."""
        for each in self.consumer.consume(100, 0.1):
            if each.error() is not None:
                raise KafkaException(each.error())
            self.given.append(f"{each.partition()}:{each.offset()}:{(each.value() or b'').decode()}")


class ConfluentCardClient(ConfluentClient):
    """All commands of the card that librdkafka has something for."""

    def __init__(self) -> None:
        super().__init__(PATIENCE)
        self._members: dict[str, Member] = {}
        self._remembered: dict[str, object] = {}
        self._admins: dict[str, AdminClient] = {}

    def ask(self, command: str, **options: str) -> list[str]:
        """Do it; see ``ConfluentClient``."""
        of_member = command == "send-offsets" or "consumer" in options
        if not of_member and ("producer" in options or command == "consume"):
            return super().ask(command, **options)
        try:
            found = self._of_member(command, options) if of_member else self._of_admin(command, options)
        except KafkaException as raised:
            raise ClientError(raised.args[0].name(), raised.args[0].str()) from None
        except NoSuchCommandError:
            raise ClientError("NoSuchCommandError", command) from None
        return [str(value) for value in found or ()]

    def _of_member(self, command: str, options: Options) -> list[Any] | None:
        if command == "join":
            return self._join(options)
        name = options["consumer"]
        if command == "send-offsets":
            return self._send_offsets(self._producers[options["producer"]], name, options)
        member = self._members[name]
        steps: dict[str, Callable[[], list[Any] | None]] = {
            "poll": lambda: _polled(member, int(options["count"])),
            "assigned": lambda: _assigned(member),
            "commit-offset": lambda: member.consumer.commit(offsets=[_where(options)], asynchronous=False),
            "committed": lambda: _committed(member, options),
            **dict.fromkeys(("seek", "read-again"), lambda: _seek(member, options)),
            "remember": lambda: self._remember(name, member),
            "leave": lambda: self._members.pop(name).consumer.close(),
        }
        if command not in steps:
            raise NoSuchCommandError
        return steps[command]()

    def _join(self, options: Options) -> None:
        configs = {name[7:]: value for name, value in options.items() if name.startswith("config.")}
        settings: dict[str, Any] = {
            "bootstrap.servers": options["server"], "group.id": options["group"], "log_level": 0,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", **PROTOCOLS[options["strategy"]],
            **configs,
        }  # fmt: skip
        consumer = Consumer(settings)
        consumer.subscribe([options["topic"]])
        self._members[options["consumer"]] = Member(consumer)

    def _remember(self, name: str, member: Member) -> None:
        self._remembered[name] = member.consumer.consumer_group_metadata()

    def _send_offsets(self, producer: Producer, name: str, options: Options) -> None:
        member = self._members.get(name)
        metadata = member.consumer.consumer_group_metadata() if member else self._remembered[name]
        producer.send_offsets_to_transaction([_where(options)], metadata, PATIENCE)

    def _of_admin(self, command: str, options: Options) -> list[Any] | None:
        server = options["server"]
        if server not in self._admins:
            self._admins[server] = AdminClient({"bootstrap.servers": server, "log_level": 0})
        admin = self._admins[server]
        for steps in (_topic_steps(admin, options), _group_steps(admin, options)):
            if command in steps:
                return steps[command]()
        raise NoSuchCommandError

    def close(self) -> None:
        """Leave no thread behind."""
        for member in self._members.values():
            member.consumer.close()
        super().close()


Steps = dict[str, Callable[[], list[Any] | None]]


def _topic_steps(admin: AdminClient, options: Options) -> Steps:
    topic, number = options["topic"], int(options.get("count", options.get("partitions", 0)))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {
        "create-topic": lambda: _each(admin.create_topics([NewTopic(topic, number, 1)])),
        "delete-topic": lambda: _each(admin.delete_topics([topic])),
        "list-topics": lambda: sorted(admin.list_topics(timeout=PATIENCE).topics),
        "describe-topic": lambda: [len(admin.list_topics(topic, PATIENCE).topics[topic].partitions)],
        "create-partitions": lambda: _each(admin.create_partitions([NewPartitions(topic, number)])),
        "delete-records": lambda: _each(admin.delete_records([_where(options)])),
        "list-offsets": lambda: [
            _offset(admin, options, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        ],
        "describe-config": lambda: [_only(admin.describe_configs([resource]))[options["name"]].value],
        "alter-config": lambda: _alter_config(admin, options),
        "describe-cluster": lambda: [len(admin.describe_cluster().result(PATIENCE).nodes)],
    }  # fmt: skip


def _group_steps(admin: AdminClient, options: Options) -> Steps:
    group = options.get("group", "")
    return {
        "list-groups": lambda: sorted(
            each.group_id for each in admin.list_consumer_groups().result(PATIENCE).valid
        ),
        "describe-group": lambda: _described(_only(admin.describe_consumer_groups([group]))),
        "group-offsets": lambda: _group_offsets(admin, group),
        "reset-offset": lambda: _reset(admin, group, options),
        "delete-group": lambda: _each(admin.delete_consumer_groups([group])),
    }


def _where(options: Options) -> TopicPartition:
    return TopicPartition(options["topic"], int(options["partition"]), int(options.get("offset", -1001)))


def _each(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE)


def _only(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(PATIENCE)


def _polled(member: Member, count: int) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while len(member.given) < count:
        if time.monotonic() > deadline:
            raise ClientError("TimeoutError", f"{len(member.given)} records of {count}")
        member.poll()
    return [member.given.popleft() for _ in range(count)]


def _assigned(member: Member) -> list[int]:
    member.poll()
    return sorted(each.partition for each in member.consumer.assignment())


def _committed(member: Member, options: Options) -> list[object]:
    (found,) = member.consumer.committed([_where(options)], timeout=PATIENCE)
    return ["none" if found.offset < 0 else found.offset]


def _seek(member: Member, options: Options) -> None:
    member.given.clear()
    member.consumer.seek(_where(options))


def _offset(admin: AdminClient, options: Options, spec: OffsetSpec) -> int:
    where = TopicPartition(options["topic"], int(options["partition"]))
    return int(_only(admin.list_offsets({where: spec})).offset)


def _alter_config(admin: AdminClient, options: Options) -> None:
    entry = ConfigEntry(options["name"], options["value"], incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, options["topic"], incremental_configs=[entry])
    _each(admin.incremental_alter_configs([resource]))


def _described(found: Any) -> list[object]:
    return [found.state.name.lower(), len(found.members)]


def _group_offsets(admin: AdminClient, group: str) -> list[str]:
    found = _only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    return sorted(f"{each.partition}:{each.offset}" for each in found.topic_partitions)


def _reset(admin: AdminClient, group: str, options: Options) -> None:
    wanted = ConsumerGroupTopicPartitions(group, [_where(options)])
    for each in _only(admin.alter_consumer_group_offsets([wanted])).topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)

"""kafka-python: members of groups and the admin client beside ``KafkaPythonClient``, driven over a pipe."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kafka.protocol.consumer import OffsetSpec

from tests.conformance.card.answering import PATIENCE, NoSuchCommandError, answer_commands
from tests.server.kafka_python_process import KafkaPythonClient

Options = Mapping[str, str]
Steps = dict[str, Callable[[], Any]]


class Member:
    """A consumer, and what it was given and nobody has asked for yet."""

    def __init__(self, consumer: kafka.KafkaConsumer) -> None:
        self.consumer = consumer
        self.given: deque[str] = deque()

    def poll(self) -> None:
        """Take what there is."""
        for records in self.consumer.poll(500).values():
            self.given.extend(f"{each.partition}:{each.offset}:{each.value.decode()}" for each in records)


class KafkaPythonCardClient(KafkaPythonClient):
    """All commands of the card that kafka-python has something for."""

    def __init__(self) -> None:
        super().__init__()
        self._members: dict[str, Member] = {}
        self._remembered: dict[str, Any] = {}
        self._admins: dict[str, KafkaAdminClient] = {}

    def answer(self, command: str, options: Options) -> Sequence[object] | None:
        """Do what the line says."""
        if command == "consume":
            return _consumed(options)
        if command == "send-offsets":
            return self._send_offsets(options)
        if "consumer" in options:
            return self._of_member(command, options)
        if "producer" in options:
            self.run(command, options)
            return None
        return self._of_admin(command, options)

    def _of_member(self, command: str, options: Options) -> Sequence[object] | None:
        name = options["consumer"]
        if command == "join":
            self._members[name] = Member(_joined(options))
            return None
        member = self._members[name]
        steps: Steps = {
            "poll": lambda: _polled(member, int(options["count"])),
            "assigned": lambda: _assigned(member),
            "commit-offset": lambda: member.consumer.commit(_offset(options)),
            "committed": lambda: [_or_none(member.consumer.committed(_where(options)))],
            **dict.fromkeys(("seek", "read-again"), lambda: _seek(member, options)),
            "remember": lambda: self._remembered.update({name: member.consumer.group_metadata()}),
            "leave": lambda: self._members.pop(name).consumer.close(),
        }
        return _step(steps, command)

    def _send_offsets(self, options: Options) -> None:
        member = self._members.get(options["consumer"])
        metadata = member.consumer.group_metadata() if member else self._remembered[options["consumer"]]
        self._producers[options["producer"]].send_offsets_to_transaction(_offset(options), metadata)

    def _of_admin(self, command: str, options: Options) -> Sequence[object] | None:
        server = options["server"]
        if server not in self._admins:
            self._admins[server] = KafkaAdminClient(bootstrap_servers=server)
        admin = self._admins[server]
        return _step({**_topic_steps(admin, options), **_other_steps(admin, options)}, command)


def _step(steps: Steps, command: str) -> Sequence[object] | None:
    if command not in steps:
        raise NoSuchCommandError(command)
    found = steps[command]()
    return found if isinstance(found, list) else None


def _topic_steps(admin: KafkaAdminClient, options: Options) -> Steps:
    topic, number = options["topic"], int(options.get("count", options.get("partitions", 0)))
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    return {
        "create-topic": lambda: admin.create_topics([NewTopic(topic, number, 1)]),
        "delete-topic": lambda: admin.delete_topics([topic]),
        "list-topics": lambda: sorted(admin.list_topics()),
        "describe-topic": lambda: [len(admin.describe_topics([topic])[0]["partitions"])],
        "create-partitions": lambda: admin.create_partitions({topic: number}),
        "delete-records": lambda: admin.delete_records({_where(options): int(options["offset"])}),
        "list-offsets": lambda: [
            admin.list_partition_offsets({_where(options): spec})[_where(options)].offset
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ],
        "describe-config": lambda: [_config(admin, resource, options)],
        "alter-config": lambda: admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {options["name"]: options["value"]})]
        ),
    }


def _other_steps(admin: KafkaAdminClient, options: Options) -> Steps:
    group = options.get("group", "")
    return {
        "describe-cluster": lambda: [len(admin.describe_cluster()["brokers"])],
        "describe-log-dirs": lambda: [_partitions_in(admin.describe_log_dirs(), options["topic"])],
        "list-groups": lambda: sorted(each["group_id"] for each in admin.list_groups()),
        "describe-group": lambda: _described(admin.describe_groups([group])[group]),
        "group-offsets": lambda: sorted(
            f"{where.partition}:{each.offset}"
            for where, each in admin.list_group_offsets([group])[group].items()
        ),
        "reset-offset": lambda: _checked(admin.alter_group_offsets(group, _offset(options))),
        "delete-offset": lambda: _checked(admin.delete_group_offsets(group, [_where(options)])),
        "delete-group": lambda: _checked(admin.delete_groups([group])),
        "list-transactions": lambda: sorted(
            each.transactional_id for found in admin.list_transactions().values() for each in found
        ),
        "describe-transaction": lambda: [_state(admin.describe_transactions([options["id"]])[options["id"]])],
        "describe-producers": lambda: [len(admin.describe_producers([_where(options)])[_where(options)])],
    }  # fmt: skip


def _where(options: Options) -> kafka.TopicPartition:
    return kafka.TopicPartition(options["topic"], int(options["partition"]))


def _offset(options: Options) -> dict[kafka.TopicPartition, kafka.OffsetAndMetadata]:
    return {_where(options): kafka.OffsetAndMetadata(int(options["offset"]), "", -1)}


def _or_none(offset: int | None) -> object:
    return "none" if offset is None else offset


def _checked(results: Mapping[Any, Any]) -> None:
    """Raise what an answer has instead of ``NoError``: classes, or their names."""
    for error in results.values():
        name = error if isinstance(error, str) else error.__name__
        if name not in ("NoError", "OK"):
            raise getattr(kafka.errors, name)


def _joined(options: Options) -> kafka.KafkaConsumer:
    if options["strategy"] != "eager":
        raise NoSuchCommandError("its assignors are all eager")
    configs = {
        name[7:].replace(".", "_"): value for name, value in options.items() if name.startswith("config.")
    }
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=options["server"], group_id=options["group"],
        enable_auto_commit=False, auto_offset_reset="earliest", heartbeat_interval_ms=300, **configs,
    )  # fmt: skip
    # A leader shares out the partitions that it knows. If it hears of them a moment later it joins again, and
    # may forget what it is assigned then (3.0.12): so it is to know the topic first.
    consumer.partitions_for_topic(options["topic"])
    consumer.subscribe([options["topic"]])
    return consumer


def _polled(member: Member, count: int) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while len(member.given) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(member.given)} records of {count}")
        member.poll()
    return [member.given.popleft() for _ in range(count)]


def _assigned(member: Member) -> list[int]:
    member.poll()
    return sorted(each.partition for each in member.consumer.assignment())


def _seek(member: Member, options: Options) -> None:
    member.given.clear()
    member.consumer.seek(_where(options), int(options["offset"]))


def _consumed(options: Options) -> list[str]:
    consumer, where = (
        kafka.KafkaConsumer(bootstrap_servers=options["server"], isolation_level=options["level"]),
        _where(options),
    )
    consumer.assign([where])
    consumer.seek_to_beginning(where)
    found, end = list[str](), consumer.end_offsets([where])[where]
    deadline = time.monotonic() + PATIENCE
    while consumer.position(where) < end:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(found)} records, end {end}")
        for records in consumer.poll(100).values():
            found.extend(each.value.decode() for each in records)
    consumer.close()
    return found


def _config(admin: KafkaAdminClient, resource: ConfigResource, options: Options) -> object:
    found = admin.describe_configs([resource], config_filter="all")
    for entries in found.values() if isinstance(found, dict) else found:
        for each in entries.values() if isinstance(entries, dict) else entries:
            if isinstance(each, dict) and options["name"] in each:
                return each[options["name"]]["value"]
    raise TimeoutError(f"{found}"[:300])


def _partitions_in(found: Any, topic: str) -> int:
    topics = (each for broker in found for directory in broker["log_dirs"] for each in directory["topics"])
    return sum(len(each["partitions"]) for each in topics if each["name"] == topic)


def _state(transaction: Any) -> str:
    return str(transaction.state).rpartition(".")[2]


def _described(found: Mapping[str, Any]) -> list[object]:
    return [str(found.get("group_state", found.get("state"))).lower(), len(found["members"])]


if __name__ == "__main__":
    answer_commands(KafkaPythonCardClient().answer, (KafkaError, ValueError, RuntimeError))

"""aiokafka, driven over a pipe. Its event loop has a thread: members send heartbeats between commands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from tests.conformance.card.answering import PATIENCE, NoSuchCommandError, answer_commands

Options = Mapping[str, str]
Steps = dict[str, Callable[[], Awaitable[Any]]]


class Member:
    """A consumer, and what it was given and nobody has asked for yet."""

    def __init__(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self.consumer = consumer
        self.given: deque[str] = deque()

    async def poll(self) -> None:
        """Take what there is."""
        for records in (await self.consumer.getmany(timeout_ms=100)).values():
            self.given.extend(f"{each.partition}:{each.offset}:{each.value.decode()}" for each in records)


class AiokafkaClient:
    """All commands of the card that aiokafka has something for."""

    def __init__(self) -> None:
        self._producers: dict[str, aiokafka.AIOKafkaProducer] = {}
        self._members: dict[str, Member] = {}
        self._groups: dict[str, str] = {}
        self._admins: dict[str, AIOKafkaAdminClient] = {}

    async def answer(self, command: str, options: Options) -> Sequence[object] | None:
        """Do what the line says."""
        if command == "consume":
            return await _consumed(options)
        if command == "open":
            self._producers[options["producer"]] = await _opened(options)
            return None
        if command == "join":
            self._members[options["consumer"]] = Member(await _joined(options))
            return None
        if "producer" in options:
            return await _step(self._producer_steps(options), command)
        if "consumer" in options:
            return await _step(self._member_steps(options), command)
        server = options["server"]
        if server not in self._admins:
            self._admins[server] = AIOKafkaAdminClient(bootstrap_servers=server)
            await self._admins[server].start()
        admin = self._admins[server]
        return await _step({**_topic_steps(admin, options), **_group_steps(admin, options)}, command)

    def _producer_steps(self, options: Options) -> Steps:
        producer = self._producers[options["producer"]]
        return {
            "init": lambda: producer.start(),
            "begin": lambda: producer.begin_transaction(),
            "commit": lambda: producer.commit_transaction(),
            "abort": lambda: producer.abort_transaction(),
            "send": lambda: _send(producer, options),
            "send-offsets": lambda: producer.send_offsets_to_transaction(_offset(options), options["group"]),
            "close": lambda: producer.stop(),
        }

    def _member_steps(self, options: Options) -> Steps:
        member = self._members[options["consumer"]]
        return {
            "poll": lambda: _polled(member, int(options["count"])),
            "assigned": lambda: _assigned(member),
            "commit-offset": lambda: member.consumer.commit(_offset(options)),
            "committed": lambda: _committed(member, options),
            **dict.fromkeys(("seek", "read-again"), lambda: _seek(member, options)),
            "leave": lambda: self._members.pop(options["consumer"]).consumer.stop(),
        }


async def _step(steps: Steps, command: str) -> Sequence[object] | None:
    if command not in steps:
        raise NoSuchCommandError(command)
    found = await steps[command]()
    return found if isinstance(found, list) else None


def _topic_steps(admin: AIOKafkaAdminClient, options: Options) -> Steps:
    topic, number = options["topic"], int(options.get("count", options.get("partitions", 0)))
    resource = ConfigResource(
        ConfigResourceType.TOPIC,
        topic,
        {options["name"]: options.get("value")} if "name" in options else None,
    )
    before = {
        aiokafka.TopicPartition(topic, int(options.get("partition", 0))): RecordsToDelete(
            int(options.get("offset", 0))
        )
    }
    return {
        "create-topic": lambda: _checked(admin.create_topics([NewTopic(topic, number, 1)])),
        "delete-topic": lambda: _checked(admin.delete_topics([topic])),
        "list-topics": lambda: admin.list_topics(),
        "describe-topic": lambda: _count(
            admin.describe_topics([topic]), lambda found: found[0]["partitions"]
        ),
        "create-partitions": lambda: _checked(admin.create_partitions({topic: NewPartitions(number)})),
        "delete-records": lambda: admin.delete_records(before),
        "list-offsets": lambda: _ends(options),
        "describe-config": lambda: _config(admin, resource, options["name"]),
        "alter-config": lambda: admin.alter_configs([resource]),
        "describe-cluster": lambda: _count(admin.describe_cluster(), lambda found: found["brokers"]),
    }


def _group_steps(admin: AIOKafkaAdminClient, options: Options) -> Steps:
    group = options.get("group", "")
    return {
        "list-groups": lambda: _names(admin.list_consumer_groups()),
        "describe-group": lambda: _described(admin, group),
        "group-offsets": lambda: _group_offsets(admin, group),
    }


def _where(options: Options) -> aiokafka.TopicPartition:
    return aiokafka.TopicPartition(options["topic"], int(options["partition"]))


def _offset(options: Options) -> dict[aiokafka.TopicPartition, int]:
    return {_where(options): int(options["offset"])}


def _configs(options: Options) -> dict[str, Any]:
    names = {"enable.auto.commit": "enable_auto_commit"}
    return {
        names.get(name[7:], name[7:].replace(".", "_")): int(value) if value.isdigit() else value
        for name, value in options.items()
        if name.startswith("config.")
    }


async def _opened(options: Options) -> aiokafka.AIOKafkaProducer:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=options["server"], **_configs(options))
    if "config.transactional.id" not in options:
        await producer.start()
    return producer


async def _send(producer: aiokafka.AIOKafkaProducer, options: Options) -> None:
    for record in options["records"].split(","):
        partition, value = record.split(":", 1)
        await producer.send_and_wait(options["topic"], value.encode(), partition=int(partition))


async def _joined(options: Options) -> aiokafka.AIOKafkaConsumer:
    if options["strategy"] != "eager":
        raise NoSuchCommandError("its assignors are all eager")
    consumer = aiokafka.AIOKafkaConsumer(
        options["topic"], bootstrap_servers=options["server"], group_id=options["group"],
        enable_auto_commit=False, auto_offset_reset="earliest", heartbeat_interval_ms=300,
        **_configs(options),
    )  # fmt: skip
    await consumer.start()
    return consumer


async def _polled(member: Member, count: int) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while len(member.given) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(member.given)} records of {count}")
        await member.poll()
    return [member.given.popleft() for _ in range(count)]


async def _assigned(member: Member) -> list[int]:
    await member.poll()
    return sorted(each.partition for each in member.consumer.assignment())


async def _committed(member: Member, options: Options) -> list[object]:
    found = await member.consumer.committed(_where(options))
    return ["none" if found is None else found]


async def _seek(member: Member, options: Options) -> None:
    member.given.clear()
    member.consumer.seek(_where(options), int(options["offset"]))


async def _consumed(options: Options) -> list[str]:
    consumer, where = (
        aiokafka.AIOKafkaConsumer(bootstrap_servers=options["server"], isolation_level=options["level"]),
        _where(options),
    )
    await consumer.start()
    try:
        consumer.assign([where])
        await consumer.seek_to_beginning(where)
        end = (await consumer.end_offsets([where]))[where]
        found, deadline = list[str](), time.monotonic() + PATIENCE
        while await consumer.position(where) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} records, end {end}")
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found.extend(each.value.decode() for each in records)
        return found
    finally:
        await consumer.stop()


async def _ends(options: Options) -> list[object]:
    consumer, where = aiokafka.AIOKafkaConsumer(bootstrap_servers=options["server"]), _where(options)
    await consumer.start()
    try:
        first = await consumer.beginning_offsets([where])
        last = await consumer.end_offsets([where])
    finally:
        await consumer.stop()
    return [first[where], last[where]]


async def _checked(answer: Awaitable[Any]) -> None:
    found = await answer
    for name in ("topic_errors", "topic_error_codes"):
        for each in getattr(found, name, ()):
            if each[1]:
                raise for_code(each[1])(str(each[0]))


async def _count(answer: Awaitable[Any], part: Callable[[Any], Sequence[object]]) -> list[object]:
    return [len(part(await answer))]


async def _names(answer: Awaitable[Any]) -> list[object]:
    return sorted(each[0] for each in await answer)


async def _config(admin: AIOKafkaAdminClient, resource: ConfigResource, name: str) -> list[object]:
    for found in await admin.describe_configs([resource]):
        for each in found.resources[0][4]:
            if each[0] == name:
                return [each[1]]
    raise TimeoutError(name)


async def _described(admin: AIOKafkaAdminClient, group: str) -> list[object]:
    (found,) = await admin.describe_consumer_groups([group])
    (_, _, state, _, _, members, *_) = found.groups[0]
    return [state.lower(), len(members)]


async def _group_offsets(admin: AIOKafkaAdminClient, group: str) -> list[object]:
    found = await admin.list_consumer_group_offsets(group)
    return sorted(f"{where.partition}:{each.offset}" for where, each in found.items())


def main() -> None:
    """Answer commands; the loop is in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    client = AiokafkaClient()

    def answer(command: str, options: Options) -> Sequence[object] | None:
        return asyncio.run_coroutine_threadsafe(client.answer(command, options), loop).result(2 * PATIENCE)

    answer_commands(answer, (KafkaError, ValueError))


if __name__ == "__main__":
    main()

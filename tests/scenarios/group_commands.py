"""The commands of a scenario that are about groups, and what they print. See ``Interpreter``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.scenarios.arguments import Arguments, partition_of
from tests.scenarios.consumer_members import ConsumerMembers
from tests.scenarios.member import Members
from tests.scenarios.producer import Producer, Request
from txnkafka.broker.records.records_deletion import delete_records
from txnkafka.coordinator.group.group_requests import OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.storage.log.log_records import records_of_log
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.wire.records.group_log import ConsumerRecordType, decode_consumer_record, decode_group_log

__all__ = ["GroupCommands", "group_lines"]


class GroupCommands:
    """``members`` and ``producers`` by name; a command becomes a request with its label."""

    def __init__(self, members: Members, producers: dict[str, Producer]) -> None:
        self._members, self._producers = members, producers
        self._kinds: dict[str, Callable[[Arguments], Request]] = {
            **members.requests(),
            **ConsumerMembers(members).requests(),
            "commit": self._commit,
            "send-offsets": self._send_offsets,
            "offsets": self._offsets,
            "delete-offsets": self._delete_offsets,
            "delete-group": self._delete_group,
            "describe-group": self._describe_group,
            "delete-records": self._delete_records,
        }

    def request(self, verb: str, given: Arguments) -> Request | None:
        """The request that a command stands for; None for another command."""
        kind = self._kinds.get(verb)
        return kind(given) if kind is not None else None

    def _commit(self, given: Arguments) -> Request:
        group, *offsets = given.words
        identity, wanted = self._members.who(group, given), _to_commit(offsets, given)
        version = given.number("version", 9)
        return Request(
            lambda broker, reply: broker.groups.commit(
                identity, _of_topics(wanted, broker), reply, version=version
            ),
            _errors,
        )

    def _send_offsets(self, given: Arguments) -> Request:
        name, group, *offsets = given.words
        producer = self._producers[name]
        identity, wanted = self._members.who(group, given), _to_commit(offsets, given)
        version = given.number("version", 5 if producer.version == 2 else 4)
        of = ProducerIdAndEpoch(producer.producer_id, given.number("epoch", producer.producer_epoch))
        transactional_id = producer.transactional_id or ""
        return Request(
            lambda broker, reply: broker.commit_in_transaction(
                identity,
                transactional_id,
                of,
                _of_topics(wanted, broker),
                reply,
                version=version,
            ),
            _errors,
        )

    def _offsets(self, given: Arguments) -> Request:
        group, *names = given.words
        is_stable = "stable" in names
        wanted = [partition_of(name) for name in names if name != "stable"] or None

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            broker.groups.fetch(
                group, wanted, lambda error, found: reply((error, found)), require_stable=is_stable
            )

        def taken(answer: Any) -> str:
            error, found = answer
            return error.name if error else ", ".join(map(_offset_text, sorted(found.items()))) or "none"

        return Request(send, taken)

    def _delete_offsets(self, given: Arguments) -> Request:
        group, *names = given.words
        wanted = [partition_of(name) for name in names]

        def send(broker: Any, reply: Callable[[Any], None]) -> None:
            broker.groups.delete_offsets(group, wanted, lambda error, found: reply((error, found)))

        return Request(send, lambda answer: answer[0].name if answer[0] else _errors(answer[1]))

    def _delete_group(self, given: Arguments) -> Request:
        (group,) = given.words
        return Request(lambda broker, reply: broker.groups.delete(group, reply), lambda error: error.name)

    def _describe_group(self, given: Arguments) -> Request:
        (group,) = given.words

        def taken(found: Any) -> str:
            if found.error != ErrorCode.NONE:
                return str(found.error.name)
            members = [self._members.shown(each.member_id) for each in found.members]
            return f"{found.state}, {found.protocol or 'no protocol'}, members {' '.join(members) or 'none'}"

        return Request(lambda broker, reply: reply(broker.groups.describe(group)), taken)

    def _delete_records(self, given: Arguments) -> Request:
        partition, before = partition_of(given.words[0]), given.number("before", -1)

        def taken(results: Any) -> str:
            found = results[partition]
            return f"{found.error.name}, log start {found.low_watermark}"

        return Request(lambda broker, reply: delete_records(broker, {partition: before}, reply), taken)


def _to_commit(words: list[str], given: Arguments) -> dict[TopicPartition, OffsetToCommit]:
    pairs = [word.partition("=") for word in words]
    metadata = given.text("metadata", "")
    return {partition_of(name): OffsetToCommit(int(offset), 0, metadata) for name, _, offset in pairs}


def _of_topics(
    wanted: dict[TopicPartition, OffsetToCommit], broker: Any
) -> dict[TopicPartition, OffsetToCommit]:
    """With the ids that the topics have now."""
    topics = broker.image.topics
    return {
        each: offset._replace(topic_id=topics[each.topic].topic_id) if each.topic in topics else offset
        for each, offset in wanted.items()
    }


def _errors(found: dict[TopicPartition, ErrorCode]) -> str:
    return ", ".join(f"{partition} {error.name}" for partition, error in sorted(found.items())) or "nothing"


def _offset_text(row: tuple[TopicPartition, Any]) -> str:
    partition, found = row
    if found.error != ErrorCode.NONE:
        return f"{partition} {found.error.name}"
    return f"{partition} {found.offset}" + (f' "{found.metadata}"' if found.metadata else "")


def group_lines(log: PartitionLog, members: Members) -> Iterator[str]:
    """Every record of a partition of ``__consumer_offsets``."""
    for record in records_of_log(log):
        consumer = decode_consumer_record(record.key or b"", record.value)
        if consumer is not None:
            yield f"{record.offset} {_consumer_text(*consumer, members)}"
            continue
        decoded = decode_group_log(record.key or b"", record.value)
        key, value = decoded.key or {}, decoded.value
        name = (
            f"group {key['group']}"
            if "topic" not in key
            else f"{key['group']} {key['topic']}-{key['partition']}"
        )
        if value is None:
            yield f"{record.offset} {name}: tombstone"
        elif "offset" in value:
            yield f"{record.offset} {name}: {value['offset']}"
        else:
            there = " ".join(members.shown(each["member_id"]) for each in value["members"])
            yield f"{record.offset} {name}: generation {value['generation']}, members {there or 'none'}"


def _consumer_text(
    kind: ConsumerRecordType, group_id: str, name: str, fields: dict[str, Any] | None, members: Members
) -> str:
    """A record of a consumer group, without the partitions."""
    what = kind.name.lower().replace("_", " ")
    of = "" if not name else f" of {members.names.get(name, name)}"
    if fields is None:
        return f"group {group_id}: {what}{of}: tombstone"
    epochs = [fields[each] for each in ("member_epoch", "assignment_epoch", "epoch") if each in fields]
    return f"group {group_id}: {what}{of}" + (f": epoch {epochs[0]}" if epochs else "")

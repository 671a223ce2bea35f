"""Checks the conditions after a time without faults, and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import FetchPartition, FetchRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel
from txnkafka.testing.simulation.hostile_producer import HostileProducer
from txnkafka.testing.simulation.log_checker import (
    OFFSETS_TOPIC,
    STATE_TOPIC,
    check_directory,
    committed_offsets,
    committed_records,
)
from txnkafka.testing.simulation.node import PATH
from txnkafka.testing.simulation.reader import Fetched, fetch, visible
from txnkafka.testing.simulation.shops import COMPACTED
from txnkafka.testing.simulation.transactional_program import TransactionalProgram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.group_members import GroupMembers
    from txnkafka.testing.simulation.history import History
    from txnkafka.testing.simulation.node import SimulatedNode
    from txnkafka.testing.simulation.producer import Producer
    from txnkafka.testing.simulation.reading_program import ReadingProgram
    from txnkafka.testing.simulation.sending import Sending
    from txnkafka.testing.simulation.swarm import Swarm

_PREPARED = (2, 3)


class Quiet:
    """The state at the beginning of a calm window; ``problems`` are the parts without progress at its end."""

    def __init__(
        self,
        node: SimulatedNode,
        producers: Sequence[Producer | Sending],
        consumers: Sequence[ReadingProgram],
        members: GroupMembers | None,
        world: World,
    ) -> None:
        self._node = node
        self._members = members
        self._producers = [
            (each, each.transactions) for each in producers
            if isinstance(each, HostileProducer | TransactionalProgram) and not each.is_replaced
        ]  # fmt: skip
        self._consumers = consumers
        self._world = world
        self._gave_up = world.gave_up
        self._ends = {} if node.broker is None else log_ends(node.broker)

    def problems(self) -> list[str]:
        """Return the parts without progress."""
        found: list[str] = []
        if self._node.broker is None:
            return ["unavailable: the node is down after a calm window"]
        if self._world.gave_up > self._gave_up:
            found.append("unavailable: a client gave up in a calm window")
        moved = {
            producer.transactional_id
            for producer, transactions in self._producers
            if producer.transactions > transactions
        }
        for producer, _ in self._producers:  # processes with the same id fence each other
            if producer.transactional_id not in moved:
                found.append(f"stuck: {producer.name} ended no transaction in a calm window")
        for consumer in self._consumers:
            for partition, position in consumer.positions.items():
                is_kept = not self._world.history.topics[partition[0]].is_deletable
                if is_kept and position < self._ends.get(partition, 0):
                    found.append(
                        f"unseen: {consumer.name} is at offset {position} of {partition[0]}-{partition[1]}, "
                        f"which ended at {self._ends[partition]} before the calm window"
                    )
        if self._members is not None:
            found += [f"unassigned: {each}" for each in self._members.unassigned()]
        for group_id, partition, position in self._members.positions() if self._members else ():
            if position < self._ends.get(partition, 0):
                found.append(
                    f"unseen: group {group_id} is at offset {position} of {partition}, which ended at "
                    f"{self._ends[partition]} before the calm window"
                )
        return found


def log_ends(broker: Broker) -> dict[TopicPartition, int]:
    """Return the log end offsets."""
    return {partition: log.log_end_offset for partition, log in broker.logs.items()}


def checked_end(
    node: SimulatedNode,
    producers: Sequence[Producer | Sending],
    consumers: Sequence[ReadingProgram],
    history: History,
    swarm: Swarm,
) -> list[str]:
    """Return the violated conditions after the end of all clients; store the records of all partitions in
    ``history``."""
    broker = node.broker
    if broker is None:
        return ["unavailable: the node is down in the end"]
    node.finish()  # requests that keep ids and members alive continue to the end
    found = [f"stuck: {each.name} has not ended" for each in producers if not each.is_over]
    found += _open_transactions(broker)
    found += [
        f"unseen: {consumer.name} is at {position} of {partition[0]}-{partition[1]}, which ends at "
        f"{broker.logs[partition].log_end_offset}"
        for consumer in consumers
        for partition, position in consumer.positions.items()
        if position < broker.logs[partition].log_end_offset
    ]  # fmt: skip
    _read_all(broker, history)
    history.final_offsets = _offsets_of(broker, history)
    history.final_settings = _settings_of(broker, history)
    found += _not_committed(history)
    states = states_of(broker)
    node.stop()
    found += _check_files(node, history, states, swarm)
    node.start()
    broker = node.broker
    if broker is None:
        return [*found, "unavailable: the node does not start again"]
    CallerHost(broker, node.now_ms).idle()
    if states_of(broker) != states:
        found.append(f"reload: the coordinator has loaded {states_of(broker)}, and had {states}")
    reopened = type(history)(topics=history.topics)
    _read_all(broker, reopened)
    if reopened.final != history.final:
        found.append("reopen: the records are others after a restart")
    settings = _settings_of(broker, history)
    if settings != history.final_settings:
        found.append(f"reopen: the settings are {settings} after a restart, not {history.final_settings}")
    offsets = _offsets_of(broker, history)
    if offsets != history.final_offsets:
        found.append(f"reopen: the offsets are {offsets} after a restart, and were {history.final_offsets}")
    return found


def _check_files(node: SimulatedNode, history: History, states: list[str], swarm: Swarm) -> list[str]:
    """Check the files, read independently of the engine."""
    directory = directory_of(node)
    lenient = {topic.name for topic in history.topics.values() if topic.loses_old or topic.is_compacted}
    lenient.add("__cluster_metadata")
    if swarm.alters_settings:  # a recreated topic may be compacted
        lenient |= {topic.name for topic in history.topics.values() if topic.is_deletable}
    if swarm.forgets_producers:
        lenient |= history.topics.keys() | {OFFSETS_TOPIC}
    if "compaction" in swarm.faults:
        lenient |= {STATE_TOPIC, OFFSETS_TOPIC, *COMPACTED}
    found = check_directory(directory, lenient, keeps_transactions=swarm.preparers > 0)
    for (is_committed, (topic, number)), values in history.final.items():
        start = history.log_starts[topic, number]
        if is_committed:
            in_files = [
                (offset, int.from_bytes((value or b"")[:8], "big"))
                for offset, value in committed_records(directory[f"{topic}-{number}"]) if offset >= start
            ]  # fmt: skip
            if in_files != values:
                found.append(f"{topic}-{number}: read_committed is not what the files say")
    offsets = {key: at for key, at in committed_offsets(directory).items() if key[0] in history.groups}
    shown = {(group, *partition): at for (group, partition), at in history.final_offsets.items()}
    if offsets != shown:
        found.append(f"the committed offsets are {shown}, and in the files {offsets}")
    return found


def directory_of(node: SimulatedNode) -> dict[str, dict[str, bytes]]:
    """The files of each partition directory, by name. Deleted topics are left out: their files were released
    without the completion by a stop or a start."""
    files = node.files
    found = {}
    for entry in files.list(PATH):
        if entry.is_directory and not entry.name.endswith(("-delete", "-stray")):
            path = files.join(PATH, entry.name)
            found[entry.name] = {
                each.name: files.read(files.join(path, each.name), 1 << 30) for each in files.list(path)
            }
    return found


def states_of(broker: Broker) -> list[str]:
    """Return the coordinator's transactional ids with all fields, as text."""
    return [
        f"{state.metadata[each]} {sorted(state.metadata[each].topic_partitions)}".replace("frozenset", "")
        for _, state in sorted(broker.transactions.coordinator.partitions.items())
        for each in sorted(state.metadata)
    ]


def _open_transactions(broker: Broker) -> list[str]:
    found = []
    for partition, log in sorted(broker.logs.items()):
        if not log.last_stable_offset == log.high_watermark == log.log_end_offset:
            found.append(
                f"hanging: {partition[0]}-{partition[1]} ends at {log.log_end_offset}, high watermark "
                f"{log.high_watermark}, last stable offset {log.last_stable_offset}"
            )
    for _, state in sorted(broker.transactions.coordinator.partitions.items()):
        for transactional_id, metadata in sorted(state.metadata.items()):
            if metadata.topic_partitions:
                found.append(f"hanging: {transactional_id} is {metadata.state.label} in the end")
    return found


def _offsets_of(broker: Broker, history: History) -> dict[tuple[str, tuple[str, int]], int]:
    """Return the groups' committed offsets."""
    found: dict[tuple[str, tuple[str, int]], int] = {}
    host = CallerHost(broker, lambda: broker.now_ms)
    for group_id in history.groups:

        def answered(error: ErrorCode, rows: Mapping[TopicPartition, Any], group_id: str = group_id) -> None:
            assert error == ErrorCode.NONE, error
            found.update({(group_id, partition): row.offset for partition, row in rows.items()})

        host.call(broker.groups.fetch, group_id, None, answered, require_stable=False)
        host.idle()
    return found


def _settings_of(broker: Broker, history: History) -> dict[str, dict[str, str]]:
    """Return the settings of the existing topics."""
    return {
        name: dict(broker.image.topic_configs(name)) for name in history.topics if name in broker.image.topics
    }


def is_behind(node: SimulatedNode, history: History) -> bool:
    """Return whether a group has not committed all records yet; store the records and offsets in
    ``history``."""
    if node.broker is None:
        return False
    _read_all(node.broker, history)
    history.final_offsets = _offsets_of(node.broker, history)
    return bool(_not_committed(history))


def _not_committed(history: History) -> list[str]:
    """Return groups whose members stopped before the last record."""
    return [
        f"stuck: {group_id} has committed {at} of {partition}, and the last record is at {values[-1][0]}"
        for (group_id, partition), at in history.final_offsets.items()
        if group_id in set(history.group_of().values())
        and (values := history.final.get((True, partition))) and at <= values[-1][0]
    ]  # fmt: skip


def _read_all(broker: Broker, history: History) -> None:
    for topic in history.topics.values():
        for partition in broker.logs:
            if partition.topic == topic.name:
                history.log_starts[partition] = broker.logs[partition].log_start_offset
                for level in IsolationLevel:
                    is_committed = level is IsolationLevel.READ_COMMITTED
                    values = _read(broker, partition, level)
                    history.final[is_committed, partition] = values


def _read(broker: Broker, partition: TopicPartition, level: IsolationLevel) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    position = broker.logs[partition].log_start_offset
    while True:
        answers: list[list[Fetched] | None] = []
        request = FetchRequest([FetchPartition(partition, position, 1 << 20)], level)
        fetch(broker, request, answers.append)
        assert answers[0] is not None
        answer = answers[0][0]
        assert answer.error == ErrorCode.NONE, answer
        values, end = visible(answer, position)
        found += values
        if end == position:
            return found
        position = end

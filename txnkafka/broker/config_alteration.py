"""Configs of topics, brokers, groups and subscriptions to metrics are changed: in the registry, durably, and
in effect when that is done.

Source: ``ConfigurationControlManager``, ``ConfigAdminManager`` (KIP-226, KIP-339).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.broker_config import check_topic
from txnkafka.broker.client_metrics import subscription_refusal
from txnkafka.broker.config_names import DYNAMIC, DYNAMIC_WITHOUT_EFFECT
from txnkafka.broker.group_configs import check_group
from txnkafka.broker.registry_change import register
from txnkafka.coordinator import metadata_records
from txnkafka.coordinator.cluster_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import InvalidTopicError
from txnkafka.model import TopicPartition, validate_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.metadata_records import LogRecord

__all__ = ["Alteration", "ConfigChange", "ConfigOp", "alter_configs"]

_LONGEST: Final = 32_767
_MIN_ISR: Final = "min.insync.replicas"
_ELR: Final = "eligible.leader.replicas.version"
_LISTS: Final = {  # of topics and brokers, with their defaults
    "cleanup.policy": "delete",
    "log.cleanup.policy": "delete",
    "leader.replication.throttled.replicas": "",
    "follower.replication.throttled.replicas": "",
}


class ConfigOp(IntEnum):
    """What is done to a config (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One config; ``value`` is the text to set, or the elements of a list."""

    name: str
    op: ConfigOp
    value: str | None


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of one resource. With ``is_whole``, configs that are not named get their defaults."""

    resource_type: int
    resource_name: str
    changes: Sequence[ConfigChange]
    is_whole: bool = False


class _Refusal(NamedTuple):
    error: ErrorCode
    message: str


def alter_configs(
    broker: Broker,
    wanted: Alteration,
    reply: Callable[[ErrorCode, str | None], None],
    *,
    validate_only: bool = False,
) -> None:
    """Change the configs of a resource, all or none of them. Answers when they are durable and have taken
    effect."""
    thing = wanted.resource_type, wanted.resource_name
    turn = broker.turns.of(thing)

    def done(error: ErrorCode, message: str | None = None) -> None:
        turn.end()
        reply(error, message)

    def begin() -> None:
        new = _altered(wanted, broker.image.configs.get(thing, {}))
        refused = new if isinstance(new, _Refusal) else _refusal(broker, wanted, new)
        if isinstance(new, _Refusal) or refused is not None:
            code, message = refused or (ErrorCode.NONE, "")
            broker.durability.soon(lambda: done(code, message))
            return
        records = [] if validate_only else _records(wanted, new, broker.image.configs.get(thing, {}))
        _write(broker, wanted, records, done)

    turn.take(begin)


def _altered(wanted: Alteration, current: Mapping[str, str]) -> dict[str, str] | _Refusal:
    """The configs of the resource behind the changes."""
    new = {} if wanted.is_whole else dict(current)
    for name, op, value in wanted.changes:
        if op == ConfigOp.DELETE:
            new.pop(name, None)
        elif op == ConfigOp.SET:
            new[name] = value or ""
        elif name not in _LISTS or wanted.resource_type not in (TOPIC_RESOURCE, BROKER_RESOURCE):
            return _Refusal(ErrorCode.INVALID_CONFIG, f"Can't {op.name} to key {name}: it is not a list.")
        else:
            new[name] = _changed_list(new.get(name, _LISTS[name]), op, value or "")
        if len(new.get(name, "")) > _LONGEST:
            return _Refusal(ErrorCode.INVALID_CONFIG, f"{name} is longer than {_LONGEST} characters")
    return new


def _changed_list(text: str, op: ConfigOp, value: str) -> str:
    parts = [part for part in text.split(",") if part]
    for each in value.split(","):
        if op == ConfigOp.APPEND and each not in parts:
            parts.append(each)
        elif op == ConfigOp.SUBTRACT and each in parts:
            parts.remove(each)
    return ",".join(parts)


def _refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """Why a resource cannot have these configs; None when it can."""
    name = wanted.resource_name
    if wanted.resource_type == TOPIC_RESOURCE:
        return _topic_refusal(broker, name, new)
    if wanted.resource_type == GROUP_RESOURCE:
        return _group_refusal(broker, name, new)
    if wanted.resource_type == CLIENT_METRICS_RESOURCE:
        refused = subscription_refusal(name, new)
        return _Refusal(*refused) if refused else None
    return _broker_refusal(broker, wanted, new)


def _group_refusal(broker: Broker, name: str, new: Mapping[str, str]) -> _Refusal | None:
    if not name:
        return _Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    try:
        check_group(broker.config, new)
    except ValueError as error:
        return _Refusal(ErrorCode.INVALID_CONFIG, str(error))
    return None


def _topic_refusal(broker: Broker, name: str, new: Mapping[str, str]) -> _Refusal | None:
    if not name:
        return _Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    try:
        validate_topic(name)
        own = broker.image.topic_configs(name)
        kept = {each for each in broker.config.faults(own) if new.get(each) == own[each]}
        check_topic(broker.config, {each: new[each] for each in new if each not in kept})
    except InvalidTopicError as error:
        return _Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error))
    except ValueError as error:
        return _Refusal(ErrorCode.INVALID_CONFIG, str(error))
    if name not in broker.image.topics:
        return _Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return None


def _broker_refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """A name that is only deleted need not be known."""
    node = wanted.resource_name
    if node not in ("", str(broker.node_id)):
        message = f"Unexpected broker id, expected {broker.node_id}, but received {node}"
        return _Refusal(ErrorCode.INVALID_REQUEST, message)
    configs = broker.configs
    named = {change.name: new[change.name] for change in wanted.changes if change.name in new}
    for name in named:
        if name not in DYNAMIC | DYNAMIC_WITHOUT_EFFECT:
            message = f"Cannot update these configs dynamically: [{name}]"
            return _Refusal(ErrorCode.INVALID_REQUEST, message)
    try:
        check_topic(configs.static, {name: named[name] for name in named if name in DYNAMIC_WITHOUT_EFFECT})
        configs.check(new, named, is_of_node=bool(node))
    except ValueError as error:
        return _Refusal(ErrorCode.INVALID_REQUEST, str(error))
    return _min_isr_refusal(broker, wanted, new)


def _min_isr_refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """Where leaders may be elected out of those that have left the ISR, all brokers have one limit of it."""
    if not broker.image.features.get(_ELR):
        return None
    current = broker.image.configs.get((wanted.resource_type, wanted.resource_name), {})
    is_changed = _MIN_ISR in {change.name for change in wanted.changes} | (current.keys() - new.keys())
    if is_changed and wanted.resource_name:
        message = f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled."
        return _Refusal(ErrorCode.INVALID_CONFIG, message)
    if is_changed and _MIN_ISR not in new:
        message = f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
        return _Refusal(ErrorCode.INVALID_CONFIG, message)
    return None


def _records(wanted: Alteration, new: Mapping[str, str], current: Mapping[str, str]) -> list[LogRecord]:
    """What the registry gets: of a broker also what stays as it is, as in Kafka."""
    resource = wanted.resource_type, wanted.resource_name
    named = [change.name for change in wanted.changes]
    names = [*named, *(name for name in current if name not in new and name not in named)]
    is_broker = wanted.resource_type == BROKER_RESOURCE
    changed = [name for name in names if is_broker or new.get(name) != current.get(name)]
    records = [metadata_records.config(*resource, name, new.get(name)) for name in changed]
    if _MIN_ISR in changed:
        records.append(metadata_records.clear_elr("" if is_broker else wanted.resource_name))
    return records


def _write(
    broker: Broker,
    wanted: Alteration,
    records: Sequence[LogRecord],
    done: Callable[[ErrorCode, str | None], None],
) -> None:
    def registered(error: ErrorCode, message: str | None) -> None:
        if error == ErrorCode.NONE:
            _take_effect(broker, wanted)
        done(error, message)

    if records:
        register(broker.services, records, registered)
    else:
        broker.durability.soon(lambda: done(ErrorCode.NONE, None))


def _take_effect(broker: Broker, wanted: Alteration) -> None:
    """Give the open logs and the coordinator of groups their settings; groups are asked for theirs."""
    if wanted.resource_type not in (TOPIC_RESOURCE, BROKER_RESOURCE):
        return
    if wanted.resource_type == BROKER_RESOURCE:
        broker.configs.refresh()
        broker.groups.configure()
    topics = broker.image.topics
    for name in topics if wanted.resource_type == BROKER_RESOURCE else (wanted.resource_name,):
        config = broker.configs.of_topic(name)
        for number in topics[name].partitions if name in topics else ():
            log = broker.logs.get(TopicPartition(name, number))
            if log is not None:
                log.update_config(config)

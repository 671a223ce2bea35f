"""Changes configs of topics, brokers, groups and subscriptions to metrics: durably in the registry, then in
effect.

Source: ``ConfigAdminManager``, ``ConfigurationControlManager``, ``RuntimeLoggerManager`` (KIP-226, KIP-339).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.config.broker_config import DYNAMIC, check_topic
from txnkafka.broker.config.client_metrics import subscription_refusal
from txnkafka.broker.config.config_names import TOPIC_WITHOUT_EFFECT
from txnkafka.broker.config.group_settings import check_group
from txnkafka.broker.registry.registry_change import register
from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.cluster_image import (
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
    from txnkafka.coordinator.registry.metadata_records import LogRecord

_LOGGER_RESOURCE: Final = 8
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
    """The operation on a config (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One config; ``op`` is a ``ConfigOp`` if known, ``value`` the text to set or the elements of a list."""

    name: str
    op: int
    value: str | None


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of one resource. With ``is_whole``, configs that are not named get their defaults."""

    resource_type: int
    resource_name: str
    changes: Sequence[ConfigChange]
    is_whole: bool = False


class Altered(NamedTuple):
    """The result of the changes of one resource, with the names of the fields in responses."""

    resource_type: int
    resource_name: str
    error_code: ErrorCode
    error_message: str | None


class _Refusal(NamedTuple):
    error: ErrorCode
    message: str | None


def alter_all(
    broker: Broker,
    alterations: Sequence[Alteration],
    reply: Callable[[list[Altered]], None],
    *,
    validate_only: bool,
) -> None:
    """Change the configs of resources, each for itself; one that is named twice is not changed. Answers when
    the new configs are durable and have taken effect."""
    counts = Counter((each.resource_type, each.resource_name) for each in alterations)
    results: dict[int, Altered] = {}

    def done(i: int, error: ErrorCode, message: str | None = None) -> None:
        results[i] = Altered(alterations[i].resource_type, alterations[i].resource_name, error, message)
        if len(results) == len(alterations):
            reply([results[i] for i in range(len(alterations))])

    if not alterations:
        reply([])
    for i, alteration in enumerate(alterations):
        is_double = counts[alteration.resource_type, alteration.resource_name] > 1
        refused = _request_refusal(broker, alteration, is_double=is_double)
        if refused is None:
            alter_configs(broker, alteration, partial(done, i), validate_only=validate_only)
        else:
            done(i, *refused)


def _request_refusal(broker: Broker, wanted: Alteration, *, is_double: bool) -> _Refusal | None:
    """Return the error of the request itself, None if it is valid."""
    if is_double:
        return _Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if max(Counter(change.name for change in wanted.changes).values(), default=0) > 1:
        return _Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    needing = [change for change in wanted.changes if change.op != ConfigOp.DELETE]
    nulls = [change.name for change in needing if change.value is None]
    if nulls:
        return _Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    unknown = [change.op for change in wanted.changes if change.op not in tuple(ConfigOp)]
    if unknown:
        return _Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown[0]}")
    kind = wanted.resource_type
    if kind == _LOGGER_RESOURCE and not wanted.is_whole:
        return _logger_answer(broker, wanted)
    if kind not in (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        return _Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return None


def _logger_answer(broker: Broker, wanted: Alteration) -> _Refusal:
    """Return the answer for a logger: this broker has no loggers with changeable levels."""
    if wanted.resource_name != str(broker.node_id):
        text = f"Unexpected node id. Expected {broker.node_id}, but received {wanted.resource_name}"
        return _Refusal(ErrorCode.INVALID_REQUEST, text)
    for name, op, _ in wanted.changes:
        if op not in (ConfigOp.SET, ConfigOp.DELETE):
            text = f"{ConfigOp(op).name} operation is not allowed for the BROKER_LOGGER resource"
            return _Refusal(ErrorCode.INVALID_REQUEST, text)
        return _Refusal(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    return _Refusal(ErrorCode.NONE, None)


def alter_configs(
    broker: Broker,
    wanted: Alteration,
    reply: Callable[[ErrorCode, str | None], None],
    *,
    validate_only: bool = False,
) -> None:
    """Change all configs of a resource, or none. Answer when they are durable and in effect."""
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
    """Return the configs of the resource after the changes."""
    new = {} if wanted.is_whole else dict(current)
    for name, op, value in wanted.changes:
        if op == ConfigOp.DELETE:
            new.pop(name, None)
        elif op == ConfigOp.SET:
            new[name] = value or ""
        elif name not in _LISTS or wanted.resource_type not in (TOPIC_RESOURCE, BROKER_RESOURCE):
            message = f"Can't {ConfigOp(op).name} to key {name}: it is not a list."
            return _Refusal(ErrorCode.INVALID_CONFIG, message)
        else:
            new[name] = _changed_list(new.get(name, _LISTS[name]), op, value or "")
        if len(new.get(name, "")) > _LONGEST:
            return _Refusal(ErrorCode.INVALID_CONFIG, f"{name} is longer than {_LONGEST} characters")
    return new


def _changed_list(text: str, op: int, value: str) -> str:
    parts = [part for part in text.split(",") if part]
    for each in value.split(","):
        if op == ConfigOp.APPEND and each not in parts:
            parts.append(each)
        elif op == ConfigOp.SUBTRACT and each in parts:
            parts.remove(each)
    return ",".join(parts)


def _refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """Return the refusal of these configs; None when the resource can have them."""
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
        return _Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    return None


def _broker_refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """Return the refusal of a broker's configs. A name that is only deleted may be unknown."""
    node = wanted.resource_name
    if node not in ("", str(broker.node_id)):
        message = f"Unexpected broker id, expected {broker.node_id}, but received {node}"
        return _Refusal(ErrorCode.INVALID_REQUEST, message)
    configs = broker.configs
    named = {change.name: new[change.name] for change in wanted.changes if change.name in new}
    for name in named:
        if name not in DYNAMIC:
            message = f"Cannot update these configs dynamically: [{name}]"
            return _Refusal(ErrorCode.INVALID_REQUEST, message)
    try:
        check_topic(configs.static, {name: named[name] for name in named if name in TOPIC_WITHOUT_EFFECT})
        configs.check(new, named, is_of_node=bool(node))
    except ValueError as error:
        return _Refusal(ErrorCode.INVALID_REQUEST, str(error))
    return _min_isr_refusal(broker, wanted, new)


def _min_isr_refusal(broker: Broker, wanted: Alteration, new: Mapping[str, str]) -> _Refusal | None:
    """Refuse a min.insync.replicas per broker while ELR is enabled: it is cluster-wide then (KIP-966)."""
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
    """Return the records of the change; for a broker also unchanged values, as in Kafka."""
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

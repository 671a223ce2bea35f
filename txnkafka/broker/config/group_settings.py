"""The configs of groups (resource type GROUP), and the settings of groups as the coordinator takes them.

Configs of consumer groups have effect. Share and streams groups are not served: their configs are checked and
kept for a broker that serves them.

Source: ``GroupConfig``, ``GroupCoordinatorConfig``, ``ShareGroupConfig``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from txnkafka.config import INT32_MAX, INT64_MAX, ConfigDef, parsed
from txnkafka.coordinator.group.classic.classic_rebalance import GroupConfig
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig, MigrationPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.config import Kind


def _doc(name: str) -> str:
    kind = name.partition(".")[0].replace("errors", "share")
    if name == "consumer.assignor.offload.enable":
        return "whether Kafka assigns partitions in another thread; no effect here"
    if kind == "consumer":
        return f"overrides group.{name} of the broker for this group"
    return f"for {kind} groups, which are not supported; kept for a broker that supports them"


def _number(name: str, default: int, low: int, high: int, *, is_internal: bool = False) -> ConfigDef:
    kind: Kind = "int" if high <= INT32_MAX else "long"
    broker = (f"group.{name}",)
    return ConfigDef(name, kind, str(default), _doc(name), broker, low, high, is_internal=is_internal)


def _other(
    name: str, kind: Kind, default: str, broker: str = "", *allowed: str, is_internal: bool = False
) -> ConfigDef:
    of_broker = (broker,) if broker else ()
    return ConfigDef(name, kind, default, _doc(name), of_broker, allowed=allowed, is_internal=is_internal)


def _offload(of: str) -> ConfigDef:
    name = f"{of}.assignor.offload.enable"
    return _other(name, "boolean", "true", f"group.{name}", is_internal=True)


_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_ROWS: Final = (
    _number("consumer.session.timeout.ms", 45_000, 45_000, 60_000),
    _number("consumer.heartbeat.interval.ms", 5_000, 5_000, 15_000),
    _number("consumer.assignment.interval.ms", 1_000, 0, 15_000),
    _offload("consumer"),
    _number("share.session.timeout.ms", 45_000, 45_000, 60_000),
    _number("share.heartbeat.interval.ms", 5_000, 5_000, 15_000),
    _number("share.record.lock.duration.ms", 30_000, 15_000, 60_000),
    _number("share.delivery.count.limit", 5, 2, 10),
    _number("share.partition.max.record.locks", 2_000, 100, 4_000),
    _number("share.assignment.interval.ms", 1_000, 0, 15_000),
    _other("share.auto.offset.reset", "string", "latest"),
    _other("share.isolation.level", "string", "read_uncommitted", "", "read_committed", "read_uncommitted"),
    _other("share.renew.acknowledge.enable", "boolean", "true"),
    _offload("share"),
    _other(_DEAD_LETTERS, "string", ""),
    _other("errors.deadletterqueue.copy.record.enable", "boolean", "false"),
    _number("streams.session.timeout.ms", 45_000, 45_000, 60_000),
    _number("streams.heartbeat.interval.ms", 5_000, 5_000, 15_000),
    _number("streams.num.standby.replicas", 0, 0, 2),
    _number("streams.initial.rebalance.delay.ms", 3_000, 0, INT32_MAX),
    _number("streams.assignment.interval.ms", 1_000, 0, 15_000),
    _offload("streams"),
    _number("streams.task.offset.interval.ms", 60_000, 15_000, INT32_MAX, is_internal=True),
    _number("streams.num.warmup.replicas", 2, 0, 20, is_internal=True),
    _number("streams.acceptable.recovery.lag", 10_000, 0, INT64_MAX, is_internal=True),
    _other("streams.rack.aware.assignment.tags", "list", "", "group.streams.rack.aware.assignment.tags"),
    _other("streams.assignor.name", "string", "sticky", "group.streams.assignors", "sticky"),
)
GROUP_DEFS: Final = {spec.name: spec for spec in _ROWS}
"""An internal config is shown only when it is set, as it was set. The broker may have other bounds for those
of consumer groups (``BrokerConfig.group_limits``)."""
_SIGNED: Final = r"([+-]?\d+)"
_DURATION: Final = re.compile(  # as java.time.Duration has it
    rf"([+-]?)P(?=.)(?:{_SIGNED}D)?"
    rf"(?:T(?=.)(?:{_SIGNED}H)?(?:{_SIGNED}M)?(?:{_SIGNED}(?:[.,]\d{{0,9}})?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_SECONDS: Final = (86_400, 3_600, 60, 1)


def check_group(broker: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Raise ValueError for configs that a group cannot have."""
    limits_of_broker = broker.group_limits
    defaults = {name: spec.default or "" for name, spec in GROUP_DEFS.items()}
    defaults |= {name: str(default) for name, (_, default, _) in limits_of_broker.items()}
    found: dict[str, int] = {}
    for name, text in (defaults | dict(configs)).items():
        spec = GROUP_DEFS.get(name)
        if spec is None:
            raise ValueError(f"Unknown group config name: {name}")
        if spec.low is None or spec.high is None:
            _check_text(spec, text.strip())
            continue
        of_broker = limits_of_broker.get(name)
        least, most = (of_broker[0], of_broker[2]) if of_broker else (spec.low, spec.high)
        found[name] = value = _number_of(spec, text)
        if not least <= value <= most:
            raise ValueError(f"{name} must be {least} to {most}, not {value}")
    for kind in ("consumer", "share", "streams"):
        if found[f"{kind}.session.timeout.ms"] <= found[f"{kind}.heartbeat.interval.ms"]:
            raise ValueError(f"{kind}.session.timeout.ms must be above {kind}.heartbeat.interval.ms")


def shown_group_config(name: str, text: str) -> str:
    """Return the value as it is understood, without spaces and superfluous characters; an internal one as it
    was set."""
    spec = GROUP_DEFS[name]
    if spec.is_internal:
        return text
    text = text.strip()
    if spec.low is not None:
        try:
            return str(_number_of(spec, text))
        except ValueError:  # another broker may have written it
            return text
    if spec.kind == "list":
        return ",".join(_parts(text))
    return text.lower() if spec.kind == "boolean" else text


def _number_of(spec: ConfigDef, text: str) -> int:
    if not text.isascii():
        raise ValueError(f"{spec.name} must be a number, not {text!r}")
    return int(parsed(spec, spec.name, text))


def _parts(text: str) -> list[str]:
    """Return the values of a list; none where the text is empty (``ConfigDef.parseType``)."""
    return [part.strip() for part in text.split(",")] if text else []


def _check_text(spec: ConfigDef, text: str) -> None:
    """Check a value that has no spaces at its ends."""
    if spec.kind == "boolean":
        is_valid, wanted = text.lower() in ("true", "false"), "true or false"
    elif spec.allowed:
        is_valid, wanted = text in spec.allowed, " or ".join(spec.allowed)
    elif spec.kind == "list":
        parts = _parts(text)
        is_valid = all(parts) and len(set(parts)) == len(parts)
        wanted = "different names with commas between them"
    elif spec.name == _DEAD_LETTERS:
        is_valid, wanted = not text.startswith("__"), "a topic whose name does not begin with __"
    else:
        is_valid = text in ("earliest", "latest") or _is_past(text)
        wanted = "earliest, latest or by_duration:PnDTnHnMn.nS"
    if not is_valid:
        raise ValueError(f"{spec.name} must be {wanted}, not {text!r}")


def _is_past(text: str) -> bool:
    """Return whether the text is ``by_duration:`` and a duration that is not negative."""
    kind, colon, duration = text.partition(":")
    matched = _DURATION.fullmatch(duration)
    if kind != "by_duration" or not colon or matched is None:
        return False
    sign, *numbers = matched.groups()
    seconds = sum(int(number or 0) * unit for number, unit in zip(numbers, _SECONDS, strict=True))
    return seconds >= 0 if sign != "-" else seconds <= 0


def group_config(config: BrokerConfig) -> GroupConfig:
    """Return the broker's settings for the coordinator."""
    return GroupConfig(
        config.group_min_session_timeout_ms,
        config.group_max_session_timeout_ms,
        config.group_max_size,
        config.group_initial_rebalance_delay_ms,
        config.offset_metadata_max_bytes,
        config.offsets_retention_minutes * 60_000,
        config.offsets_retention_check_interval_ms,
        ConsumerGroupConfig(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_max_size,
            config.assignors,
            MigrationPolicy(config.group_consumer_migration_policy.lower()),
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_regex_refresh_interval_ms,
            {name: (low, high) for name, (low, _, high) in config.group_limits.items()},
        ),
    )

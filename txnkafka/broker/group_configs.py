"""The configs of groups (resource type GROUP): names, defaults, and what they may be.

Those of consumer groups have effect. Share and streams groups are not served: their configs are checked and
kept for a broker that serves them.

Source: ``GroupConfig``, ``GroupCoordinatorConfig``, ``ShareGroupConfig``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.broker.group_settings import limits_of_consumer_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker_config import BrokerConfig

__all__ = ["GROUP_CONFIGS", "GroupSetting", "check_group", "shown_group_config"]

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class GroupSetting(NamedTuple):
    """One config. ``kind`` is ``int``, ``long``, ``bool``, ``str`` or ``list``. ``limits`` are the least and
    the most of a number; for consumer groups they are settings of the broker. ``broker_name`` is the setting
    of the broker that is its default, None where there is none. An internal config is shown only when it is
    set, as it was set."""

    default: str
    kind: str
    limits: tuple[int, int] | None = None
    broker_name: str | None = None
    is_internal: bool = False


def _number(name: str, default: int, *limits: int, is_internal: bool = False) -> tuple[str, GroupSetting]:
    kind = "int" if limits[1] <= _INT32_MAX else "long"
    return name, GroupSetting(str(default), kind, (limits[0], limits[1]), f"group.{name}", is_internal)


def _offload(kind: str) -> tuple[str, GroupSetting]:
    name = f"{kind}.assignor.offload.enable"
    return name, GroupSetting("true", "bool", None, f"group.{name}", is_internal=True)


GROUP_CONFIGS: Final = dict(
    [
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
        ("share.auto.offset.reset", GroupSetting("latest", "str")),
        ("share.isolation.level", GroupSetting("read_uncommitted", "str")),
        ("share.renew.acknowledge.enable", GroupSetting("true", "bool")),
        _offload("share"),
        ("errors.deadletterqueue.topic.name", GroupSetting("", "str")),
        ("errors.deadletterqueue.copy.record.enable", GroupSetting("false", "bool")),
        _number("streams.session.timeout.ms", 45_000, 45_000, 60_000),
        _number("streams.heartbeat.interval.ms", 5_000, 5_000, 15_000),
        _number("streams.num.standby.replicas", 0, 0, 2),
        _number("streams.initial.rebalance.delay.ms", 3_000, 0, _INT32_MAX),
        _number("streams.assignment.interval.ms", 1_000, 0, 15_000),
        _offload("streams"),
        _number("streams.task.offset.interval.ms", 60_000, 15_000, _INT32_MAX, is_internal=True),
        _number("streams.num.warmup.replicas", 2, 0, 20, is_internal=True),
        _number("streams.acceptable.recovery.lag", 10_000, 0, _INT64_MAX, is_internal=True),
        (
            "streams.rack.aware.assignment.tags",
            GroupSetting("", "list", None, "group.streams.rack.aware.assignment.tags"),
        ),
        ("streams.assignor.name", GroupSetting("sticky", "str", None, "group.streams.assignors")),
    ]
)
_KINDS: Final = ("consumer", "share", "streams")
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TEXTS: Final = {
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "streams.assignor.name": ("sticky",),
}
_INTEGER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_SIGNED: Final = r"([+-]?\d+)"
_DURATION: Final = re.compile(  # as java.time.Duration has it
    rf"([+-]?)P(?=.)(?:{_SIGNED}D)?"
    rf"(?:T(?=.)(?:{_SIGNED}H)?(?:{_SIGNED}M)?(?:{_SIGNED}(?:[.,]\d{{0,9}})?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_SECONDS: Final = (86_400, 3_600, 60, 1)


def check_group(broker: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Raise ValueError for configs that a group cannot have."""
    defaults = {name: setting.default for name, setting in GROUP_CONFIGS.items()}
    limits_of_broker = limits_of_consumer_groups(broker)
    defaults |= {name: str(default) for name, (_, default, _) in limits_of_broker.items()}
    found: dict[str, int] = {}
    for name, text in (defaults | dict(configs)).items():
        setting = GROUP_CONFIGS.get(name)
        if setting is None:
            raise ValueError(f"Unknown group config name: {name}")
        if setting.limits is None:
            _check_text(name, setting, text.strip())
            continue
        of_broker = limits_of_broker.get(name)
        least, most = (of_broker[0], of_broker[2]) if of_broker else setting.limits
        found[name] = _checked_number(name, text, least, most)
    for kind in _KINDS:
        if found[f"{kind}.session.timeout.ms"] <= found[f"{kind}.heartbeat.interval.ms"]:
            raise ValueError(f"{kind}.session.timeout.ms must be above {kind}.heartbeat.interval.ms")


def shown_group_config(name: str, text: str) -> str:
    """The value as it is understood, without spaces and superfluous characters; an internal one as it was
    set."""
    setting = GROUP_CONFIGS[name]
    if setting.is_internal:
        return text
    text = text.strip()
    if setting.limits is not None and _INTEGER.fullmatch(text):
        return str(int(text))
    if setting.kind == "list":
        return ",".join(_parts(text))
    return text.lower() if setting.kind == "bool" else text


def _parts(text: str) -> list[str]:
    """The values of a list; no value where the text is empty (``ConfigDef.parseType``)."""
    return [part.strip() for part in text.split(",")] if text else []


def _checked_number(name: str, text: str, least: int, most: int) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError(f"{name} must be a number, not {text!r}")
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {value}")
    return value


def _check_text(name: str, setting: GroupSetting, text: str) -> None:
    """``text`` is without spaces at its ends."""
    if setting.kind == "bool":
        is_valid, wanted = text.lower() in ("true", "false"), "true or false"
    elif name in _TEXTS:
        is_valid, wanted = text in _TEXTS[name], " or ".join(_TEXTS[name])
    elif setting.kind == "list":
        parts = _parts(text)
        is_valid = all(parts) and len(set(parts)) == len(parts)
        wanted = "different names with commas between them"
    elif name == _DEAD_LETTERS:
        is_valid, wanted = not text.startswith("__"), "a topic whose name does not begin with __"
    else:
        is_valid = text in ("earliest", "latest") or _is_past(text)
        wanted = "earliest, latest or by_duration:PnDTnHnMn.nS"
    if not is_valid:
        raise ValueError(f"{name} must be {wanted}, not {text!r}")


def _is_past(text: str) -> bool:
    """Whether the text is ``by_duration:`` and a duration that is not negative."""
    kind, colon, duration = text.partition(":")
    matched = _DURATION.fullmatch(duration)
    if kind != "by_duration" or not colon or matched is None:
        return False
    sign, *numbers = matched.groups()
    seconds = sum(int(number or 0) * unit for number, unit in zip(numbers, _SECONDS, strict=True))
    return seconds >= 0 if sign != "-" else seconds <= 0

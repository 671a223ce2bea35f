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


class GroupSetting(NamedTuple):
    """One config. ``limits`` are the least and the most of a number; for consumer groups they are settings of
    the broker. ``broker_name`` is the setting of the broker that is its default, None where there is none."""

    default: str
    limits: tuple[int, int] | None
    broker_name: str | None


def _number(name: str, default: int, *limits: int) -> tuple[str, GroupSetting]:
    return name, GroupSetting(str(default), (limits[0], limits[1]), f"group.{name}")


GROUP_CONFIGS: Final = dict(
    [
        _number("consumer.session.timeout.ms", 45_000, 45_000, 60_000),
        _number("consumer.heartbeat.interval.ms", 5_000, 5_000, 15_000),
        _number("consumer.assignment.interval.ms", 1_000, 0, 15_000),
        _number("share.session.timeout.ms", 45_000, 45_000, 60_000),
        _number("share.heartbeat.interval.ms", 5_000, 5_000, 15_000),
        _number("share.record.lock.duration.ms", 30_000, 15_000, 60_000),
        _number("share.delivery.count.limit", 5, 2, 10),
        _number("share.partition.max.record.locks", 2_000, 100, 4_000),
        _number("share.assignment.interval.ms", 1_000, 0, 15_000),
        ("share.auto.offset.reset", GroupSetting("latest", None, None)),
        ("share.isolation.level", GroupSetting("read_uncommitted", None, None)),
        ("share.renew.acknowledge.enable", GroupSetting("true", None, None)),
        _number("streams.session.timeout.ms", 45_000, 45_000, 60_000),
        _number("streams.heartbeat.interval.ms", 5_000, 5_000, 15_000),
        _number("streams.num.standby.replicas", 0, 0, 2),
        _number("streams.initial.rebalance.delay.ms", 3_000, 0, _INT32_MAX),
        _number("streams.assignment.interval.ms", 1_000, 0, 15_000),
    ]
)
_KINDS: Final = ("consumer", "share", "streams")
_TEXTS: Final = {
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "share.renew.acknowledge.enable": ("true", "false"),
}
_INTEGER: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)
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
            _check_text(name, text)
            continue
        of_broker = limits_of_broker.get(name)
        least, most = (of_broker[0], of_broker[2]) if of_broker else setting.limits
        found[name] = _checked_number(name, text, least, most)
    for kind in _KINDS:
        if found[f"{kind}.session.timeout.ms"] <= found[f"{kind}.heartbeat.interval.ms"]:
            raise ValueError(f"{kind}.session.timeout.ms must be above {kind}.heartbeat.interval.ms")


def shown_group_config(name: str, text: str) -> str:
    """A value as it is understood, without spaces and superfluous characters."""
    text = text.strip()
    if GROUP_CONFIGS[name].limits is not None and _INTEGER.fullmatch(text):
        return str(int(text))
    return text.lower() if name == "share.renew.acknowledge.enable" else text


def _checked_number(name: str, text: str, least: int, most: int) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError(f"{name} must be a number, not {text!r}")
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {value}")
    return value


def _check_text(name: str, text: str) -> None:
    value = shown_group_config(name, text)
    allowed = _TEXTS.get(name)
    if allowed is not None and value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(allowed)}, not {text!r}")
    if allowed is None and value not in ("earliest", "latest") and not _is_past(value):
        raise ValueError(f"{name} must be earliest, latest or by_duration:PnDTnHnMn.nS, not {text!r}")


def _is_past(text: str) -> bool:
    """Whether the text is ``by_duration:`` and a duration that is not negative."""
    kind, colon, duration = text.partition(":")
    matched = _DURATION.fullmatch(duration)
    if kind != "by_duration" or not colon or matched is None:
        return False
    sign, *numbers = matched.groups()
    seconds = sum(int(number or 0) * unit for number, unit in zip(numbers, _SECONDS, strict=True))
    return seconds >= 0 if sign != "-" else seconds <= 0

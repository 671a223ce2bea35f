"""What administrators change of groups, of subscriptions to the metrics of clients, and of loggers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.side_by_side.configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    NODE,
    SET,
    SUBTRACT,
    alter,
    alter_all,
    describe,
    replace,
)
from tests.side_by_side.messages import Request
from tests.side_by_side.records import versions

__all__ = ["SCRIPTS"]

_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
_ASSIGNMENT: Final = "consumer.assignment.interval.ms"
_NUMBERS: Final = {  # what a group may set at least and at most
    _SESSION: (45_000, 60_000),
    _HEARTBEAT: (5_000, 15_000),
    _ASSIGNMENT: (0, 15_000),
    "share.session.timeout.ms": (45_000, 60_000),
    "share.heartbeat.interval.ms": (5_000, 15_000),
    "share.record.lock.duration.ms": (15_000, 60_000),
    "share.delivery.count.limit": (2, 10),
    "share.partition.max.record.locks": (100, 4_000),
    "share.assignment.interval.ms": (0, 15_000),
    "streams.session.timeout.ms": (45_000, 60_000),
    "streams.heartbeat.interval.ms": (5_000, 15_000),
    "streams.num.standby.replicas": (0, 2),
    "streams.assignment.interval.ms": (0, 15_000),
    "streams.initial.rebalance.delay.ms": (0, 2**31 - 1),
    "streams.task.offset.interval.ms": (15_000, 2**31 - 1),
    "streams.num.warmup.replicas": (0, 20),
    "streams.acceptable.recovery.lag": (0, 2**63 - 1),
}
_TEXTS: Final = {
    "share.auto.offset.reset": (
        "earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "none", "Earliest", "",
        " latest", "by_duration:", "by_duration:PT-1H", "by_duration:-PT1H", "by_duration:P1Y",
        "by_duration:pt1s", "by_duration:P", "by_duration:PT", "by_duration:P1DT", "by_duration:PT1H:",
        "by_duration:PT1.S",
    ),
    "share.isolation.level": ("read_committed", "read_uncommitted", "READ_COMMITTED", " read_committed", ""),
    "share.renew.acknowledge.enable": ("true", "FALSE", " true ", "yes", ""),
    "consumer.assignor.offload.enable": ("true", "FALSE", " true ", "yes", ""),
    "share.assignor.offload.enable": ("false", "1"),
    "streams.assignor.offload.enable": ("false", "1"),
    "streams.rack.aware.assignment.tags": (
        "", "a", "a,b", " a , b ", "a,a", ",a", "a,", "a,,b", ",", " ", "a b",
    ),
    "streams.assignor.name": ("sticky", " sticky ", "Sticky", "none", ""),
    "errors.deadletterqueue.topic.name": ("", "a", " a ", "__a", " __a", "a b", ".", "ü", "_a"),
    "errors.deadletterqueue.copy.record.enable": ("true", "FALSE", "yes", ""),
}  # fmt: skip


def _of_groups() -> Iterator[Request]:
    yield describe(GROUP, "~g")
    yield describe(GROUP, "~g", include_documentation=True)
    for version in versions("IncrementalAlterConfigs"):
        name = f"~g{version}"
        yield alter(version, GROUP, name, (SET, _SESSION, "50000"), validate_only=True)
        yield describe(GROUP, name)
        yield alter(version, GROUP, name, (SET, _SESSION, "50000"), (SET, _HEARTBEAT, " 6000 "))
        yield alter(version, GROUP, name, (SET, "share.isolation.level", "read_committed"))
        yield describe(GROUP, name)
        yield alter(version, BROKER, "", (SET, "group.consumer.assignment.interval.ms", "7"))
        yield alter(version, BROKER, NODE, (SET, "group.consumer.assignment.interval.ms", "6"))
        yield alter(version, GROUP, name, (SET, _ASSIGNMENT, "5"))
        yield describe(GROUP, name, _ASSIGNMENT)
        yield alter(version, GROUP, name, (DELETE, _ASSIGNMENT, None))
        yield describe(GROUP, name, _ASSIGNMENT)
        yield describe(BROKER, NODE, "group.consumer.assignment.interval.ms")
        yield describe(BROKER, "", "group.consumer.assignment.interval.ms")
        for where in ("", NODE):
            yield alter(version, BROKER, where, (DELETE, "group.consumer.assignment.interval.ms", None))
            yield describe(BROKER, NODE, "group.consumer.assignment.interval.ms")  # until it is in effect
        for where in ("", NODE):
            for value in ("-1", "15001", "x", None):
                yield alter(version, BROKER, where, (SET, "group.consumer.assignment.interval.ms", value))
            yield describe(BROKER, where, "group.consumer.assignment.interval.ms")
        yield alter(version, GROUP, name, (DELETE, _SESSION, None), (DELETE, "no.such", None))
        yield describe(GROUP, name)
        for odd in (
            (SET, "no.such", "1"), (SET, "", "1"), (SET, "group.consumer.session.timeout.ms", "50000"),
            (SET, "retention.ms", "1"), (APPEND, _SESSION, "1"), (SUBTRACT, "no.such", "1"),
            (SET, _SESSION, None), (DELETE, _SESSION, ""), (SET, _SESSION, "50000.0"),
            (SET, _SESSION, "5e4"), (SET, _SESSION, "+50000"), (SET, _SESSION, "50_000"), (SET, _SESSION, ""),
            (APPEND, "streams.rack.aware.assignment.tags", "a"), (SET, _SESSION, str(2**31)),
        ):  # fmt: skip
            yield alter(version, GROUP, name, odd)
        yield alter(version, GROUP, "", (SET, _SESSION, "50000"))
        yield alter(version, GROUP, "a b/ü", (SET, _SESSION, "50000"))
        yield describe(GROUP, "a b/ü", _SESSION)
        yield alter(version, GROUP, "a b/ü", (DELETE, _SESSION, None))
        one = (GROUP, name, [(SET, _SESSION, "51000")])
        yield alter_all(version, [one, one])
        yield alter_all(version, [one, (GROUP, "~other", [(SET, _SESSION, "1")])])
        yield describe(GROUP, name, _SESSION)
        yield alter(version, GROUP, name, (DELETE, _SESSION, None), (DELETE, _HEARTBEAT, None))
        yield alter(version, GROUP, name, (DELETE, "share.isolation.level", None))
    yield describe(GROUP, "")


def _what_groups_may_have() -> Iterator[Request]:
    for key, (least, most) in _NUMBERS.items():
        for value in (least - 1, least, most, most + 1, -1, 0):
            yield alter(1, GROUP, "~v", (SET, key, str(value)))
        yield describe(GROUP, "~v", key)
        yield alter(1, GROUP, "~v", (DELETE, key, None))
    for key, values in _TEXTS.items():
        for text in values:
            yield alter(1, GROUP, "~v", (SET, key, text))
            yield describe(GROUP, "~v", key)
        yield alter(1, GROUP, "~v", (DELETE, key, None))


def _of_groups_at_once() -> Iterator[Request]:
    for version in versions("AlterConfigs"):
        name = f"~r{version}"
        yield replace(version, GROUP, name, {_SESSION: "50000", _HEARTBEAT: "6000"}, validate_only=True)
        yield replace(version, GROUP, name, {_SESSION: "50000", _HEARTBEAT: "6000"})
        yield describe(GROUP, name)
        yield replace(version, GROUP, name, {_HEARTBEAT: "7000"})
        yield describe(GROUP, name)
        for bad in ({"no.such": "1"}, {_SESSION: "1"}, {_SESSION: None}, {_SESSION: "x"}):
            yield replace(version, GROUP, name, bad)
        yield replace(version, GROUP, "", {_SESSION: "50000"})
        yield replace(version, GROUP, name, {})
        yield describe(GROUP, name)


_MATCHES: Final = (
    "client_id=a", "client_software_name=apache.*,client_software_version=[34]\\..*", "client_id=", "=a",
    "client_id", "client_id=a=b", "no_such=a", " client_id = a ", "client_id=[", "client_id=a,,", "",
    "client_source_port=1,client_source_address=1.*,client_instance_id=x", "client_id=a,client_id=a",
)  # fmt: skip


def _of_client_metrics() -> Iterator[Request]:
    yield describe(METRICS, "~m")
    yield describe(METRICS, "~m", include_documentation=True)
    for version in versions("IncrementalAlterConfigs"):
        name = f"~m{version}"
        yield alter(
            version, METRICS, name, (SET, "metrics", "org.apache,x"), (SET, "interval.ms", "1000")
        )  # fmt: skip
        yield describe(METRICS, name)
        yield alter(version, METRICS, name, (APPEND, "metrics", "y"), (SUBTRACT, "metrics", "x"))
        yield alter(version, METRICS, name, (APPEND, "metrics", "z"), (APPEND, "match", "client_id=b"))
        yield describe(METRICS, name)
        yield alter(version, METRICS, name, (SUBTRACT, "metrics", "org.apache"))
        for text in ("*", "", "a,,b", "a,a", ",", " a , b "):
            yield alter(version, METRICS, name, (SET, "metrics", text))
            yield describe(METRICS, name, "metrics")
        for text in ("99", "100", "3600000", "3600001", "x", "", "-1", str(2**31)):
            yield alter(version, METRICS, name, (SET, "interval.ms", text))
        for text in _MATCHES:
            yield alter(version, METRICS, name, (SET, "match", text))
            yield describe(METRICS, name, "match")
        yield alter(version, METRICS, name, (SET, "no.such", "1"))
        yield alter(version, METRICS, name, (APPEND, "interval.ms", "1"))
        yield alter(version, METRICS, name, (APPEND, "cleanup.policy", "1"))
        yield alter(version, METRICS, "", (SET, "interval.ms", "1000"))
        keys = ("metrics", "interval.ms", "match")
        yield alter(version, METRICS, name, *[(DELETE, key, None) for key in keys])
        yield describe(METRICS, name)
    for version in versions("AlterConfigs"):
        yield replace(version, METRICS, "~a", {"interval.ms": "1000", "metrics": "a"})
        yield replace(version, METRICS, "~a", {"interval.ms": "2000"})
        yield describe(METRICS, "~a")
        yield replace(version, METRICS, "", {})
        yield replace(version, METRICS, "~a", {})
    yield describe(METRICS, "")


def _of_loggers() -> Iterator[Request]:
    for name in ("", "2", "x", NODE):
        yield describe(LOGGER, name, "no.such")
    for version in versions("IncrementalAlterConfigs"):
        for name in ("", "2", "x", NODE):
            yield alter(version, LOGGER, name, (SET, "no.such", "DEBUG"), validate_only=True)
        for odd in (
            (SET, "no.such", "nonsense"), (SET, "no.such", None), (DELETE, "no.such", None),
            (9, "no.such", "1"), (APPEND, "no.such", "DEBUG"), (SUBTRACT, "root", "DEBUG"),
        ):  # fmt: skip
            yield alter(version, LOGGER, NODE, odd)
        yield alter(version, LOGGER, NODE)
        yield alter(version, LOGGER, NODE, (SET, "no.such", "DEBUG"), (SET, "no.such", "INFO"))
    for version in versions("AlterConfigs"):
        yield replace(version, LOGGER, NODE, {"root": "DEBUG"})


def _lists() -> Iterator[Request]:
    yield alter(1, GROUP, "~listed", (SET, _SESSION, "50000"))
    yield alter(1, METRICS, "~listed", (SET, "interval.ms", "1000"))
    for version in versions("ListConfigResources"):
        for kinds in ([METRICS], [GROUP], [GROUP, METRICS], [GROUP, BROKER]) if version else ([],):
            yield Request("ListConfigResources", version, {"resource_types": kinds} if version else {})
    yield alter(1, GROUP, "~listed", (DELETE, _SESSION, None))
    yield alter(1, METRICS, "~listed", (DELETE, "interval.ms", None))
    yield Request("ListConfigResources", 1, {"resource_types": [GROUP, METRICS]})


SCRIPTS: Final = {
    "configs of groups": _of_groups,
    "what configs of groups may be": _what_groups_may_have,
    "configs of groups are replaced": _of_groups_at_once,
    "subscriptions to metrics of clients": _of_client_metrics,
    "levels of loggers": _of_loggers,
    "groups and subscriptions with configs": _lists,
}
"""Requests of one conversation each; what they change of the broker they change back."""

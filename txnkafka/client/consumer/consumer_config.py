"""Settings of a consumer, with Kafka's names and defaults.

Source: ``ConsumerConfig`` of Apache Kafka 4.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from txnkafka.client.client_config import ClientConfig
from txnkafka.config import long, row

ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_JAVA_NAMES: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """Times in milliseconds, sizes in bytes."""

    group_id: str = row("group of the consumer; without it no subscriptions and no commits", "")
    group_instance_id: str = row("name of a static member (KIP-345)", "")
    group_protocol: str = row(
        "classic, or consumer for groups of KIP-848", "classic", allowed=("classic", "consumer")
    )
    group_remote_assignor: str = row(
        "the broker's assignor for group.protocol=consumer: uniform, range, or the broker's choice", ""
    )
    session_timeout_ms: int = row("time without a heartbeat after which the member is removed", 45_000, 1)
    heartbeat_interval_ms: int = row("time between heartbeats, classic protocol", 3_000, 1)
    max_poll_interval_ms: int = row("longest time between polls; then the member leaves", 300_000, 1)
    max_poll_records: int = row("most records that one poll returns", 500, 1)
    fetch_min_bytes: int = row("bytes for which the broker waits", 1, 0)
    fetch_max_bytes: int = row("bytes after which a response ends", 50 << 20, 0)
    fetch_max_wait_ms: int = row("longest time that the broker waits for fetch.min.bytes", 500, 0)
    max_partition_fetch_bytes: int = row("bytes of one partition after which it ends", 1 << 20, 0)
    auto_offset_reset: str = row(
        "position without a committed offset: earliest, latest, none, by_duration:PT1H (KIP-1106)", "latest"
    )
    enable_auto_commit: bool = row("commit the positions regularly, while poll is called", True)
    auto_commit_interval_ms: int = row("time between automatic commits", 5_000, 0)
    isolation_level: str = row(
        "read_committed hides records of aborted and open transactions; Java has read_uncommitted",
        "read_committed", allowed=("read_committed", "read_uncommitted"),
    )  # fmt: skip
    check_crcs: bool = row("accepted for compatibility: checksums are always checked", True)
    client_rack: str = row("rack of the consumer, for assignments and the nearest replica", "")
    partition_assignment_strategy: str = row(
        "assignors in order of preference, separated by commas", "range,cooperative-sticky", kind="list"
    )
    default_api_timeout_ms: int = row("longest time of calls without a timeout of their own", 60_000, 0)
    allow_auto_create_topics: bool = row("looking up a topic creates it, if the broker allows that", True)
    exclude_internal_topics: bool = row("a subscribed pattern does not match internal topics", True)
    consumer_timeout_ms: int = long("time without a record after which iteration ends; -1: never", -1, -1)

    def __post_init__(self) -> None:
        """Check settings that depend on each other. Raises ValueError."""
        reset_duration_ms(self.auto_offset_reset)
        unknown = [name for name in self.assignors if name not in ASSIGNORS]
        if unknown or not self.assignors:
            raise ValueError(
                f"partition.assignment.strategy: {', '.join(unknown) or 'nothing'} is no assignor; "
                f"the assignors are {', '.join(ASSIGNORS)}"
            )
        if self.group_protocol == "classic":
            if self.heartbeat_interval_ms >= self.session_timeout_ms:
                raise ValueError(
                    f"heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be below session.timeout.ms "
                    f"({self.session_timeout_ms})"
                )
            if self.group_remote_assignor:
                raise ValueError("group.remote.assignor is for group.protocol=consumer")

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors by Kafka's short names, without duplicates."""
        names = (each.strip() for each in self.partition_assignment_strategy.split(","))
        return tuple(dict.fromkeys(_JAVA_NAMES.get(name, name) for name in names if name))

    @property
    def isolation(self) -> int:
        """The isolation level in requests."""
        return int(self.isolation_level == "read_committed")

    @property
    def commits_automatically(self) -> bool:
        """Return whether positions are committed regularly: only in a group."""
        return self.enable_auto_commit and bool(self.group_id)


def reset_duration_ms(policy: str) -> int | None:
    """Return the duration of a policy ``by_duration:P…``, None for the other policies. Raises ValueError."""
    if policy in ("earliest", "latest", "none"):
        return None
    found = _DURATION.fullmatch(policy.removeprefix(_BY_DURATION))
    if not policy.startswith(_BY_DURATION) or found is None or not any(found.groups()):
        raise ValueError(
            "auto.offset.reset must be earliest, latest, none, or by_duration: with an ISO 8601 duration "
            f"such as PT1H30M, not {policy!r}"
        )
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return int(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds() * 1000)

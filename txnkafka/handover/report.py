"""``HandOver``: the findings, changes and predictions of a hand-over.

Plain data; ``as_dict`` returns the command's JSON output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from txnkafka.logdir import Finding


class Owner(StrEnum):
    """The next owner of a directory."""

    KAFKA = "kafka"
    TXNKAFKA = "txnkafka"

    @property
    def label(self) -> str:
        """The name used in sentences."""
        return "Apache Kafka" if self is Owner.KAFKA else "txnkafka serve"


class Step(NamedTuple):
    """A change of a partition, or of the directory itself (None), in one sentence."""

    partition: str | None
    text: str


class TransactionRow(NamedTuple):
    """A transactional id, its state by Kafka's name, the partitions in its transaction, and its fate at the
    next owner. ``is_open``: its transaction has not ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    partitions: list[str]
    is_open: bool
    fate: str


class GroupRow(NamedTuple):
    """A group, its type by Kafka's name, and its fate at the next owner. ``generation`` (or epoch) and
    ``members``: -1 and 0 if unknown. ``offsets``: number of committed offsets; ``pending``: number of offsets
    in open transactions."""

    group: str
    group_type: str
    generation: int
    members: int
    offsets: int
    pending: int
    fate: str


@dataclass(slots=True)
class HandOver:
    """The report on one hand-over. ``is_planned``: nothing was changed, ``steps`` are the planned changes.

    ``findings`` of severity ``error`` prevent the hand-over; a ``warning`` is a difference in the next
    owner's behaviour. ``settings`` are lines of ``server.properties``, or options of ``txnkafka serve``.
    ``next_producer_id`` is the first unassigned one, ``largest_producer_id`` the largest one in the logs (-1:
    none)."""

    path: str
    to: Owner
    is_planned: bool
    was_clean: bool = False
    cluster_id: str | None = None
    node_id: int | None = None
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    largest_producer_id: int = -1
    findings: list[Finding] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    transactions: list[TransactionRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)

    @property
    def is_possible(self) -> bool:
        """True if no error prevents the hand-over."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def is_ready(self) -> bool:
        """True if the next owner may start on the directory in its present state."""
        return self.is_possible and not (self.is_planned and self.steps)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "path": self.path,
            "to": str(self.to),
            "check": self.is_planned,
            "is_ready": self.is_ready,
            "is_possible": self.is_possible,
            "was_clean": self.was_clean,
            "cluster_id": self.cluster_id,
            "node_id": self.node_id,
            "features": self.features,
            "next_producer_id": self.next_producer_id,
            "largest_producer_id": self.largest_producer_id,
            "findings": [finding._asdict() for finding in self.findings],
            "steps": [step._asdict() for step in self.steps],
            "transactions": [row._asdict() for row in self.transactions],
            "groups": [row._asdict() for row in self.groups],
            "settings": self.settings,
        }


def error(code: str, where: str, message: str, remedy: str) -> Finding:
    """Return a finding that prevents the hand-over until the operator has decided."""
    return Finding(where, None, "error", code, message, remedy)


def warning(code: str, where: str, message: str, remedy: str) -> Finding:
    """Return a finding about a difference that clients notice."""
    return Finding(where, None, "warning", code, message, remedy)

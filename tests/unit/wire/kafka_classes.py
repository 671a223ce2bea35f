"""Which class of Kafka each table describes, and the samples that these classes wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from txnkafka.wire.records import consumer_protocol, control_body, group_log, metadata, transaction_log
from txnkafka.wire.schema import Message

SAMPLES = Path(__file__).with_name("kafka_samples.jsonl")

TRANSACTION = "org.apache.kafka.coordinator.transaction.generated."
GROUP = "org.apache.kafka.coordinator.group.generated."
MESSAGE = "org.apache.kafka.common.message."
METADATA = "org.apache.kafka.common.metadata."

CONTROL_CLASSES = {
    1: "EndTxnMarker",
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}


class Sample(NamedTuple):
    """Bytes that Kafka's class wrote, and the same object in Kafka's own JSON."""

    kafka_class: str
    version: int
    data: bytes
    fields: dict[str, Any]


def messages() -> dict[str, Message]:
    """All tables of log records by the full name of Kafka's class."""
    found: dict[str, Message] = {}
    legacy = {GROUP + "LegacyOffsetCommit": group_log.TYPES[0]}
    named = {GROUP + camel(kind.value.name): kind for number, kind in group_log.TYPES.items() if number}
    named |= {TRANSACTION + camel(kind.value.name): kind for kind in transaction_log.TYPES.values()}
    for name, kind in (legacy | named).items():
        found |= {name + "Key": kind.key, name + "Value": kind.value}
    found |= {METADATA + camel(table.name): table for table in metadata.RECORDS.values()}
    found |= {MESSAGE + name: control_body.BODIES[number] for number, name in CONTROL_CLASSES.items()}
    found[MESSAGE + "ConsumerProtocolSubscription"] = consumer_protocol.SUBSCRIPTION
    found[MESSAGE + "ConsumerProtocolAssignment"] = consumer_protocol.ASSIGNMENT
    return found


def samples() -> list[Sample]:
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [Sample(name, version, bytes.fromhex(data), fields) for name, version, data, fields in rows]


def camel(name: str) -> str:
    """``no_op_record`` to ``NoOpRecord``."""
    return name.title().replace("_", "")


def snake(name: str) -> str:
    """``topicId`` to ``topic_id``; Kafka's ``kRaft`` is one word."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("kRaft", "kraft")).lower()


def snake_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(name): snake_keys(part) for name, part in value.items()}
    return [snake_keys(part) for part in value] if isinstance(value, list) else value

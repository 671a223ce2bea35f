"""The cells that are not green, each with its reason."""

from __future__ import annotations

__all__ = ["DIFFERENT", "DIFFERENT_TOOLS", "MISSING", "SAME"]

EAGER = "its assignors are all eager"
KIP_848 = "group: rebalance, consumer protocol (KIP-848)"
CLASSIC = "it supports only the classic protocol"
ZOMBIE = "offsets of a zombie in a transaction"
LIST, DESCRIBE = "transactions: list", "transactions: describe, and producers"

MISSING: dict[str, dict[str, str]] = {
    "confluent-kafka": {
        "log dirs: describe": "no such call",
        "groups: delete offsets": "no such call in Python",
        LIST: "no such call",
        DESCRIBE: "no such call",
    },
    "kafka-python": {"group: rebalance, cooperative": EAGER, KIP_848: CLASSIC},
    "aiokafka": {
        "group: rebalance, cooperative": EAGER,
        KIP_848: CLASSIC,
        ZOMBIE: "its transactions send the group without a member",
        "log dirs: describe": "no such call",
        "groups: reset offsets": "no such call",
        "groups: delete offsets": "no such call",
        "groups: delete": "no such call",
        LIST: "no such call",
        DESCRIBE: "no such call",
    },
    "franz-go": {
        KIP_848: "experimental and not in its public API",
        ZOMBIE: "its session sends the member's metadata itself",
    },
    "sarama": {
        KIP_848: CLASSIC,
        "group: seek": "a member of a group cannot seek",
        LIST: "no such call",
        DESCRIBE: "no such call",
    },
    "kafkajs": {
        "gzip, snappy, lz4, zstd": "gzip only; the other codecs need third-party packages",
        "group: rebalance, cooperative": EAGER,
        KIP_848: CLASSIC,
        "group: static member": "no static members",
        ZOMBIE: "its transactions send the group without a member",
        "log dirs: describe": "no such call",
        "groups: delete offsets": "no such call",
        LIST: "no such call",
        DESCRIBE: "no such call",
    },
}
"""By client: the jobs that it has no call for."""

SAME: dict[tuple[str, str], str] = {
    ("kafka-python", "gzip, snappy, lz4, zstd"): "gzip, lz4, zstd; snappy needs another package",
}
"""By client and job: what goes another way than is meant, on Apache Kafka as well."""

DIFFERENT_TOOLS: dict[str, str] = {}
"""By tool: what it prints that is not as on Apache Kafka, and why."""

DIFFERENT: dict[str, str] = {}
"""By job: what is not as on Apache Kafka, and why."""

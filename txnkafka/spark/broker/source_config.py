"""The settings of the source's client."""

from __future__ import annotations

from dataclasses import dataclass

from txnkafka.client.admin.admin_config import AdminConfig
from txnkafka.config import row


@dataclass(frozen=True, kw_only=True)
class SourceConfig(AdminConfig):
    """The settings ``kafka.…`` of the source. Times in milliseconds, sizes in bytes."""

    fetch_max_wait_ms: int = row("longest time that the broker waits for records", 500, 0)
    max_partition_fetch_bytes: int = row(
        "bytes after which a response ends, two of which a task has in memory; Java has 1 MiB", 8 << 20, 1
    )

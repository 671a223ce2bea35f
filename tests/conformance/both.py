"""Apache Kafka and ``txnkafka serve`` at once, with the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.broker import KafkaBroker
from tests.side_by_side.brokers import CONFIG, Brokers
from tests.side_by_side.sides import TcpSide
from tests.unit.server.serving import Serving

__all__ = ["SUMMARY", "both"]

SUMMARY: list[str] = []
"""Lines that the run ends with."""


@contextmanager
def both(directory: Path) -> Iterator[Brokers]:
    """Both on directories of their own. Ours acknowledges from the page cache: that is quicker, and no answer
    depends on it."""
    options = [word for item in CONFIG.items() for word in ("--config", "=".join(item))]
    options += ["--durability", "page_cache"]
    with KafkaBroker(directory / "kafka", CONFIG) as kafka, Serving(directory / "ours", *options) as ours:
        sides = TcpSide(ours.address), TcpSide(kafka.bootstrap_servers)
        found = Brokers(*sides, "s")
        found.warm_up()
        try:
            yield found
        finally:
            for side in sides:
                side.close()

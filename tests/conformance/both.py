"""Apache Kafka and ``txnkafka serve`` at once, with the same settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from tests.side_by_side.brokers import CONFIG, Brokers, warm_up
from tests.side_by_side.sides import TcpSide

__all__ = ["SUMMARY", "Both", "both"]

SUMMARY: list[str] = []
"""Lines that the run ends with."""
RELEASE = "4.3"  # whose levels of features our directories have
RESTARTS = {"stop": (KafkaBroker.stop, Serving.stop), "kill": (KafkaBroker.kill, Serving.kill)}


class Both(NamedTuple):
    """Both, running. ``restart`` ends both by ``stop`` or ``kill`` and starts them on what they have left."""

    brokers: Brokers
    restart: Callable[[str], None]


@contextmanager
def both(directory: Path, config: Mapping[str, str] = CONFIG) -> Iterator[Both]:
    """Both on directories of their own. Ours acknowledges from the page cache: that is quicker, and no answer
    depends on it."""
    options = [word for item in config.items() for word in ("--config", "=".join(item))]
    options += ["--durability", "page_cache"]
    ours = Serving(directory / "ours", *options)
    try:
        with KafkaBroker(directory / "kafka", config, release=RELEASE) as kafka:
            sides = TcpSide(ours.address), TcpSide(kafka.bootstrap_servers)

            def restart(how: str) -> None:
                nonlocal ours
                end_kafka, end_ours = RESTARTS[how]
                end_kafka(kafka)
                end_ours(ours)
                ours.close()
                ours = Serving(directory / "ours", *options, port=ours.port)
                kafka.start()
                for side in sides:
                    side.connect()
                    warm_up(side)

            brokers = Brokers(*sides, "s")
            brokers.warm_up()
            try:
                yield Both(brokers, restart)
            finally:
                for side in sides:
                    side.close()
    finally:
        ours.close()

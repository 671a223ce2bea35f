"""``write_batch``: the sink for ``foreachBatch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def write_batch(
    frame: DataFrame,
    batch_id: int,
    *,
    transactional_id: str,
    path: str | None = None,
    bootstrap_servers: str | None = None,
    topic: str | None = None,
    compression: str = "none",
    staging_path: str | None = None,
    kafka: Mapping[str, object] | None = None,
) -> None:
    """Write a DataFrame in one transaction with its number, each number of ``transactional_id`` once:

        query.foreachBatch(lambda frame, batch_id: write_batch(frame, batch_id, transactional_id="job-7", …))

    The arguments are the options of the sink; ``kafka`` are settings of the producer. A number that was
    written is skipped. Raises a PySparkException with the text of BatchRefusedError for a lower number, and
    for wrong arguments."""
    given = {
        "path": path,
        "kafka.bootstrap.servers": bootstrap_servers,
        "topic": topic,
        "compression": compression,
        "stagingPath": staging_path,
        "txnAppId": transactional_id,
        "txnVersion": str(batch_id),
        **{f"kafka.{name.removeprefix('kafka.')}": str(value) for name, value in (kafka or {}).items()},
    }
    options = {name: value for name, value in given.items() if value is not None}
    frame.write.format("txnkafka").options(**options).mode("append").save()

"""The commands ``lso``, ``show``, ``verify`` and ``export`` as functions of a ``LogDir``.

    from txnkafka import LogDir
    from txnkafka.commands import lso

    print(lso(LogDir("/var/lib/kafka/data"), "orders", 0).reason)

``docs/python.md`` has an example of each. A command of the shell adds its output, and nothing to its results.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Literal, Unpack

from txnkafka.logdir.names import without_internal
from txnkafka.logdir.read_request import Selection, request_of
from txnkafka.logdir.strip import strip_of
from txnkafka.logdir.verify.report import verify

if TYPE_CHECKING:
    from txnkafka.export.run import ExportReport
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.explain import Explanation
    from txnkafka.logdir.strip import Strip

__all__ = ["export", "lso", "show", "verify"]


def lso(log_dir: LogDir, topic: str, partition: int, *, now_ms: int | None = None) -> Explanation:
    """Explain the last stable offset of a partition: ``PartitionView.explain``, which closes the files.
    Raises UnknownTopicOrPartitionError."""
    with closing(log_dir.partition(topic, partition)) as view:
        return view.explain(now_ms=now_ms)


def show(log_dir: LogDir, topic: str, partition: int, *, cells: int = 80) -> Strip:
    """Return the states of the offsets of a partition in at most ``cells`` cells; a cell has the number of
    offsets in each state. Raises UnknownTopicOrPartitionError."""
    hanging = lso(log_dir, topic, partition).hanging_producers
    with closing(log_dir.partition(topic, partition)) as view:
        return strip_of(view, cells, hanging=hanging)


def export(
    log_dir: LogDir,
    output: str,
    *,
    to: Literal["parquet", "jsonl", "csv", "delta", "iceberg"] = "parquet",
    topics: Iterable[str] | None = None,
    incremental: bool = False,
    **selection: Unpack[Selection],
) -> ExportReport:
    """Export the selected records of ``topics`` (default: all but Kafka's own) into the directory
    ``output``. After an interruption the same call continues; ``incremental`` adds the records that were
    appended since. Raises KafkaError where the directory has another export or the log has changed."""
    from txnkafka.export.options import ExportOptions
    from txnkafka.export.run import export as run

    request = request_of(**selection)
    chosen = (
        without_internal(log_dir.topic_partitions)
        if topics is None
        else [view.topic_partition for view in log_dir.topic(*topics)]
    )
    names = () if topics is None else tuple(sorted(topics))
    options = ExportOptions(to=to, paths=tuple(log_dir.paths), topic=names, request=request)
    return run(log_dir, list(chosen), output, options, locate=lambda view: request, incremental=incremental)

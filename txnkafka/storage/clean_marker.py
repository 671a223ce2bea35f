"""The marker of a clean shutdown: removed before the first change, written once everything is on the disk.

Source: ``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.env import write_durably
from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.checkpoint import format_clean_shutdown, parse_clean_shutdown, parse_repair
from txnkafka.storage.formats.layout import CLEAN_SHUTDOWN_FILE
from txnkafka.storage.formats.limits import SMALL_FILE_LIMIT
from txnkafka.storage.formats.partition_names import concerns_one_partition

if TYPE_CHECKING:
    from txnkafka.env import DataFiles

LOG = logging.getLogger("txnkafka.storage")
NO_EPOCH: Final = -1


class CleanMarker(NamedTuple):
    """The content of a marker. ``is_settled``: all files are from one moment, a broker's clean stop; False
    for a directory repaired after a kill, or copied from a running broker."""

    broker_epoch: int = NO_EPOCH
    is_settled: bool = True
    content: bytes = b""


def take_clean_marker(files: DataFiles, directory: str) -> CleanMarker | None:
    """Remove the marker, durably; return its content, None without a marker. Raises OSError."""
    path = files.join(directory, CLEAN_SHUTDOWN_FILE)
    if not files.exists(path):
        return None
    marker = CleanMarker()
    try:
        content = files.read(path, SMALL_FILE_LIMIT)
        epoch = parse_clean_shutdown(content).broker_epoch or NO_EPOCH
        marker = CleanMarker(epoch, parse_repair(content) is not False, content)
    except (CorruptFileError, OSError) as error:
        if not concerns_one_partition(error):
            raise
        LOG.warning("%s has no broker epoch: %s", path, error)
    files.remove(path)
    files.sync_directory(directory)
    return marker


def restore_clean_marker(files: DataFiles, directory: str, marker: CleanMarker) -> None:
    """Write a marker again that was taken, if no log was changed since. Raises OSError."""
    write_durably(files, files.join(directory, CLEAN_SHUTDOWN_FILE), marker.content)


def noted_repair(marker: CleanMarker | None, hands_over: bool | None) -> bool | None:
    """Return the repair field for the next marker; ``marker`` is the previous one. ``hands_over``: the repair
    is part of a hand-over; None without a repair."""
    is_settled = marker is not None and marker.is_settled
    is_of_a_broker = hands_over is None or (hands_over and is_settled)
    return None if is_of_a_broker else is_settled


def write_clean_marker(
    files: DataFiles, directory: str, broker_epoch: int, repaired: bool | None = None
) -> None:
    """Write the marker, durably; a repair records whether the directory was settled before. Raises
    OSError."""
    content = format_clean_shutdown(broker_epoch, repaired)
    write_durably(files, files.join(directory, CLEAN_SHUTDOWN_FILE), content)

"""The marker of a clean shutdown: removed before the first change, written when everything is on the disk.

Source: ``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.env import write_durably
from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.checkpoint import format_clean_shutdown, parse_clean_shutdown
from txnkafka.storage.formats.layout import CLEAN_SHUTDOWN_FILE
from txnkafka.storage.formats.limits import SMALL_FILE_LIMIT
from txnkafka.storage.formats.partition_names import concerns_one_partition

if TYPE_CHECKING:
    from txnkafka.env import DataFiles

__all__ = ["NO_EPOCH", "take_clean_marker", "write_clean_marker"]

LOG = logging.getLogger("txnkafka.storage")
NO_EPOCH: Final = -1


def take_clean_marker(files: DataFiles, directory: str) -> int | None:
    """Remove the marker, durably; returns its broker epoch, which may be ``NO_EPOCH``, and None when there
    is no marker. Raises OSError."""
    path = files.join(directory, CLEAN_SHUTDOWN_FILE)
    if not files.exists(path):
        return None
    epoch = NO_EPOCH
    try:
        epoch = parse_clean_shutdown(files.read(path, SMALL_FILE_LIMIT)).broker_epoch or NO_EPOCH
    except (CorruptFileError, OSError) as error:
        if not concerns_one_partition(error):
            raise
        LOG.warning("%s has no broker epoch: %s", path, error)
    files.remove(path)
    files.sync_directory(directory)
    return epoch


def write_clean_marker(files: DataFiles, directory: str, broker_epoch: int) -> None:
    """Write the marker, durably. Raises OSError."""
    write_durably(files, files.join(directory, CLEAN_SHUTDOWN_FILE), format_clean_shutdown(broker_epoch))

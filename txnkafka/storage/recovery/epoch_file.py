"""Loads the leader epochs of a log from ``leader-epoch-checkpoint``, or from the batches if the file is
unusable.

Source: ``LeaderEpochFileCache``, ``LogLoader.load``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import write_durably
from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.checkpoint import (
    EpochEntry,
    format_leader_epoch_checkpoint,
    parse_leader_epoch_checkpoint,
)
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.formats.limits import EPOCHS_LIMIT, read_derived
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.recovery.header_pass import assign_epochs

if TYPE_CHECKING:
    from txnkafka.storage.recovery.found_log import FoundLog
    from txnkafka.storage.recovery.log_end import Start


class EpochFile(NamedTuple):
    """The entries of the file, or None and the fault. An empty file counts as missing: Kafka writes one for a
    log without epochs."""

    path: str
    entries: list[EpochEntry] | None
    fault: str
    is_damaged: bool


def load_epochs(found: FoundLog, first_checked: int, start: Start) -> EpochFile:
    """Load the epochs from their file, or, if it is not sound, from the batches of the segments below number
    ``first_checked``; the epochs of later segments are added while their batches are checked. After a crash,
    the file is valid only up to the recovery point: the flush that makes a batch durable writes its epoch.
    Offsets before the first segment were durable. Raises OSError."""
    file = _read(found)
    if file.entries is not None:
        found.epochs = LeaderEpochs(file.entries)
        if not start.clean_shutdown:
            durable = max(start.recovery_point or 0, found.segments[0].base_offset)
            found.epochs.truncate_from_end(durable)
        return file
    for segment in found.segments[:first_checked]:
        for batches in segment.windows():
            assign_epochs(found.epochs, batches)
    return file


def _read(found: FoundLog) -> EpochFile:
    path = found.files.join(found.directory, LEADER_EPOCH_CHECKPOINT)
    try:
        content = read_derived(found.files, path, EPOCHS_LIMIT)
        if content:
            return EpochFile(path, parse_leader_epoch_checkpoint(content), "", is_damaged=False)
    except FileNotFoundError:
        pass
    except CorruptFileError as error:
        return EpochFile(path, None, f"it is damaged, {error.reason}", is_damaged=True)
    return EpochFile(path, None, "it is not there or empty", is_damaged=False)


def cut_epochs(found: FoundLog, file: EpochFile, start: Start) -> bool:
    """Truncate the epochs to the log, and write them if necessary. Return True if the file has exactly these
    epochs. Epochs between the noted log start and the first segment stay, as in Kafka: its tiered storage may
    have their records, and loses them with the epochs. Raises OSError."""
    if file.entries is None and (found.epochs.entries or file.is_damaged):  # old brokers write none
        found.note(file.path, "rebuilt from the log", file.fault)
    found.epochs.truncate_from_start(start.log_start_offset)
    found.epochs.truncate_from_end(found.log_end_offset)
    if found.epochs.entries == file.entries:
        return True
    if start.clean_shutdown and file.entries is not None:
        # A new leader stores its epoch with the log end, so nearly every partition has an epoch to
        # remove. The next append does it.
        return False
    has_segments = found.active.size > 0 or len(found.segments) > 1
    if file.entries is not None or has_segments or file.is_damaged:
        write_durably(found.files, file.path, format_leader_epoch_checkpoint(found.epochs.entries))
    return True

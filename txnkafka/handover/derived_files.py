"""Finds derived files that contradict their log, and faults of logs that need the operator's decision.

``verify`` compares every file with the log; this module selects the findings that a hand-over repairs. Apache
Kafka trusts derived files after a clean stop: with a wrong ``.index`` or ``.timeindex`` consumers skip
records, with a wrong ``.txnindex`` or ``.snapshot`` they receive aborted and undecided records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.errors import CorruptFileError
from txnkafka.handover.registry import METADATA_DIRECTORY
from txnkafka.handover.report import Owner
from txnkafka.logdir.verify import verify
from txnkafka.storage.formats.checkpoint import parse_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.formats.limits import EPOCHS_LIMIT
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.recovery.header_pass import assign_epochs

if TYPE_CHECKING:
    from txnkafka.logdir import Finding, LogDir, PartitionView

_UNSOUND: Final = frozenset({
    "bad-index", "bad-timeindex", "bad-txnindex", "txnindex-contradicts-log", "txnindex-lacks-entry",
    "txnindex-wrong-entry", "txnindex-last-stable-offset", "bad-snapshot", "snapshot-contradicts-log",
    "snapshot-beyond-log-end",
})  # fmt: skip
"""Finding codes of files that are removed and rebuilt from the log."""
_MENDED: Final = frozenset({
    "missing-txnindex", "missing-snapshot", "torn-tail", "zero-tail", "garbage-tail",
    "recovery-point-beyond-log-end", "high-watermark-beyond-log-end",
})  # fmt: skip
"""Finding codes of errors that recovery repairs, or refuses with its own reason."""
_PREVENTING: Final = frozenset({"foreign-directory"})
"""Finding codes of warnings that keep Apache Kafka from starting."""
_EPOCHS: Final = "leader-epoch-mismatch"


class Checked(NamedTuple):
    """``unsound``: the derived files to rebuild, by path, with the reason. ``faults``: findings that need the
    operator's decision first."""

    unsound: dict[str, str]
    faults: list[Finding]


def check_files(log_dir: LogDir, to: Owner) -> Checked:
    """Compare all files of all partitions with the logs, reading everything once. Raises OSError."""
    partitions = [each for each in log_dir.topic_partitions if str(each) != METADATA_DIRECTORY]
    found = verify(log_dir, partitions).findings
    unsound = {finding.file: finding.message for finding in reversed(found) if finding.code in _UNSOUND}
    faults = [finding._replace(severity="error") for finding in found if _is_fault(finding, to)]
    mismatches = {finding.file for finding in found if finding.code == _EPOCHS}
    for view in map(log_dir.partition, *zip(*partitions, strict=True)) if mismatches else ():
        if any(path.startswith(f"{view.path}/") for path in mismatches) and _epochs_are_wrong(view):
            path = view.source.file_system.join(view.path, LEADER_EPOCH_CHECKPOINT)
            unsound[path] = "the batches have other leader epochs"
    return Checked(unsound, faults)


def _is_fault(finding: Finding, to: Owner) -> bool:
    if finding.code in _UNSOUND or finding.code in _MENDED:
        return False
    return finding.severity == "error" or (to is Owner.KAFKA and finding.code in _PREVENTING)


def _epochs_are_wrong(view: PartitionView) -> bool:
    """Return True if the file contradicts the epochs of several batches. A single batch more likely has a
    flipped bit, because no checksum covers its epoch. If batches contradict each other, the file that follows
    from them stays."""
    files = view.source.file_system
    path = files.join(view.path, LEADER_EPOCH_CHECKPOINT)
    try:
        noted = LeaderEpochs(parse_leader_epoch_checkpoint(files.read(path, EPOCHS_LIMIT)))
    except (CorruptFileError, OSError):
        return False  # recovery rebuilds it
    epochs, contradicting = LeaderEpochs(), 0
    for segment in view.segments:
        for batches in segment.indexes():
            assign_epochs(epochs, batches)
            columns = zip(batches.partition_leader_epoch, batches.base_offset, strict=True)
            contradicting += sum(0 <= epoch != noted.epoch_of(offset) for epoch, offset in columns)
        segment.close()
    epochs.truncate_from_start(view.log_start_offset)
    return contradicting > 1 and epochs.entries != noted.entries

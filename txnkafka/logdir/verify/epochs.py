"""Compares the leader epochs of batches with ``leader-epoch-checkpoint``.

No checksum covers the leader epoch of a batch. If the checkpoint has the epoch of an offset, the batch must
have that epoch; elsewhere epochs must not decrease. Batches of magic 0 and 1 have no epoch, and batches not
stamped by a leader have -1.
"""

from __future__ import annotations

from bisect import bisect_right

from txnkafka._core.scan import BatchHeader, BatchIndex
from txnkafka.logdir.verify.findings import Findings
from txnkafka.shown import offset_range
from txnkafka.storage.formats import EpochEntry

NO_EPOCH = -1


class LeaderEpochCheck:
    """Follows the leader epochs of one partition. ``checkpoint`` is None if the file is missing."""

    def __init__(self, findings: Findings, checkpoint: list[EpochEntry] | None) -> None:
        self.seen = False
        self._findings = findings
        self._epochs = [entry.epoch for entry in checkpoint or ()]
        self._starts = [entry.start_offset for entry in checkpoint or ()]
        self._current = self._before = NO_EPOCH
        self._single: tuple[str, BatchHeader] | None = None  # the only batch of the current epoch so far
        self._wrong_before = False

    def window(self, path: str, index: BatchIndex, excluded: list[int]) -> None:
        """Check the next batches of a segment."""
        epochs = set(index.partition_leader_epoch) - {NO_EPOCH}
        if not epochs:
            return
        self.seen = True
        if len(epochs) == 1 and not self._wrong_before and self._is_expected(index, min(epochs)):
            return
        left_out = set(excluded)
        for i, epoch in enumerate(index.partition_leader_epoch):
            if epoch != NO_EPOCH and i not in left_out:
                self._batch(path, index[i], epoch)

    def _is_expected(self, index: BatchIndex, epoch: int) -> bool:
        """Return True if all batches of the window have the current epoch, and the checkpoint has no other
        epoch for them."""
        first, last = index.base_offset[0], index.last_offset[len(index) - 1]
        return epoch == self._current and {self._noted(first), self._noted(last)} <= {epoch, None}

    def _noted(self, offset: int) -> int | None:
        entry = bisect_right(self._starts, offset) - 1
        return self._epochs[entry] if entry >= 0 else None

    def _batch(self, path: str, header: BatchHeader, epoch: int) -> None:
        noted = self._noted(header.base_offset)
        wrong = epoch < self._current if noted is None else epoch != noted
        if wrong and noted is None and self._single is not None and self._before <= epoch:
            # only one batch had the higher epoch: that batch is wrong
            self._report(*self._single, f"at most {epoch}")
            wrong = False
        elif wrong and not self._wrong_before:
            expected = f"at least {self._current}" if noted is None else f"{noted}, as the checkpoint says"
            self._report(path, header, expected)
        if not wrong:
            if epoch != self._current:
                self._before, self._current, self._single = self._current, epoch, (path, header)
            else:
                self._single = None
        self._wrong_before = wrong

    def _report(self, path: str, header: BatchHeader, expected: str) -> None:
        self._findings.add(
            "leader-epoch-mismatch", path,
            f"the batch of {offset_range(header.base_offset, header.last_offset)} has leader epoch "
            f"{header.partition_leader_epoch} where it should be {expected}",
            position=header.position,
        )  # fmt: skip

"""The findings of a verification: the severity and remedy of every code, and the collection of findings.

Invariant: memory is bounded. At most a hundred findings per code and file are listed, the rest are counted,
so a large file of garbage costs no more than a small one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from txnkafka.logdir.finding import Finding
from txnkafka.logdir.log_end import AFTER_A_KILL
from txnkafka.logdir.noted_offsets import BEYOND_LOG_END

LISTED_PER_FILE = 100
_RESTORE: Final = "restore the file from a replica or a backup"
_REBUILT: Final = "nothing to do: the broker rebuilds it when it starts"
# 'txnkafka repair' is for the directory of a stopped broker
_REBUILD: Final = "run 'txnkafka repair': it rebuilds the file from the log"
_REBUILD_FULL: Final = "run 'txnkafka repair --full': it rebuilds the file from the log"
_DELETE_SNAPSHOT: Final = (
    "delete the file ('txnkafka repair' does if it is the newest): the log says the same"
)
_SNAPSHOT: Final = "run 'txnkafka repair' before the broker starts: it writes the snapshot from the log"

CODES: Final[dict[str, tuple[str, str]]] = {
    # the log
    "corrupt-batch": ("error", _RESTORE),
    "corrupt-tail": ("error", f"{_RESTORE} if what follows is needed"),
    "damaged-segment": ("error", _RESTORE),
    "garbage-tail": ("warning", AFTER_A_KILL),
    "misplaced-batch": ("error", f"{_RESTORE}: no checksum covers a batch's base offset"),
    "missing-segment": ("error", "restore the missing segment from a replica or a backup"),
    "offset-overflow": ("warning", "nothing to do: the broker splits the segment when it starts"),
    "record-offset-outside-batch": ("error", f"{_RESTORE}; consumers return such offsets as they are"),
    "repeated-batch": ("warning", "nothing to do: consumers return the records once"),
    "torn-tail": ("warning", AFTER_A_KILL),
    "undecided-transaction": (
        "error",
        "restore the missing or damaged segment, or read with read_uncommitted",
    ),
    "unknown-magic": ("error", f"{_RESTORE}: no checksum covers a batch's magic byte"),
    "unreadable-file": ("error", "check permissions and the disk"),
    "zero-tail": ("warning", AFTER_A_KILL),
    # producers
    "coordinator-epoch-back": ("warning", "compare with a replica; the broker keeps the later marker"),
    "marker-epoch-back": ("warning", "compare with a replica; the broker keeps the later marker"),
    "non-transactional-in-transaction": ("warning", "find out which client writes past its transaction"),
    "producer-epoch-back": ("warning", "find out whether a fenced producer could still write"),
    "sequence-back": (
        "warning",
        "look for records that are there twice: a restarted broker forgets a producer whose records have "
        "timestamps older than producer.id.expiration.ms, and appends a repeated batch again",
    ),
    "sequence-gap": ("warning", "look for records that are missing; compare with a replica"),
    "unknown-control-type": ("error", f"{_RESTORE}: no broker loads a partition with such a batch"),
    # leader epochs
    "bad-leader-epoch-checkpoint": ("warning", f"{_REBUILD}; no broker starts with it"),
    "leader-epoch-mismatch": ("warning", "compare with a replica: no checksum covers a batch's leader epoch"),
    "missing-leader-epoch-checkpoint": ("note", "nothing to do: the next append writes the epochs again"),
    # indexes
    "bad-index": ("warning", _REBUILD_FULL),
    "bad-timeindex": ("warning", _REBUILD_FULL),
    "bad-txnindex": ("warning", _REBUILD),
    "missing-index": ("note", _REBUILT),
    "missing-timeindex": ("note", f"{_REBUILD}; a broker does so only where the .index is missing, too"),
    "missing-txnindex": ("error", _REBUILD),
    "orphan-index": ("note", "nothing to do: the broker deletes it when it starts"),
    "txnindex-contradicts-log": ("error", _REBUILD_FULL),
    "txnindex-lacks-entry": ("error", _REBUILD_FULL),
    "txnindex-last-stable-offset": ("note", "nothing to do: a broker may look at more entries than it must"),
    "txnindex-wrong-entry": ("error", f"delete the file, then {_REBUILD}"),
    # snapshots
    "bad-snapshot": ("warning", _DELETE_SNAPSHOT),
    "missing-snapshot": ("note", _REBUILT),
    "snapshot-beyond-log-end": ("warning", "nothing to do: the broker deletes it when it starts"),
    # repair continues from the newest snapshot left, whose state would be wrong as well
    "snapshot-contradicts-log": (
        "error",
        f"delete all snapshots of the partition that have this finding, then {_SNAPSHOT}",
    ),
    "snapshot-lacks-producer": ("note", "nothing to do if the producer was idle until it was forgotten"),
    # the directory
    **BEYOND_LOG_END,
    "bad-clean-shutdown-file": ("note", "nothing to do: that the file exists is what counts"),
    "bad-meta-properties": ("warning", "restore the file: the broker does not start without it"),
    "foreign-directory": ("warning", "move it away: the broker does not start with such a directory"),
    "foreign-file": ("warning", "move it away: no segment has such a name"),
    "leftover-file": ("note", "nothing to do: the broker finishes or undoes this when it starts"),
    "meta-properties-mismatch": ("warning", "do not start a broker on these directories together"),
    "missing-meta-properties": ("warning", "restore the file: the broker does not start without it"),
    "missing-partition-metadata": ("warning", "restore the file: the broker would put the log aside"),
    "other-directory": ("note", "it is not part of the topic; delete it when it is not needed any more"),
    "topic-id-mismatch": ("warning", "correct the file: the broker puts a log with another id aside"),
    "unreadable-partition": ("error", "check permissions, links and the disk: it was not checked"),
}
# remedies that depend on the severity
REMEDIES: Final[dict[tuple[str, str], str]] = {
    ("missing-snapshot", "error"): _SNAPSHOT,
    ("missing-snapshot", "warning"): _SNAPSHOT,
    ("missing-txnindex", "note"): _REBUILT,
    ("txnindex-lacks-entry", "note"): _REBUILT,
    ("zero-tail", "note"): "nothing to do: the broker cuts them off when it starts",
}


# remedies of consequences, which never delete a correct file
_FOLLOWS: Final = "nothing to do with this file: the log is not known there, see '{cause}'"
CONSEQUENCES: Final[dict[str, str]] = {
    "bad-index": _FOLLOWS,
    "bad-timeindex": _FOLLOWS,
    "snapshot-beyond-log-end": _FOLLOWS,
    "snapshot-contradicts-log": _FOLLOWS,
    "snapshot-lacks-producer": _FOLLOWS,
    "undecided-transaction": "it is decided when the log is restored, see '{cause}'",
}


class Stopped(Exception):  # noqa: N818  a requested end, not an error
    """Raised with ``fail_fast`` at the first finding worse than a note."""


class Findings:
    """The findings so far. ``settle`` calls ``on_finding`` with each finding, in order."""

    def __init__(
        self, *, fail_fast: bool = False, on_finding: Callable[[Finding], None] | None = None
    ) -> None:
        self.found: list[Finding] = []
        self._fail_fast = fail_fast
        self._on_finding = on_finding
        self._counts: Counter[tuple[str, str]] = Counter()
        self._settled = 0  # the number of ordered findings

    def add(
        self,
        code: str,
        file: str,
        message: str,
        *,
        position: int | None = None,
        severity: str | None = None,
        cause: str = "",
    ) -> None:
        """Add a finding; ``severity`` overrides the usual one of the code. A consequence of another finding
        has that finding's code as ``cause``, and possibly another remedy."""
        usual, remedy = CODES[code]
        severity = severity or usual
        remedy = REMEDIES.get((code, severity), remedy)
        if cause:
            remedy = CONSEQUENCES.get(code, remedy).format(cause=cause)
        self.take(Finding(file, position, severity, code, message, remedy, cause))

    def take(self, finding: Finding) -> None:
        """Add a finding of another part of the reader."""
        key = finding.code, finding.file
        self._counts[key] += 1
        if self._counts[key] <= LISTED_PER_FILE:
            self._list(finding)

    def take_all(self, others: Findings) -> None:
        """Add the findings of other files, with the numbers of those that were only counted."""
        self.found += others.found
        self._counts.update(others._counts)
        self.settle()

    def _list(self, finding: Finding) -> None:
        self.found.append(finding)
        if self._fail_fast and finding.severity != "note":
            self.settle()
            raise Stopped

    def settle(self) -> None:
        """Order the findings since the last call, which belong to one partition: each code at the place of
        its first finding, followed by its consequences."""
        ordered = _causes_first(self.found[self._settled :])
        self.found[self._settled :] = ordered
        self._settled = len(self.found)
        if self._on_finding is not None:
            for finding in ordered:
                self._on_finding(finding)

    def finish(self) -> None:
        """Add a finding per code and file whose further findings were only counted."""
        for (code, file), count in self._counts.items():
            if count > LISTED_PER_FILE:
                same = next(finding for finding in self.found if (finding.code, finding.file) == (code, file))
                self._list(
                    same._replace(
                        position=None, message=f"{count - LISTED_PER_FILE} more like this are not listed"
                    )
                )
        self._counts.clear()
        self.settle()


def _causes_first(findings: list[Finding]) -> list[Finding]:
    of_their_own = dict.fromkeys(each.code for each in findings if not each.cause)
    roots = {code: number for number, code in enumerate(of_their_own)}
    own = {code: number for number, code in enumerate(dict.fromkeys(each.code for each in findings))}
    last = len(findings)

    def rank(finding: Finding) -> tuple[int, bool, int]:
        return roots.get(finding.cause or finding.code, last), bool(finding.cause), own[finding.code]

    return sorted(findings, key=rank)

"""The expected answers of the reader for each broken directory.

Every ``crash_*`` case is one damage to ``crash/logs`` (killed, so a broker recovers it), every ``clean_*``
case one damage to ``crash/recovered`` (stopped cleanly, so a broker trusts it). Where the broker repairs the
damage or its answer is right, that answer is expected. Where it shows or hides records wrongly, the expected
answer is that of the intact log, and ``better`` gives the reason; DIVERGENCES.md lists these.

An answer names the case whose consumer got these records, so that no row contains results of our own code.
The numbers of records are repeated beside it, so that a row stays consistent with its case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.golden.cases import Case, case
from txnkafka.model import TopicPartition

__all__ = ["DAMAGED", "TABLE", "Answer", "Corrupt", "Row"]

Json = Any

DAMAGED = TopicPartition("crash", 0)
LAST_SEGMENT, OLD_SEGMENT = f"{86:020}.log", f"{16:020}.log"


@dataclass(frozen=True)
class Corrupt:
    """A batch at which reading stops; ``offsets`` are those of its records before the damage."""

    file: str
    position: int
    offsets: range


@dataclass(frozen=True)
class Answer:
    """The records that the consumer of case ``like`` got, up to the damage.

    ``counts`` are their numbers in read_committed and read_uncommitted.
    """

    like: str
    counts: tuple[int, int]
    last_stable_offset: int
    log_end_offset: int
    log_start_offset: int = 0
    corrupt: Corrupt | None = None

    def limit(self, isolation_level: str) -> int:
        """Return where a reader of that level stops without damage."""
        return self.last_stable_offset if isolation_level == "read_committed" else self.log_end_offset

    def meets_damage(self, isolation_level: str) -> bool:
        """Return whether a read from the beginning reaches the damaged batch."""
        return self.corrupt is not None and self.corrupt.offsets.start < self.limit(isolation_level)

    def records(self, isolation_level: str) -> list[Json]:
        """Return the records up to the damage."""
        found = case(self.like).expected_records(DAMAGED, isolation_level)
        end = self.corrupt.offsets.start if self.corrupt else self.log_end_offset
        return [record for record in found if record["offset"] < end]

    def records_around(self, isolation_level: str) -> list[Json]:
        """Return the records with on_corrupt="skip": all but the damaged batch."""
        lost = self.corrupt.offsets if self.corrupt else range(0)
        found = case(self.like).expected_records(DAMAGED, isolation_level)
        return [record for record in found if record["offset"] not in lost]


@dataclass(frozen=True)
class Row:
    """One directory of one case. ``better`` is the reason why the expected answer is not the broker's."""

    name: str
    answer: Answer
    better: str = ""
    directory: str = "logs"

    @property
    def case(self) -> Case:
        return case(self.name)

    @property
    def path(self) -> str:
        """The directory to read."""
        return str(self.case.root / self.directory)

    def __str__(self) -> str:
        return f"{self.name}/{self.directory}"


INTACT = Answer("crash", (31, 74), last_stable_offset=64, log_end_offset=93)
WITHOUT_LAST_BATCH = Answer("crash_torn_tail", (31, 73), last_stable_offset=64, log_end_offset=92)
BATCH_OF_88 = Corrupt(LAST_SEGMENT, 274, range(88, 92))
BROKEN_AT_88 = Answer("crash", (31, 69), last_stable_offset=64, log_end_offset=93, corrupt=BATCH_OF_88)
EMPTY = Answer("clean_other_topic_id", (0, 0), last_stable_offset=0, log_end_offset=0)

LOG_SAYS_SO = "the log itself has every marker: markers show which data is aborted, not only the index"
NEVER_TRUSTED = "the log ends where the batches end, not where an offset index ends"
STILL_OPEN = "the log has transactions without an end marker: a missing snapshot does not end them"
FORGOTTEN = "the broker dropped the open transactions and returns their records"
REFUSED = "the broker refuses to start; the log is intact, and the problem is reported as a finding"


def _same(name: str, answer: Answer, better: str = "") -> list[Row]:
    """Expect the same answer for the broken directory and after the broker's recovery."""
    return [Row(name, answer, better, "logs"), Row(name, answer, better, "recovered")]


def _stray(name: str) -> list[Row]:
    """The broker renames the log and creates an empty one."""
    better = "the broker starts with an empty log instead; the batches are all there"
    (aside,) = (path.name for path in (case(name).root / "recovered").glob("*-stray"))
    return [
        Row(name, INTACT, better, "logs"),
        Row(name, EMPTY, "", "recovered"),
        Row(name, INTACT, better, f"recovered/{aside}"),
    ]


TABLE: list[Row] = [
    # Derived files of a killed broker: recovery rebuilds them from the log.
    *_same("crash_all_derived_gone", INTACT),
    *_same("crash_bad_snapshot", INTACT),
    *_same("crash_no_index", INTACT),
    *_same("crash_no_snapshot", INTACT),
    *_same("crash_no_timeindex", INTACT),
    *_same("crash_no_recovery_point", INTACT),
    *_same(
        "crash_no_txnindex",
        INTACT,
        f"below the recovery point it is not rebuilt; {LOG_SAYS_SO}",
    ),
    # The tail of a killed broker: truncated where recovery truncates.
    *_same("crash_torn_tail", WITHOUT_LAST_BATCH),
    *_same("crash_torn_header", WITHOUT_LAST_BATCH),
    *_same("crash_torn_crc", WITHOUT_LAST_BATCH),
    *_same("crash_huge_length", WITHOUT_LAST_BATCH),
    *_same("crash_zero_tail", INTACT),
    *_same("crash_garbage_tail", INTACT),
    *_same("crash_repeated_tail", INTACT),
    *_same(
        "crash_flip_last_payload",
        Answer("crash_flip_last_payload", (31, 69), last_stable_offset=64, log_end_offset=88),
    ),
    # Bits that no CRC covers: recovery accepts them.
    *_same("crash_bad_magic", BROKEN_AT_88),
    *_same(
        "crash_flip_last_epoch",
        Answer("crash_flip_last_epoch", (31, 74), last_stable_offset=64, log_end_offset=93),
    ),
    *_same(
        "crash_flip_last_offset",
        BROKEN_AT_88,
        "no batch between 87 and 92 is at 32856: the consumer delivers it there and drops the next",
    ),
    # A wrong CRC that recovery does not check.
    *_same(
        "crash_flip_old_payload",
        Answer("crash", (15, 19), 64, 93, corrupt=Corrupt(OLD_SEGMENT, 639, range(23, 25))),
    ),
    *_same("clean_flip_last_payload", BROKEN_AT_88),
    # The tail after a clean stop.
    *_same(
        "clean_torn_tail",
        WITHOUT_LAST_BATCH,
        "the broker loses whole batches before the torn one, back to an index entry",
    ),
    *_same("clean_zero_tail", INTACT, REFUSED),
    # Offset and time indexes.
    *_same("clean_no_index", INTACT),
    *_same("clean_no_timeindex", INTACT),
    *_same("clean_bad_timeindex", INTACT),
    *_same("clean_bad_index", INTACT, NEVER_TRUSTED),
    *_same("clean_lying_index", INTACT, NEVER_TRUSTED),
    # Transaction indexes.
    *_same("clean_no_txnindex", INTACT, LOG_SAYS_SO),
    *_same("clean_bad_txnindex", INTACT),
    *_same("clean_torn_txnindex", INTACT),
    *_same("clean_lying_txnindex", Answer("clean_lying_txnindex", (26, 74), 64, 93)),
    # Producer snapshots.
    *_same("clean_no_last_snapshot", INTACT),
    *_same("clean_old_snapshot_only", INTACT),
    *_same("clean_bad_snapshot", INTACT),
    Row("clean_no_snapshot", INTACT, STILL_OPEN, "logs"),
    # The broker has written valid, empty snapshots: they move the last stable offset, as they do in Kafka,
    # but transactions without a COMMIT marker in the log stay hidden.
    Row("clean_no_snapshot", replace(INTACT, last_stable_offset=93), FORGOTTEN, "recovered"),
    # All derived files at once, and conditions that make the broker rebuild them.
    *_same("clean_no_marker", INTACT),
    *_same("clean_repair", INTACT),
    # Checkpoints.
    *_same("clean_no_checkpoints", INTACT),
    *_same("clean_bad_recovery_point", INTACT),
    *_same("clean_bad_log_start", Answer("clean_bad_log_start", (25, 64), 64, 93, log_start_offset=10)),
    *_same("clean_hw_behind", INTACT),
    *_same("clean_no_leader_epoch", INTACT),
    *_same("clean_bad_leader_epoch", INTACT, REFUSED),
    # Identity.
    *_same("clean_no_meta_properties", INTACT, REFUSED),
    *_same("clean_other_cluster", INTACT, REFUSED),
    *_stray("clean_no_partition_metadata"),
    *_stray("clean_other_topic_id"),
    # The log itself.
    *_same("clean_missing_segment", Answer("clean_missing_segment", (28, 63), 64, 93)),
]

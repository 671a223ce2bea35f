"""``Explanation``: the report on the last stable offset of a partition, in fields and in words.

``txnkafka lso`` prints ``lines``; ``to_dict`` has the fields of its JSON, which docs/lso.md lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from txnkafka.logdir.display import html_table
from txnkafka.logdir.verdict import Circumstances, Verdict
from txnkafka.shown import counted, iso_time, offset_range, printable, size

if TYPE_CHECKING:
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.logdir.lost import Lost
    from txnkafka.logdir.repair_advice import RepairAdvice
    from txnkafka.wire.records import TransactionMetadata

MOST_RANGES: Final = 3
Kind = Literal["verdict", "evidence", "advice", "command"]
_INDENT: Final[dict[Kind, str]] = {"verdict": "", "evidence": "  ", "advice": "  ", "command": "    "}


class Line(NamedTuple):
    """A line of an explanation: a sentence, or a command to copy."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{_INDENT[self.kind]}{self.text}"


class JudgedTransaction(NamedTuple):
    """An open transaction: its state in the partition, its state at the coordinator (None: unknown), the
    verdict, the advice."""

    transaction: TransactionRange
    coordinator: TransactionMetadata | None
    verdict: Verdict
    reason: str
    repair: RepairAdvice

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of its producer; None if unknown."""
        return None if self.coordinator is None else self.coordinator.transactional_id

    @property
    def since_ms(self) -> int | None:
        """The start of the transaction by its first record, else by the coordinator."""
        if self.transaction.first_timestamp >= 0:
            return self.transaction.first_timestamp
        begin = -1 if self.coordinator is None else self.coordinator.start_timestamp
        return begin if begin >= 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; unknown fields are None."""
        transaction, owner = self.transaction, self.coordinator
        return {
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "first_offset": transaction.first_offset,
            "first_timestamp": _known(transaction.first_timestamp),
            "last_timestamp": _known(transaction.last_timestamp),
            "records": transaction.records,
            "bytes": transaction.bytes,
            "transactional_id": self.transactional_id,
            "transaction_state": None if owner is None else owner.state.label,
            "transaction_timeout_ms": None if owner is None else owner.transaction_timeout_ms,
            "current_transaction_start_time_ms": None if owner is None else _known(owner.start_timestamp),
            "verdict": self.verdict.value,
            "reason": self.reason,
            **self.repair._asdict(),
        }


class Waiting(NamedTuple):
    """The records that a read_committed reader does not get yet, and the closed segments (``.log`` file
    names) that cannot be compacted or tiered."""

    records: int
    bytes: int
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the last stable offset of a partition is where it is. ``print`` shows it in words, a notebook as a
    table.

    ``open_transactions`` begins with the oldest one, which determines the last stable offset. ``lost`` is
    None if the log was not searched for missing offsets."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    last_stable_offset: int
    verdict: Verdict
    reason: str
    open_transactions: tuple[JudgedTransaction, ...]
    waiting: Waiting
    judged: Circumstances
    lost: Lost | None

    def __repr__(self) -> str:
        return (
            f"Explanation('{printable(self.topic)}-{self.partition}', verdict={self.verdict.value!r}, "
            f"last_stable_offset={self.last_stable_offset}, log_end_offset={self.log_end_offset}, "
            f"waiting_records={self.waiting.records})"
        )

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))

    def _repr_html_(self) -> str:
        rows = [(line.kind, line.text) for line in self.lines[1:]]
        return html_table(self.lines[0].text, ("", ""), rows, len(rows))

    @property
    def lines(self) -> list[Line]:
        """The explanation in words, in reading order: the verdict, then evidence and advice. Control
        characters in names are escaped."""
        return [Line(kind, printable(text)) for kind, text in _lines(self)]

    @property
    def evidence(self) -> list[str]:
        """The sentences about the facts that lead to the verdict."""
        return [text for kind, text in self.lines if kind == "evidence"]

    @property
    def advice(self) -> list[str]:
        """The sentences about what to do, each command after the condition for running it; empty if nothing
        needs attention."""
        return [text for kind, text in self.lines if kind in ("advice", "command")]

    @property
    def is_stuck(self) -> bool:
        """True if a transaction hangs, is overdue or waits for its end marker, or if records wait for a
        transaction of unknown outcome."""
        verdicts = [transaction.verdict for transaction in self.open_transactions]
        unknown = any(verdict.is_unknown for verdict in verdicts) and self.waiting.records > 0
        return unknown or any(verdict.is_stuck for verdict in verdicts)

    @property
    def hanging_producers(self) -> frozenset[int]:
        """The ids of producers with hanging transactions."""
        open_transactions = self.open_transactions
        return frozenset(
            each.transaction.producer_id for each in open_transactions if each.verdict.is_hanging
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; unknown fields are None."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "high_watermark": self.high_watermark,
            "last_stable_offset": self.last_stable_offset,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "is_stuck": self.is_stuck,
            "waiting_records": self.waiting.records,
            "waiting_bytes": self.waiting.bytes,
            "waiting_segments": list(self.waiting.segments),
            "missing_offsets": None if self.lost is None else [list(each) for each in self.lost.missing],
            "undecided_records": None if self.lost is None else self.lost.records,
            "judged_at": self.judged.now_ms if self.open_transactions else None,
            "open_transactions": [transaction.to_dict() for transaction in self.open_transactions],
        }


def _lines(report: Explanation) -> Iterator[Line]:
    yield Line("verdict", _headline(report))
    if report.verdict is Verdict.NOT_STUCK:
        return
    if report.verdict is Verdict.HW_BEHIND:
        yield Line("evidence", f"Why: {report.reason}: {_amount(report.waiting)} there.")
        advice = "nothing if the broker was killed; else look at the replicas that lag behind"
        yield Line("advice", f"What to do: {advice}.")
        return
    yield Line(
        "evidence",
        f"The last stable offset stands at {report.last_stable_offset}, the log ends at "
        f"{report.log_end_offset}: {_amount(report.waiting)} behind it.",
    )
    if report.lost is not None and (report.lost.missing or report.lost.records):
        yield Line("evidence", _lost(report.lost))
    if report.waiting.segments:
        yield Line("evidence", _held_segments(report.waiting))
    yield from _transactions(report)


def _headline(report: Explanation) -> str:
    name = f"{report.topic}-{report.partition}"
    if report.verdict is Verdict.NOT_STUCK:
        return f"{name}  NOT_STUCK: everything up to the log end {report.log_end_offset} is stable"
    return f"{name}  {report.verdict.value}"


def _transactions(report: Explanation) -> Iterator[Line]:
    """Yield the lines about open transactions. Repeated advice is given once; later transactions only add
    their commands and conditions."""
    given: set[str] = set()
    for judged in report.open_transactions:
        if not given:
            moment = f"{iso_time(report.judged.now_ms)}, {report.judged.now_origin}"
            yield Line("evidence", f"It is held by {_described(judged)}.")
            yield Line("evidence", f"Why: {judged.reason}.")
            yield Line("evidence", f"Judged at {moment}.")
        else:
            text = f"Open too, {judged.verdict.value}: {_described(judged)}; {judged.reason}."
            yield Line("evidence", text)
        yield from _advice(judged.repair, is_new=judged.repair.advice not in given)
        given.add(judged.repair.advice)


def _advice(repair: RepairAdvice, *, is_new: bool) -> Iterator[Line]:
    advice, command, risk, condition = repair
    if is_new:
        yield Line("advice", f"What to do: {advice}.")
    if is_new and risk is not None:
        yield Line("advice", f"Risk: {risk}.")
    if command is not None:
        yield Line("advice", f"Only if {condition}:")
        yield Line("command", command)


def _amount(waiting: Waiting) -> str:
    verb = "waits" if waiting.records == 1 else "wait"
    return f"{counted(waiting.records, 'record')} ({size(waiting.bytes)}) {verb}"


def _lost(lost: Lost) -> str:
    ranges = [offset_range(*each) for each in lost.missing[:MOST_RANGES]]
    if len(lost.missing) > MOST_RANGES:
        ranges.append(f"{len(lost.missing) - MOST_RANGES:,} more ranges")
    is_one = len(lost.missing) == 1 and lost.missing[0][0] == lost.missing[0][1]
    parts = [f"{', '.join(ranges)} {'is' if is_one else 'are'} missing or damaged"] if ranges else []
    if lost.transactions:
        verb = "is" if lost.records == 1 else "are"
        parts.append(
            f"{counted(lost.records, 'record')} of {counted(lost.transactions, 'transaction')} {verb} "
            "undecided without an end marker, and held back from read_committed"
        )
    return f"The log is not whole: {'; '.join(parts)}. 'txnkafka verify' names the files."


def _held_segments(waiting: Waiting) -> str:
    first, count = waiting.segments[0], len(waiting.segments)
    which = f"Segment {first}" if count == 1 else f"{count:,} segments from {first} on"
    return f"{which} can be neither compacted nor tiered while it stands there."


def _described(judged: JudgedTransaction) -> str:
    transaction = judged.transaction
    whose = "of no known transactional id"
    if judged.transactional_id is not None:
        whose = f"of transactional id {judged.transactional_id!r}"
    since = ""
    if judged.since_ms is not None:
        whom = "producer" if transaction.first_timestamp >= 0 else "coordinator"
        since = f", open since {iso_time(judged.since_ms)} by the {whom}'s clock"
    what = "its records are deleted, only a producer snapshot remembers it"
    if transaction.records:
        what = (
            f"{counted(transaction.records, 'record')} ({size(transaction.bytes)}) "
            f"at {offset_range(transaction.first_offset, transaction.last_offset)}"
        )
    return f"producer {transaction.producer_id} epoch {transaction.producer_epoch} {whose}{since}: {what}"


def _known(timestamp: int) -> int | None:
    return None if timestamp < 0 else timestamp

"""``History``: what was requested of the log of a partition, and what was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.crash.entries import Entry
from tests.crash.explore import Promises
from txnkafka.model import TopicPartition

__all__ = ["History", "histories_of"]


@dataclass
class History:
    """The attempted changes of one partition, as the states that it may be in, the newest last."""

    entries: list[Entry] = field(default_factory=list)
    before_cut: list[Entry] = field(default_factory=list)
    cuts: int = 0  # unacknowledged truncations and deletions
    deletions: int = 0
    acknowledged_end: int = 0
    start: int = 0  # attempted
    acknowledged_start: int = 0


def histories_of(promises: Promises) -> dict[TopicPartition, History]:
    """Return the history of each partition."""
    histories: dict[TopicPartition, History] = {}
    for what, key, value in promises.attempted:  # type: ignore[misc]
        history = histories.setdefault(key, History())
        if what == "append":
            history.entries.append(value)
        elif what == "refused":
            history.entries.remove(value)
        elif what == "opened":
            history.entries = [each for each in history.entries if each.last_offset < value]
        elif what == "truncate":
            history.before_cut = history.entries
            history.cuts += 1
            history.entries = [each for each in history.entries if each.last_offset < value]
        elif what == "delete":
            history.before_cut, history.entries = history.entries, []
            history.cuts += 1
            history.deletions += 1
        else:
            history.start = max(history.start, value)
    for what, key, value in promises.acknowledged:  # type: ignore[misc]
        history = histories[key]
        if what == "truncate":
            history.cuts -= 1
            history.acknowledged_end = min(history.acknowledged_end, value)
        elif what == "delete":
            history.cuts -= 1
            history.deletions -= 1
            history.acknowledged_end = 0
        elif what == "end":
            history.acknowledged_end = max(history.acknowledged_end, value)
        else:
            history.acknowledged_start = max(history.acknowledged_start, value)
    return histories

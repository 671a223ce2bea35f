"""The anomalies of members of groups in a history: who owns a partition when, in which epoch, and who commits
without owning it any more. Nothing here knows how the engine works.

A member is sure to own a partition from the answer that gives it to the last request of which an answer has
shown that it still was the owner. What lies behind that is not judged: the group may have given up on it.

Source: KIP-848, KIP-447.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txnkafka.testing.simulation.group_anomalies import since_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnkafka.testing.simulation.history import History, Ownership, Partition

__all__ = ["MEMBER_CHECKS"]

_NEVER = 1 << 62
_Key = tuple[str, "Partition"]  # a group and a partition


@dataclass(slots=True)
class _Tenure:
    """A member is sure to have owned a partition all this time."""

    process: str
    member_id: str
    begin_us: int
    end_us: int


def _tenures(history: History) -> dict[_Key, list[_Tenure]]:
    """The tenures of each partition in a group, in the order in which they begin."""
    found: dict[_Key, list[_Tenure]] = defaultdict(list)
    held: dict[tuple[str, str], dict[Partition, _Tenure]] = defaultdict(dict)  # by group and process
    for each in sorted(history.ownerships, key=lambda each: each.at_us):
        there = held[each.group_id, each.process]
        for partition in list(there):
            if partition in each.owned and there[partition].member_id == each.member_id:
                there[partition].end_us = each.sent_us
            else:
                del there[partition]
        for partition in sorted(each.assigned - there.keys()):
            there[partition] = _Tenure(each.process, each.member_id, each.at_us, each.at_us)
            found[each.group_id, partition].append(there[partition])
    return found


def owned_by_two(history: History) -> Iterator[str]:
    """Two members of a group own a partition at the same time."""
    for (group_id, partition), tenures in _tenures(history).items():
        last: _Tenure | None = None
        for tenure in tenures:
            if last is not None and tenure.begin_us < last.end_us:
                yield (
                    f"{tenure.process} owns {partition[0]}-{partition[1]} of {group_id} from "
                    f"{tenure.begin_us} to {tenure.end_us}, and {last.process} does until {last.end_us}"
                )
            if last is None or tenure.end_us > last.end_us:
                last = tenure


def epoch_went_back(history: History) -> Iterator[str]:
    """A member has an older epoch than it had, or joins in an older one than another member had before."""
    newest: dict[str, tuple[int, int, str]] = {}  # by group: epoch, when it was seen first, by whom
    own: dict[tuple[str, str], int] = {}
    for each in sorted(_of_groups_with_epochs(history), key=lambda each: each.at_us):
        key = each.group_id, each.member_id
        if each.epoch < own.get(key, 0) and not each.is_joining:
            yield f"{each.process} is in epoch {each.epoch} of {each.group_id}, and was in {own[key]}"
        own[key] = each.epoch
        epoch, seen_us, process = newest.get(each.group_id, (0, _NEVER, ""))
        if each.is_joining and each.epoch < epoch and seen_us < each.sent_us:
            yield (
                f"{each.process} joins {each.group_id} in epoch {each.epoch}, and {process} was in {epoch} "
                "before"
            )
        if each.epoch > epoch:
            newest[each.group_id] = each.epoch, each.at_us, each.process


def _of_groups_with_epochs(history: History) -> Iterator[Ownership]:
    """Those of groups that are not forgotten any more: the epochs begin with 1 again behind that. An empty
    group of the classic protocol is forgotten, too, when a member of the other one joins."""
    since = since_kept(history)
    for each in history.ownerships:
        is_consumer = history.groups[each.group_id].protocols == ("consumer",)
        if is_consumer and each.sent_us > since.get(each.group_id, _NEVER):
            yield each


def stale_commit(history: History) -> Iterator[str]:
    """A commit succeeds of a member that had lost the partition to another one when it asked."""
    tenures = _tenures(history)
    for commit in history.commits:
        if commit.acked_us < 0 or not commit.member_id:
            continue
        for partition in commit.offsets:
            before = [
                each for each in tenures[commit.group_id, partition] if each.begin_us < commit.invoked_us
            ]
            had = any(each.member_id == commit.member_id for each in before)
            if had and before[-1].member_id != commit.member_id:
                yield (
                    f"{commit.process} commits {partition[0]}-{partition[1]} of {commit.group_id} at "
                    f"{commit.invoked_us}, and {before[-1].process} owns it since {before[-1].begin_us}"
                )


def member_lost(history: History) -> Iterator[str]:
    """A group does not know a member any more, of which it has heard within the session timeout."""
    for each in history.lost_members:
        if each.silent_ms < history.groups[each.group_id].session_timeout_ms:
            yield f"{each.group_id} does not know {each.process}, which was there {each.silent_ms} ms ago"


MEMBER_CHECKS: dict[str, Callable[[History], Iterator[str]]] = {
    "owned-by-two": owned_by_two,
    "epoch-went-back": epoch_went_back,
    "stale-commit": stale_commit,
    "member-lost": member_lost,
}

"""The anomalies of group members in a history: ownership of partitions, epochs, and commits after losing a
partition, independent of the engine.

A member certainly owns a partition from the response that assigns it until the last request whose response
confirmed the ownership. Later times are not judged: the group may have removed the member.

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

_NEVER = 1 << 62
_Key = tuple[str, "Partition"]  # (group, partition)


@dataclass(slots=True)
class _Tenure:
    """A time during which a member certainly owned a partition."""

    process: str
    member_id: str
    begin_us: int
    end_us: int


def _tenures(history: History) -> dict[_Key, list[_Tenure]]:
    """Return the tenures of each partition in a group, in the order of their starts."""
    found: dict[_Key, list[_Tenure]] = defaultdict(list)
    held: dict[tuple[str, str], dict[Partition, _Tenure]] = defaultdict(dict)  # by (group, process)
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
    """Yield partitions owned by two members of a group at the same time."""
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
    """Yield members whose epoch decreased, or that joined in an epoch older than one seen before in the
    group."""
    newest: dict[str, tuple[int, int, str]] = {}  # by group: (epoch, time of its first response, process)
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
    """Yield the ownerships in groups that are kept for good: a dropped group restarts at epoch 1. An empty
    classic group is also dropped when a member of the consumer protocol joins."""
    since = since_kept(history)
    for each in history.ownerships:
        is_consumer = history.groups[each.group_id].protocols == ("consumer",)
        if is_consumer and each.sent_us > since.get(each.group_id, _NEVER):
            yield each


def stale_commit(history: History) -> Iterator[str]:
    """Yield successful commits of members that had lost the partition to another member before the
    request."""
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
    """Yield members that a group dropped although they sent a request within the session timeout."""
    for each in history.lost_members:
        if each.silent_ms < history.groups[each.group_id].session_timeout_ms:
            yield f"{each.group_id} does not know {each.process}, which was there {each.silent_ms} ms ago"


MEMBER_CHECKS: dict[str, Callable[[History], Iterator[str]]] = {
    "owned-by-two": owned_by_two,
    "epoch-went-back": epoch_went_back,
    "stale-commit": stale_commit,
    "member-lost": member_lost,
}

"""The anomalies of groups in a history: generations, committed offsets, and copies made in transactions by
their members, independent of the engine.

Legal and not reported: a commit that happened without a response; an expired offset, in groups that expire;
generations that restart while a group has never committed anything, because it may then be dropped.

Source: KIP-98, KIP-345, KIP-447.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from txnkafka.testing.simulation.history import FetchedOffset, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnkafka.testing.simulation.history import Assignment, Commit, History

Partition = tuple[str, int]
_NEVER = 1 << 62


def _place(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


# Offsets


def _effect_us(history: History, commit: Commit) -> int:
    """Return the time when a commit certainly counts; never if its outcome is unknown."""
    if commit.acked_us < 0:
        return _NEVER
    if commit.transaction < 0:
        return commit.acked_us
    transaction = history.transactions[commit.transaction]
    return transaction.ended_us if transaction.outcome is Outcome.COMMITTED else _NEVER


def _may_count(history: History, commit: Commit) -> bool:
    """Return True if a commit may have happened."""
    if commit.is_refused:
        return False
    if commit.transaction < 0:
        return True
    return history.transactions[commit.transaction].outcome in (Outcome.COMMITTED, Outcome.UNKNOWN)


def _commits(history: History) -> dict[tuple[str, Partition], list[Commit]]:
    """Return the commits that may have happened, by group and partition, in send order."""
    found: dict[tuple[str, Partition], list[Commit]] = defaultdict(list)
    for commit in sorted(history.commits, key=lambda commit: commit.invoked_us):
        if _may_count(history, commit):
            for partition in commit.offsets:
                found[commit.group_id, partition].append(commit)
    return found


def _shown(history: History) -> Iterator[FetchedOffset]:
    """Yield the offsets fetched by groups, and their final offsets."""
    yield from history.fetched_offsets
    for (group_id, partition), offset in history.final_offsets.items():
        yield FetchedOffset("the end", group_id, partition, offset, True, _NEVER, _NEVER)


def phantom_offset(history: History) -> Iterator[str]:
    """Yield fetched offsets that no client committed, or only an aborted transaction."""
    commits = _commits(history)
    for shown in _shown(history):
        partition = shown.partition
        known = (
            commit.offsets[partition] == shown.offset
            for commit in commits.get((shown.group_id, partition), ()) if commit.invoked_us < shown.at_us
        )  # fmt: skip
        if shown.offset >= 0 and not any(known):
            yield (
                f"{shown.process} gets offset {shown.offset} of {_place(partition)} for {shown.group_id}, "
                "which nobody has committed"
            )


def lost_offset(history: History) -> Iterator[str]:
    """Yield fetched offsets (or missing ones) that an acknowledged commit had replaced."""
    commits = _commits(history)
    for shown in _shown(history):
        partition = shown.partition
        of = commits.get((shown.group_id, partition), [])
        # the newest certain commit at the time of the request
        certain = [commit for commit in of if _effect_us(history, commit) < shown.invoked_us]
        if not certain or (shown.offset < 0 and history.groups[shown.group_id].may_expire):
            continue
        newest = max(certain, key=lambda commit: commit.invoked_us)
        may_be = any(
            commit.offsets[partition] == shown.offset for commit in of
            if _effect_us(history, commit) >= newest.invoked_us and commit.invoked_us < shown.at_us
        )  # fmt: skip
        if not may_be:
            yield (
                f"{shown.process} gets offset {shown.offset} of {_place(partition)} for {shown.group_id}, "
                f"and {newest.process} has committed {newest.offsets[partition]}"
            )


def unstable_offset(history: History) -> Iterator[str]:
    """Yield stable offsets fetched while an open transaction commits another offset."""
    pending: dict[tuple[str, Partition], list[tuple[int, int, Commit]]] = defaultdict(list)
    for commit in history.commits:
        if commit.transaction >= 0 and commit.acked_us >= 0:
            transaction = history.transactions[commit.transaction]
            if transaction.outcome is Outcome.COMMITTED:  # open until its end was requested
                for partition in commit.offsets:
                    pending[commit.group_id, partition].append((commit.acked_us, transaction.end_us, commit))
    for shown in history.fetched_offsets:
        for acked_us, end_us, commit in pending.get((shown.group_id, shown.partition), ()):
            if shown.requires_stable and acked_us < shown.invoked_us and shown.at_us < end_us:
                yield (
                    f"{shown.process} gets offset {shown.offset} of {_place(shown.partition)} for "
                    f"{shown.group_id}, while transaction {commit.transaction} of {commit.process} is open"
                )


# Generations


def since_kept(history: History) -> dict[str, int]:
    """Return the time of each group's first commit, from which on the group is kept."""
    found: dict[str, int] = {}
    for commit in history.commits:
        at_us = _effect_us(history, commit)
        if at_us != _NEVER and not history.groups[commit.group_id].may_expire:
            found[commit.group_id] = min(at_us, found.get(commit.group_id, _NEVER))
    return found


def _kept_assignments(history: History) -> Iterator[Assignment]:
    since = since_kept(history)
    for assignment in history.assignments:
        if not history.groups[assignment.group_id].is_classic:
            continue
        if assignment.at_us > since.get(assignment.group_id, _NEVER):
            yield assignment


def zombie_commit(history: History) -> Iterator[str]:
    """Yield successful commits sent after the member was replaced by a later generation, or by a newer
    process of its instance."""
    newest: dict[str, list[tuple[int, int, str]]] = defaultdict(list)  # (time, generation so far, process)
    instances: dict[tuple[str, str], list[Assignment]] = defaultdict(list)
    for each in _kept_assignments(history):
        of = newest[each.group_id]
        if not of or each.generation > of[-1][1]:
            of.append((each.at_us, each.generation, each.process))
        if each.instance_id is not None:
            instances[each.group_id, each.instance_id].append(each)
    for commit in history.commits:
        is_classic = history.groups[commit.group_id].is_classic
        if commit.acked_us < 0 or commit.generation < 0 or not is_classic:
            continue
        of = newest[commit.group_id]
        before = bisect_left(of, (commit.invoked_us, -1, ""))
        if before and of[before - 1][1] > commit.generation:
            yield (
                f"{commit.process} commits in generation {commit.generation} of {commit.group_id}, and "
                f"{of[before - 1][2]} was in {of[before - 1][1]} before"
            )
        named = instances.get((commit.group_id, commit.instance_id or ""), [])
        own = [each.at_us for each in named if each.member_id == commit.member_id]
        for each in named:
            is_other = each.member_id != commit.member_id and own and each.at_us > max(own)
            if is_other and each.at_us < commit.invoked_us:
                yield f"{commit.process} commits, and {each.process} has its instance {each.instance_id}"
                break


def two_owners(history: History) -> Iterator[str]:
    """Yield partitions with two owners in one generation."""
    owners: dict[tuple[str, int, Partition], tuple[str, str]] = {}
    for each in _kept_assignments(history):
        owner = each.instance_id or each.member_id
        for partition in each.partitions:
            key = each.group_id, each.generation, partition
            there, process = owners.setdefault(key, (owner, each.process))
            if there != owner:
                yield (
                    f"{process} and {each.process} own {_place(partition)} in generation {each.generation} "
                    f"of {each.group_id}"
                )


def group_skip(history: History) -> Iterator[str]:
    """Yield committed offsets above unread records."""
    group_of = history.group_of()
    read: dict[tuple[str, Partition], list[tuple[int, int]]] = defaultdict(list)
    for poll in history.polls:
        if poll.process in group_of:
            read[group_of[poll.process], poll.partition].append((poll.position, poll.end))
    for (group_id, partition), committed in history.final_offsets.items():
        if group_id not in group_of.values():
            continue
        end = 0
        for first, last in sorted(read[group_id, partition]):
            if first > end:
                break
            end = max(end, last)
        if end < committed:
            yield f"{group_id} has committed {committed} of {_place(partition)}, and read up to {end}"


# Copies


def _copies(history: History) -> Iterator[tuple[str, dict[Partition, Counter[int]]]]:
    """Yield each copying group with the number of copies per offset, by partition."""
    for group in history.groups.values():
        if group.copies_to is None:
            continue
        found: dict[Partition, Counter[int]] = defaultdict(Counter)
        for (is_committed, partition), values in history.final.items():
            if is_committed and partition[0] == group.copies_to:
                for number in dict.fromkeys(number for _, number in values):
                    source = history.sends[number].source if number < len(history.sends) else None
                    if source is not None:
                        found[source[0]][source[1]] += 1
        yield group.group_id, found


def copied_twice(history: History) -> Iterator[str]:
    """Yield records with two committed copies."""
    for group_id, found in _copies(history):
        if history.groups[group_id].may_expire:
            continue
        for partition, offsets in found.items():
            for offset, count in offsets.items():
                if count > 1:
                    yield f"{group_id} has copied offset {offset} of {_place(partition)} {count} times"


def not_copied(history: History) -> Iterator[str]:
    """Yield committed records without a committed copy at the end, and copies of uncommitted records."""
    for group_id, found in _copies(history):
        sources = {
            partition for (group, partition) in history.final_offsets if group == group_id
        } | found.keys()  # fmt: skip
        for partition in sorted(sources):
            there = {offset for offset, _ in history.final.get((True, partition), ())}
            for offset in sorted(there - found[partition].keys()):
                yield f"{group_id} has not copied offset {offset} of {_place(partition)}"
            for offset in sorted(found[partition].keys() - there):
                yield f"{group_id} has copied offset {offset} of {_place(partition)}, where no record is"


GROUP_CHECKS: dict[str, Callable[[History], Iterator[str]]] = {
    "phantom-offset": phantom_offset,
    "lost-offset": lost_offset,
    "unstable-offset": unstable_offset,
    "zombie-commit": zombie_commit,
    "two-owners": two_owners,
    "group-skip": group_skip,
    "copied-twice": copied_twice,
    "not-copied": not_copied,
}

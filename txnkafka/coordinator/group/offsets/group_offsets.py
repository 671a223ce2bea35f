"""``GroupOffsets``: the committed offsets of the groups in one partition of ``__consumer_offsets``.

Records are kept encoded, and decoded on demand, so that a hundred thousand offsets load in the time of
reading them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping

from txnkafka.coordinator.group.group_requests import CommittedOffset
from txnkafka.coordinator.group.offsets.committed_offsets import OFFSET_COMMIT_KEYS, Offsets
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.records.group_log import GroupOffset, decode_group_log, encode_offset_commit_key

_VERSION = 2  # bytes of the version of a key
_LENGTH = 2  # bytes of the length before a string


class GroupOffsets:
    """Offsets by group; only ``replay`` changes them. A name is a key without its version; it begins with
    the length and the name of the group."""

    def __init__(self) -> None:
        self._offsets = Offsets()
        self._names: dict[bytes, dict[bytes, None]] = {}  # by group

    @property
    def groups(self) -> Iterator[str]:
        """Yield the groups with an offset, committed or pending."""
        for begin in self._names:
            yield begin[_LENGTH:].decode(errors="replace")

    def replay(self, event: LogEvent) -> None:
        """Apply the next record or end marker of the log."""
        ended = list(self._offsets.pending.get(event.producer_id, ())) if event.committed is not None else []
        self._offsets.replay(event)
        for name in ended:
            self._tidy(name)
        if event.key is not None and event.key[:_VERSION] in OFFSET_COMMIT_KEYS:
            name = event.key[_VERSION:]
            self._names.setdefault(_begin_of(name), {})[name] = None
            self._tidy(name)

    def _tidy(self, name: bytes) -> None:
        """Forget a name without an offset."""
        if name in self._offsets.committed or self._is_pending(name):
            return
        begin = _begin_of(name)
        names = self._names.get(begin, {})
        names.pop(name, None)
        if not names:
            self._names.pop(begin, None)

    def fetch(self, group: str, partition: TopicPartition, *, is_stable_wanted: bool) -> CommittedOffset:
        """Return the committed offset of a partition; with ``is_stable_wanted``, UNSTABLE_OFFSET_COMMIT
        while an open transaction commits another one (KIP-447)."""
        name = encode_offset_commit_key(group, *partition)[_VERSION:]
        if is_stable_wanted and self._is_pending(name):
            return CommittedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        found = self._decoded(name)
        if found is None:
            return CommittedOffset()
        return CommittedOffset(found.offset, found.leader_epoch, found.metadata, topic_id=found.topic_id)

    def committed(self, group: str) -> Iterator[GroupOffset]:
        """Yield the committed offsets of a group."""
        for name in self._names_of(group):
            found = self._decoded(name)
            if found is not None:
                yield found

    @property
    def committed_count(self) -> int:
        """The number of committed offsets of all groups."""
        return len(self._offsets.committed)

    def all_committed(self) -> Iterator[GroupOffset]:
        """Yield the committed offsets of all groups, each decoded on its turn; a new commit does not
        change their order."""
        for names in self._names.values():
            for name in names:
                found = self._decoded(name)
                if found is not None:
                    yield found

    def has_pending(self, group: str) -> bool:
        """Return whether an open transaction commits offsets of the group."""
        return any(map(self._is_pending, self._names_of(group)))

    def is_pending(self, group: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction commits this offset."""
        return self._is_pending(encode_offset_commit_key(group, *partition)[_VERSION:])

    def keys(self, group: str) -> list[bytes]:
        """Return the keys of all offsets of a group, for tombstones."""
        return [OFFSET_COMMIT_KEYS[1] + name for name in self._names_of(group)]

    def keys_of(self, ends: Collection[bytes]) -> list[bytes]:
        """Return the keys of the offsets of some partitions (see ``ends_of``), in all groups. For each
        group the shorter list is searched: its offsets, or the partitions."""
        found = list[bytes]()
        for begin, names in self._names.items():
            if len(names) < len(ends):
                found += [name for name in names if name[len(begin) :] in ends]
            else:
                found += [begin + end for end in ends if begin + end in names]
        return [OFFSET_COMMIT_KEYS[1] + name for name in found]

    def keys_of_removed(self, removed: Mapping[str, str], there: Container[str]) -> list[bytes]:
        """Return the keys of the offsets of ``removed`` topics (ids with their names), in all groups. For
        a topic that exists again (in ``there``), only offsets with the removed topic's id are included."""
        names, found = set(removed.values()), list[bytes]()
        for begin, of_group in self._names.items():
            for name in of_group:
                topic = _begin_of(name[len(begin) :])[_LENGTH:].decode(errors="replace")
                if topic not in names:
                    continue
                committed = self._decoded(name) if topic in there else None
                if topic not in there or (committed is not None and committed.topic_id in removed):
                    found.append(OFFSET_COMMIT_KEYS[1] + name)
        return found

    def _names_of(self, group: str) -> Iterable[bytes]:
        encoded = group.encode()
        return self._names.get(len(encoded).to_bytes(_LENGTH, "big") + encoded, ())

    def _is_pending(self, name: bytes) -> bool:
        return name in self._offsets.producers

    def _decoded(self, name: bytes) -> GroupOffset | None:
        record = self._offsets.committed.get(name)
        if record is None:
            return None
        return GroupOffset.of(decode_group_log(OFFSET_COMMIT_KEYS[1] + name, record.value))


def ends_of(topic: str, numbers: Iterable[int]) -> Mapping[bytes, None]:
    """Return the parts of the offset names of partitions that follow the name of the group."""
    keys = (encode_offset_commit_key("", topic, number) for number in numbers)
    return dict.fromkeys(key[_VERSION + _LENGTH :] for key in keys)


def _begin_of(name: bytes) -> bytes:
    return name[: _LENGTH + int.from_bytes(name[:_LENGTH], "big")]

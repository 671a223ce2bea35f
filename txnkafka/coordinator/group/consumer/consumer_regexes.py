"""``ConsumerRegexes``: resolves the regular expressions that consumer groups subscribe with.

The heartbeat that brings a new pattern compiles it. After that heartbeat, the patterns of the group are
matched against all topics, and the log gets the matching topics. They are matched again after the creation of
topics, at most once in ten seconds, and when the last match is older than the refresh interval. Kafka has a
thread for this; here the patterns of all groups are matched in small steps, one group after another.

Source: GroupMetadataManager.maybeUpdateRegularExpressions and handleRegularExpressionsResult,
TopicRegexResolver (KIP-848).
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.group.consumer import consumer_records
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_records import Record
from txnkafka.coordinator.group.consumer.member_update import MemberUpdate, hash_of
from txnkafka.coordinator.group.consumer.subscriptions import ResolvedRegex, Subscriptions
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.coordinator.group.group_host import GroupHost
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.re2_pattern import PatternError, Re2Pattern
from txnkafka.error_codes import ErrorCode

LEAST_INTERVAL_MS: Final = 10_000
MOST_STEPS_AT_ONCE: Final = 1_000_000  # at most about 5 ms
_TIMER: Final = ("regexes",)


class RegexChange(enum.Enum):
    """The effect of a heartbeat on its member's pattern."""

    NONE = "none"
    UPDATED = "updated"  # its topics are unknown until it is resolved
    RESOLVED = "resolved"


@dataclass
class ConsumerRegexes:
    """The patterns of all groups. Time, timers and settings come from ``clock``. ``_pending`` has the
    groups to match; they share one timer, which is set again after each step."""

    clock: ClassicRebalance
    log: GroupLog
    host: GroupHost
    _pending: dict[str, tuple[ConsumerGroup, Iterator[int]]] = field(default_factory=dict)

    def update(self, update: MemberUpdate) -> RegexChange:
        """Handle the pattern of a member: compile a new one, and schedule the resolution if it is due.
        Raises GroupError with INVALID_REGULAR_EXPRESSION."""
        group, old, new = update.group, update.old.regex, update.new.regex
        change, is_first = RegexChange.NONE, False
        if old != new:
            if old and group.subscribers[old] == 1:
                update.records.append(consumer_records.regex_record(group.group_id, old, None))
            change = self._change(group, old, new)
            is_first = bool(new) and not group.subscribers[new or ""]
        self._maybe_refresh(group, old, new, is_first=is_first)
        return change

    def _change(self, group: ConsumerGroup, old: str | None, new: str | None) -> RegexChange:
        if not new:
            return RegexChange.RESOLVED if old else RegexChange.UPDATED
        if not group.subscribers[new]:
            _compiled(new)
            return RegexChange.UPDATED
        return RegexChange.RESOLVED if new in group.regexes else RegexChange.UPDATED

    def _maybe_refresh(
        self, group: ConsumerGroup, old: str | None, new: str | None, *, is_first: bool
    ) -> None:
        key = ("regex", group.group_id)
        is_pending = self.clock.timers.is_set(key) or self._is_pending(group)
        if is_pending or not (is_first or group.subscribers):
            return
        last = next(iter(group.regexes.values()), None)
        since_ms = -1 if last is None else self.clock.now_ms - last.timestamp  # <0: clock set back
        if 0 <= since_ms <= LEAST_INTERVAL_MS:
            return
        wanted = group.subscribers.copy()
        wanted.update([new] if new else [])
        wanted.subtract([old] if old else [])
        regexes = sorted(regex for regex, count in wanted.items() if count > 0)
        refresh_ms = self.clock.config.consumer.regex_refresh_interval_ms
        is_old = not 0 <= since_ms <= refresh_ms
        has_new_topics = group.resolved < self.host.image.topic_creations
        if regexes and (is_first or is_old or has_new_topics or len(regexes) != len(group.regexes)):
            self.clock.later(key, 0, lambda: self._begin(group.group_id, regexes))

    def _begin(self, group_id: str, regexes: Iterable[str]) -> None:
        """Begin to match, after the heartbeat was answered; a new group exists only from then on."""
        group = self.log.find(group_id)
        if isinstance(group, ConsumerGroup):
            self._pending[group_id] = group, self._pieces(group, regexes)
            if not self.clock.timers.is_set(_TIMER):
                self._go_on()

    def _is_pending(self, group: ConsumerGroup) -> bool:
        there = self._pending.get(group.group_id)
        return there is not None and there[0] is group

    def _go_on(self) -> None:
        """Match for some steps, or to the end of one group.

        The remaining patterns, and groups added in the meantime, follow after other work, so that other work
        waits for one step at most, however many patterns exist."""
        if not self._pending:
            return
        group_id = next(iter(self._pending))
        group, pieces = self._pending.pop(group_id)
        steps = 0
        try:
            for taken in pieces if self.log.find(group_id) is group else ():
                steps += taken
                if steps >= MOST_STEPS_AT_ONCE:
                    self._pending[group_id] = group, pieces
                    break
        finally:
            self.clock.later(_TIMER, 0, self._go_on)

    def _pieces(self, group: ConsumerGroup, regexes: Iterable[str]) -> Iterator[int]:
        """Match the patterns that still have a subscriber, and write the result; yield the cost of each
        name. Topics created during the match are included in the next one."""
        image = self.host.image
        names, version, creations = sorted(image.topics), self.host.image_version, image.topic_creations
        found: dict[str, tuple[str, ...]] = {}
        for regex in regexes:
            if group.subscribers[regex]:
                found[regex] = yield from _matched(regex, names)
        now_ms = self.clock.now_ms
        resolved = {
            regex: ResolvedRegex(topics, version, now_ms)
            for regex, topics in found.items()
            if group.subscribers[regex]
        }
        self._write(group, resolved, creations)

    def _write(self, group: ConsumerGroup, resolved: Mapping[str, ResolvedRegex], creations: int) -> None:
        image = self.host.image
        records: list[Record] = [
            consumer_records.regex_record(group.group_id, regex, each) for regex, each in resolved.items()
        ]
        known, changes = group.regexes, image.topic_changes
        is_new = any(known.get(regex, _NOTHING).topics != each.topics for regex, each in resolved.items())
        subscriptions = Subscriptions(group.members.values(), {**group.regexes, **resolved})
        metadata_hash = hash_of(subscriptions, image)
        is_new = is_new or metadata_hash != group.metadata_hash
        if is_new:
            records.append(consumer_records.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        if self.log.append(group.group_id, records, lambda _: None):
            group.resolved = creations
            group.checked = changes if is_new else group.checked


_NOTHING: Final = ResolvedRegex((), 0, 0)


def _compiled(regex: str) -> Re2Pattern:
    try:
        return Re2Pattern(regex)
    except PatternError as error:
        text = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error


def _matched(regex: str, names: Iterable[str]) -> Generator[int, None, tuple[str, ...]]:
    """Return the names that a pattern matches; none for a pattern that is invalid here, which another broker
    may have accepted. Yields the steps of each name."""
    found = []
    try:
        pattern = Re2Pattern(regex)
    except PatternError:
        return ()
    for name in names:
        if pattern.fullmatch(name):
            found.append(name)
        yield pattern.steps(name)
    return tuple(found)

"""``ConsumerRegexes``: which topics the patterns of consumer groups match.

A new pattern is compiled with the heartbeat that brings it, and matched against all topics behind it, with
the other patterns of the group; what they matched is in the log. They are matched again when topics were
created, at most once in ten seconds, and when that is long ago.

Source: GroupMetadataManager.maybeUpdateRegularExpressions and handleRegularExpressionsResult,
TopicRegexResolver (KIP-848).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from txnkafka.coordinator import consumer_records
from txnkafka.coordinator.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.cluster_image import ClusterImage
from txnkafka.coordinator.consumer_group import ConsumerGroup
from txnkafka.coordinator.consumer_records import Record
from txnkafka.coordinator.group_error import GroupError
from txnkafka.coordinator.group_host import GroupHost
from txnkafka.coordinator.group_log import GroupLog
from txnkafka.coordinator.id_pattern import IdPattern, PatternError
from txnkafka.coordinator.member_update import MemberUpdate, hash_of
from txnkafka.coordinator.subscriptions import ResolvedRegex, Subscriptions
from txnkafka.error_codes import ErrorCode

__all__ = ["ConsumerRegexes", "RegexChange"]

LEAST_INTERVAL_MS: Final = 10_000


class RegexChange(enum.Enum):
    """What a heartbeat did to the pattern of its member."""

    NONE = "none"
    UPDATED = "updated"  # the topics are not known yet
    RESOLVED = "resolved"


@dataclass
class ConsumerRegexes:
    """The time, the timers and the settings are those of ``clock``."""

    clock: ClassicRebalance
    log: GroupLog
    host: GroupHost

    def update(self, update: MemberUpdate) -> RegexChange:
        """The member may have another pattern, and those of its group may have to be matched. Raises
        GroupError with INVALID_REGULAR_EXPRESSION."""
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
        if not (is_first or group.subscribers) or self.clock.timers.is_set(key):
            return
        last = next(iter(group.regexes.values()), None)
        since_ms = -1 if last is None else self.clock.now_ms - last.timestamp  # or the clock was put back
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
            self.clock.later(key, 0, lambda: self._refresh(group.group_id, regexes))

    def _refresh(self, group_id: str, regexes: Iterable[str]) -> None:
        """Match the patterns that somebody is still subscribed to, and write what they match."""
        group = self.log.group(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        image, now_ms = self.host.image, self.clock.now_ms
        version, creations, changes = self.host.image_version, image.topic_creations, image.topic_changes
        resolved = {
            regex: ResolvedRegex(_matched(regex, image), version, now_ms)
            for regex in regexes
            if group.subscribers[regex]
        }
        records: list[Record] = [
            consumer_records.regex_record(group_id, regex, each) for regex, each in resolved.items()
        ]
        known = group.regexes
        is_new = any(known.get(regex, _NOTHING).topics != each.topics for regex, each in resolved.items())
        subscriptions = Subscriptions(group.members.values(), {**group.regexes, **resolved})
        metadata_hash = hash_of(subscriptions, image)
        is_new = is_new or metadata_hash != group.metadata_hash
        if is_new:
            records.append(consumer_records.epoch_record(group_id, group.epoch + 1, metadata_hash))
        if self.log.append(group_id, records, lambda _: None):
            group.resolved = creations
            group.checked = changes if is_new else group.checked


_NOTHING: Final = ResolvedRegex((), 0, 0)


def _compiled(regex: str) -> IdPattern:
    try:
        return IdPattern(regex)
    except PatternError as error:
        text = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error


def _matched(regex: str, image: ClusterImage) -> tuple[str, ...]:
    """The topics that a pattern matches, in ascending order; none where that takes too long."""
    try:
        pattern = IdPattern(regex)
        return tuple(sorted(name for name in image.topics if pattern.fullmatch(name)))
    except PatternError:
        return ()

"""``Subscriptions``: the number of members of a consumer group subscribed to each topic name and each
pattern.

Source: ConsumerGroup.subscriptionType and computeSubscribedTopicNames, SubscriptionCount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matched in a version of the registry, in ascending order."""

    topics: tuple[str, ...]
    version: int
    timestamp: int


class Subscriptions:
    """The subscriptions of some members; patterns without a subscriber are left out."""

    def __init__(self, members: Iterable[ConsumerMember], resolved: Mapping[str, ResolvedRegex]) -> None:
        self.members = 0
        self.by_name: Counter[str] = Counter()
        self.regexes: Counter[str] = Counter()
        self.by_regex: Counter[str] = Counter()
        for member in members:
            self.members += 1
            self.by_name.update(member.topics)
            if member.regex:
                self.regexes[member.regex] += 1
        for regex in self.regexes:
            if regex in resolved:
                self.by_regex.update(resolved[regex].topics)

    @property
    def topics(self) -> set[str]:
        """The names of all topics."""
        return {*self.by_name, *self.by_regex}

    @property
    def is_homogeneous(self) -> bool:
        """Return whether all members are subscribed to the same topics, as far as the counts show."""
        if not self.regexes:
            return all(count == self.members for count in self.by_name.values())
        (count, *_) = self.regexes.values()
        is_one = count == self.members and not self.by_name
        return is_one and all(each == 1 for each in self.by_regex.values())

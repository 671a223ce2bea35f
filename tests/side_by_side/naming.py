"""Names for what two brokers choose differently: ids of producers, topics and members, fetch sessions,
prefixes of names.

The names are numbers in the order of appearance, so that two brokers that behave alike give equal answers
whatever ids they choose. A text that begins with ``~`` begins with the prefix of the conversation on the
wire: every conversation has its own topics and transactional ids.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import Final

from txnkafka.wire.schema import ZERO_UUID

__all__ = ["FOREIGN", "NOW", "TIMESTAMP", "Naming", "topic_uuid"]

FOREIGN: Final = 10**15
"""A producer id that no broker gives; those above it are other ones."""
NOW: Final = "now"
TIMESTAMP: Final = 1_600_000_000_000
"""The name of the time an hour before the conversation; the next milliseconds are those behind it."""
_FIRST_PRODUCER: Final = 10**12
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_NAMED_MS: Final = 1000


def topic_uuid(number: int) -> str:
    """The name of a topic id."""
    return urlsafe_b64encode(b"topic-id" + number.to_bytes(8))[:22].decode()


_ANY_TOPIC: Final = topic_uuid(0)[:10]
_GIVEN_MEMBER: Final = ("side by side-", "instance-")
"""What member ids begin with: the id of the client, or that of the instance."""
_UUID: Final = re.compile(r"[\w-]{22}|[0-9a-f]{32}")  # other member ids are nothing else


def _member(number: int) -> str:
    return f"member {number}"


class Naming:
    """One conversation with one broker."""

    def __init__(self, prefix: str, now_ms: int) -> None:
        self.prefix, self._now_ms = prefix, now_ms
        self._earlier_ms = now_ms - _HOUR_MS
        self._producers = _Numbers()
        self._topics = _Numbers()
        self._sessions = _Numbers()
        self._members = _Numbers()

    # What the wire has, from the data

    def actual_text(self, text: str) -> str:
        return self.prefix + text[1:] if text.startswith("~") else text

    def actual_producer(self, name: int) -> int:
        return self._producers.actual(name - _FIRST_PRODUCER, name)

    def actual_member(self, name: str) -> str:
        names = {_member(number): actual for number, actual in enumerate(self._members.all)}
        return str(names.get(name, name))

    def actual_topic(self, name: str) -> str:
        names = {topic_uuid(number): actual for number, actual in enumerate(self._topics.all)}
        return str(names.get(name, name))

    def actual_session(self, name: int) -> int:
        return self._sessions.actual(name - 1, name)

    def actual_time(self, name: int) -> int:
        passed = name - TIMESTAMP
        return self._earlier_ms + passed if 0 <= passed < _NAMED_MS else name

    # What the data have, from the wire

    def text(self, actual: str) -> str:
        is_of_this = self.prefix and actual.startswith(self.prefix)
        return "~" + actual[len(self.prefix) :] if is_of_this else actual

    def producer(self, actual: int) -> int:
        is_given = 0 < actual < FOREIGN
        return _FIRST_PRODUCER + self._producers.of(actual) if is_given else actual

    def member(self, actual: str) -> str:
        is_given = actual.startswith(_GIVEN_MEMBER) or _UUID.fullmatch(actual)
        return _member(self._members.of(actual)) if is_given else actual

    def topic(self, actual: str) -> str:
        is_given = actual != ZERO_UUID and not actual.startswith(_ANY_TOPIC)
        return topic_uuid(self._topics.of(actual)) if is_given else actual

    def session(self, actual: int) -> int:
        return 1 + self._sessions.of(actual) if actual > 0 else actual

    def time(self, actual: int) -> int | str:
        passed = actual - self._earlier_ms
        if 0 <= passed < _NAMED_MS:
            return TIMESTAMP + passed
        return NOW if abs(actual - self._now_ms) < _DAY_MS else actual


class _Numbers:
    """Values in the order of their appearance."""

    def __init__(self) -> None:
        self.all: list[int | str] = []

    def of(self, value: int | str) -> int:
        if value not in self.all:
            self.all.append(value)
        return self.all.index(value)

    def actual(self, number: int, otherwise: int) -> int:
        return int(self.all[number]) if 0 <= number < len(self.all) else otherwise

"""The words of a command: ``A send t-0 "v 1" epoch=3``."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from txnkafka.model import TopicPartition

__all__ = ["Arguments", "milliseconds", "partition_of"]

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
OPTION = re.compile(r"([a-z][a-z_.0-9]*)=(.*)")


@dataclass
class Arguments:
    """Words, and options of the form NAME=VALUE."""

    words: list[str]
    options: dict[str, str]

    @classmethod
    def of(cls, command: str) -> Arguments:
        words, options = [], {}
        for word in shlex.split(command):
            match = OPTION.fullmatch(word)
            if match:
                options[match[1]] = match[2]
            else:
                words.append(word)
        return cls(words, options)

    def without_first(self) -> Arguments:
        return Arguments(self.words[1:], self.options)

    def text(self, name: str, default: str) -> str:
        return self.options.get(name, default)

    def number(self, name: str, default: int) -> int:
        return int(self.options.get(name, default))

    def milliseconds(self, name: str, default: int) -> int:
        return milliseconds(self.options[name]) if name in self.options else default


def milliseconds(text: str) -> int:
    """The number of milliseconds of ``61s`` or ``-7d``."""
    match = re.fullmatch(r"(-?\d+)(ms|s|m|h|d)", text)
    if match is None:
        raise ValueError(f"{text!r} is no time: 500ms, 61s, 5m, 1h, 7d")
    return int(match[1]) * UNITS[match[2]]


def partition_of(text: str) -> TopicPartition:
    """The partition that ``t-0`` names."""
    topic, dash, number = text.rpartition("-")
    if not dash:
        raise ValueError(f"{text!r} is no partition: t-0")
    return TopicPartition(topic, int(number))

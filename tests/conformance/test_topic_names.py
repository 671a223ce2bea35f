"""Kafka allows the same names of topics."""

from __future__ import annotations

import random
import subprocess

from tests.conformance.kafka_log import OPTIONS, compiled
from txnkafka.errors import InvalidTopicError
from txnkafka.model import validate_topic

SEED = 249
SPECIAL = [
    "",
    ".",
    "..",
    "...",
    "a\n",
    "\n",
    "\r",
    " ",
    "a b",
    "\u00fc",
    "\u0661",
    "\uff41",
    "\u017f",
    "a\0",
    "-",
    "_",
]
LENGTHS = ["x" * length for length in (1, 248, 249, 250, 1000)]


def names() -> list[str]:
    chosen = random.Random(SEED)
    every = [chr(number) for number in range(0x300)]
    mixed = ["".join(chosen.choices("abzAZ09._-/+ :\u00e9", k=chosen.randrange(1, 4))) for _ in range(500)]
    return [*SPECIAL, *LENGTHS, *every, *mixed]


def is_valid(name: str) -> bool:
    try:
        validate_topic(name)
    except InvalidTopicError:
        return False
    return True


def test_topics_may_have_the_same_names() -> None:
    command = ["java", *OPTIONS, "-cp", compiled(), "TopicNames"]
    lines = "".join(name.encode("utf-16-be").hex() + "\n" for name in names())
    run = subprocess.run(command, input=lines, check=True, stdout=subprocess.PIPE, text=True)
    answers = dict(zip(names(), (line == "true" for line in run.stdout.splitlines()), strict=True))
    assert {name: is_valid(name) for name in names()} == answers
    assert 100 < sum(answers.values()) < len(answers) - 100

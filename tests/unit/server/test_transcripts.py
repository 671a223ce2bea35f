"""The broker answers what Apache Kafka has answered; transcripts/README.md describes their recording."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.side_by_side.brokers import create_topics, warm_up
from tests.side_by_side.differences import ALLOWED
from tests.side_by_side.sides import Conversation
from tests.side_by_side.transcripts import DIRECTORY, Transcript, read, replayed
from tests.unit.server.memory_side import MemorySide

FILES = ("tools", "configs", "consumers", "states", "random")


def conversation(transcript: Transcript) -> Conversation:
    """With a broker that has nothing but the topic of the transcript."""
    side = MemorySide()
    warm_up(side)
    ((topic_id,),) = create_topics([side], [f"{transcript.prefix}t"])
    found = Conversation(side, transcript.prefix)
    found.naming.topic(topic_id)
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_answers_are_those_of_kafka(name: str) -> None:
    used: Counter[str] = Counter()
    for transcript in read(DIRECTORY / f"{name}.jsonl"):
        for one in replayed(transcript, conversation(transcript), used):
            lines = [f"{transcript.name}: {one.request}", *map(str, one.differences)]
            raise AssertionError("\n  ".join(lines))
    assert used.keys() <= {rule.name for rule in ALLOWED}


def test_a_wrong_answer_is_noticed() -> None:
    transcript = next(read(DIRECTORY / "random.jsonl"))
    changed = []
    for request, answer in transcript.exchanges:
        if request.api == "InitProducerId":
            answer = {**answer, "producer_epoch": 7}
        changed.append((request, answer))
    found = replayed(transcript._replace(exchanges=changed), conversation(transcript), Counter())
    assert [(one.request.api, one.differences[0].path) for one in found][:1] == [
        ("InitProducerId", "producer_epoch")
    ]

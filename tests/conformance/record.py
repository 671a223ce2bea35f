"""``python -m tests.conformance.record``: writes the transcripts of tests/unit/server/transcripts anew."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tests.conformance.both import both
from tests.side_by_side import consumer_groups, records, resource_configs, topics
from tests.side_by_side.brokers import Brokers
from tests.side_by_side.matrix import cases
from tests.side_by_side.messages import Request
from tests.side_by_side.pair import Compared
from tests.side_by_side.random_steps import random_steps
from tests.side_by_side.transcripts import DIRECTORY, Transcript, transcript_of, write

__all__: list[str] = []

SEEDS = range(40)
LEFT_OUT = {
    "from classic to consumer and back": "JSON has no bytes",
    "a member that nobody knows": "JSON has no bytes",
    "offsets of a deleted topic": "more than a thousand requests let time pass",
}
CONSUMERS = {name: script for name, script in consumer_groups.SCRIPTS.items() if name not in LEFT_OUT}
EVERY = 97  # of the cases of the matrix: a prime, so that all kinds of them are met


def main() -> None:
    """Ask both, because what Kafka has to be asked again is known from our answer."""
    with tempfile.TemporaryDirectory() as directory, both(Path(directory)) as running:
        brokers = running.brokers
        write(DIRECTORY / "tools.jsonl", _tools(brokers, {**topics.SCRIPTS, **records.SCRIPTS}))
        write(DIRECTORY / "configs.jsonl", _tools(brokers, resource_configs.SCRIPTS))
        write(DIRECTORY / "consumers.jsonl", _tools(brokers, CONSUMERS))
        write(DIRECTORY / "states.jsonl", _states(brokers))
        write(DIRECTORY / "random.jsonl", _random(brokers))
    for path in sorted(DIRECTORY.glob("*.jsonl")):
        print(f"{path.name}: {path.stat().st_size} bytes")


def _tools(
    brokers: Brokers, scripts: Mapping[str, Callable[[], Iterator[Request]]]
) -> Iterator[Transcript]:
    for name, requests in scripts.items():
        (pair,) = brokers.pairs(1)
        compared = [brokers.ask(pair, request) for request in _few(requests())]
        yield _checked(name, pair.ours.naming.prefix, compared)


def _few(requests: Iterable[Request]) -> Iterator[Request]:
    """Without those that make long lines, and what asks for the topics of all conversations."""
    for request in requests:
        asks_for_all = request.api == "Metadata" and not request.fields["topics"]
        asks_for_all = asks_for_all or request.api == "ListGroups"
        if len(str(request)) < 1000 and not asks_for_all:
            yield request


def _states(brokers: Brokers) -> Iterator[Transcript]:
    for number, case in enumerate(cases()):
        if number % EVERY == 0 and len(case.steps) < 50:
            (pair,) = brokers.pairs(1)
            yield _checked(case.state, pair.ours.naming.prefix, brokers.run(pair, case.steps))


def _random(brokers: Brokers) -> Iterator[Transcript]:
    for seed in SEEDS:
        (pair,) = brokers.pairs(1)
        yield _checked(f"seed {seed}", pair.ours.naming.prefix, brokers.run(pair, random_steps(seed)))


def _checked(name: str, prefix: str, compared: list[Compared]) -> Transcript:
    for each in compared:
        if each.differences:
            raise RuntimeError(f"{name}: {each.request}: {each.differences}")
    return transcript_of(name, prefix, compared)


if __name__ == "__main__":
    main()

"""The same requests to Apache Kafka and to ``txnkafka serve``: the same answers, field by field.

Ids, ports and times that two brokers choose differently have names (tests/side_by_side/naming.py). What
differs on purpose is in tests/side_by_side/differences.py with its reason, and in DIVERGENCES.md; a rule
there that explains nothing fails the run. A random sequence that fails is shortened and printed;
``SIDE_BY_SIDE_SEED`` is the first seed, ``SIDE_BY_SIDE_SEQUENCES`` their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from tests.conformance.both import SUMMARY, both
from tests.side_by_side import records, topics
from tests.side_by_side.brokers import Brokers
from tests.side_by_side.differences import ALLOWED
from tests.side_by_side.frames import FRAMES
from tests.side_by_side.matrix import EXHAUSTED, STATES, cases, slow_cases
from tests.side_by_side.messages import BY_NAME
from tests.side_by_side.pair import Compared
from tests.side_by_side.random_steps import random_steps
from tests.side_by_side.story import Step, Story
from txnkafka.server.handlers import SERVED

FIRST_SEED = int(os.environ.get("SIDE_BY_SIDE_SEED", "0"))
SEQUENCES = int(os.environ.get("SIDE_BY_SIDE_SEQUENCES", "5000"))
SCRIPTS = {**topics.SCRIPTS, **records.SCRIPTS}
AT_ONCE = 60  # conversations whose topics are created by one request
MOST_SHOWN = 5  # failures; what is behind them is often the same


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both, on directories of their own."""
    with both(tmp_path_factory.mktemp("side-by-side")) as found:
        yield found


def told(compared: Compared, steps: Sequence[object]) -> str:
    """A failure, to be read by a person."""
    lines = [f"  {step}" for step in steps]
    lines += [f"{compared.request}", *(f"  {each}" for each in compared.differences)]
    return "\n".join(lines)


@pytest.mark.parametrize("name", SCRIPTS)
def test_tools(brokers: Brokers, name: str) -> None:
    (pair,) = brokers.pairs(1)
    compared = [brokers.ask(pair, request) for request in SCRIPTS[name]()]
    brokers.used += pair.used
    failures = [each for each in compared if each.differences]
    assert not failures, "\n".join(told(each, ()) for each in failures[:MOST_SHOWN])


@pytest.mark.parametrize("name", FRAMES)
def test_frames(brokers: Brokers, name: str) -> None:
    """The connection is closed by both, or answered by both; ApiVersions has other APIs."""
    ours, kafka = brokers.exchanged(FRAMES[name])
    assert (ours is None) == (kafka is None)
    if ours is not None and kafka is not None:
        assert ours[:6] == kafka[:6]  # the correlation id and the error, or the tags of the header and more


@pytest.mark.parametrize("state", STATES)
def test_every_request_in_every_state(brokers: Brokers, state: str) -> None:
    failures = []
    for part in parts([case.steps for case in cases() if case.state == state]):
        pairs = brokers.pairs(len(part))
        for pair, steps in zip(pairs, part, strict=True):
            compared = brokers.run(pair, steps, to_the_end=len(steps) > 50)
            failures += [told(each, steps[-8:]) for each in compared if each.differences]
        brokers.forget(pairs)
    assert not failures, "\n".join(failures[:MOST_SHOWN])


def test_states_that_take_time(brokers: Brokers) -> None:
    """All conversations get into their state at the same time."""
    failures, found = [], list(slow_cases())
    pairs, stories = brokers.pairs(len(found)), [Story() for _ in found]
    for case, pair, story in zip(found, pairs, stories, strict=True):
        brokers.run(pair, case.before, story=story)
    for case, pair, story in zip(found, pairs, stories, strict=True):
        compared = brokers.run(pair, case.steps[len(case.before) :], story=story)
        failures += [f"{case.state}: {told(each, case.steps)}" for each in compared if each.differences]
    brokers.forget(pairs)
    assert not failures, "\n".join(failures[:MOST_SHOWN])


@pytest.mark.parametrize("name", EXHAUSTED)
def test_exhausted_epochs(brokers: Brokers, name: str) -> None:
    (pair,) = brokers.pairs(1)
    init = Step("init", 5, name)
    pair.repeat(Story().request(init), 32764)
    compared = brokers.run(pair, (init, *EXHAUSTED[name]), to_the_end=True)
    assert compared[0].kafka["producer_epoch"] == 32764
    failures = [told(each, ()) for each in compared if each.differences]
    assert not failures, "\n".join(failures[:MOST_SHOWN])


def test_random_sequences(brokers: Brokers) -> None:
    failures, before = [], brokers.conversations
    for seeds in parts(range(FIRST_SEED, FIRST_SEED + SEQUENCES)):
        pairs = brokers.pairs(len(seeds))
        for pair, seed in zip(pairs, seeds, strict=True):
            steps = random_steps(seed)
            if len(failures) < MOST_SHOWN and brokers.run(pair, steps)[-1].differences:
                failures.append(shortened(brokers, seed, steps))
        brokers.forget(pairs)
    count = brokers.conversations - before
    SUMMARY.append(f"side by side: {count} random sequences from seed {FIRST_SEED} on")
    assert not failures, "\n".join(failures)
    assert count >= 5000 or "SIDE_BY_SIDE_SEQUENCES" in os.environ


def shortened(brokers: Brokers, seed: int, steps: Sequence[Step]) -> str:
    """A failing sequence without the steps that it fails without."""
    left, compared = brokers.shortened(steps)
    return f"seed {seed}:\n{told(compared[-1], left)}"


def parts(everything: Sequence[Any]) -> Iterator[list[Any]]:
    """``AT_ONCE`` at a time."""
    left = iter(everything)
    while part := list(islice(left, AT_ONCE)):
        yield part


def test_everything_was_asked_and_every_rule_was_needed(brokers: Brokers) -> None:
    """After the others: all APIs in all versions, and no difference is allowed that there is not."""
    wanted = {
        (api.name, version)
        for api in BY_NAME.values()
        if api.key in SERVED
        for version in range(api.min_version, api.announced[1] + 1)
    }
    rules = ", ".join(f"{name} {count}" for name, count in brokers.used.most_common())
    SUMMARY.append(f"side by side: {sum(brokers.asked.values())} requests; rules used: {rules}")
    assert wanted <= brokers.asked.keys()
    assert {rule.name for rule in ALLOWED} == brokers.used.keys()

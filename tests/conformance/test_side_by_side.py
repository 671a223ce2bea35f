"""The same requests to Apache Kafka and to ``txnkafka serve``: the same answers, field by field.

Ids, ports and times that two brokers choose differently have names (tests/side_by_side/naming.py). What
differs on purpose is in tests/side_by_side/differences.py with its reason, and in DIVERGENCES.md; a rule
there that explains nothing fails the run. A random sequence that fails is shortened and printed;
``SIDE_BY_SIDE_SEED`` is the first seed, ``SIDE_BY_SIDE_SEQUENCES`` their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from tests.conformance.both import SUMMARY, Both, both
from tests.side_by_side import admin, configs, consumer_groups, groups, records, resource_configs, topics
from tests.side_by_side.brokers import CONFIG, ORDERED, Brokers
from tests.side_by_side.consumer_turns import CONSUMER_STORIES, random_consumer_turns
from tests.side_by_side.differences import AFTER_RESTART, ALLOWED
from tests.side_by_side.frames import FRAMES
from tests.side_by_side.matrix import EXHAUSTED, STATES, cases, slow_cases
from tests.side_by_side.member_turns import STORIES, random_turns
from tests.side_by_side.messages import BY_NAME
from tests.side_by_side.pair import Compared
from tests.side_by_side.random_steps import random_steps
from tests.side_by_side.story import Step, Story
from txnkafka.server.handlers import SERVED

FIRST_SEED = int(os.environ.get("SIDE_BY_SIDE_SEED", "0"))
SEQUENCES = int(os.environ.get("SIDE_BY_SIDE_SEQUENCES", "5000"))
RESTARTED = 240  # sequences
OPEN_MS = 900_000  # the longest that a broker allows: no transaction may time out while others are asked
PLAYS = SEQUENCES // 20  # of members of a group
CONSUMER_PLAYS = SEQUENCES // 40  # of members of a group of the consumer protocol
SCRIPTS = {
    **topics.SCRIPTS, **admin.SCRIPTS, **configs.SCRIPTS, **records.SCRIPTS, **groups.SCRIPTS,
    **consumer_groups.SCRIPTS, **resource_configs.SCRIPTS,
}  # fmt: skip
AT_ONCE = 60  # conversations whose topics are created by one request
NEWS_SECONDS = 2.0
MOST_SHOWN = 5  # failures; what is behind them is often the same


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both, on directories of their own."""
    with both(tmp_path_factory.mktemp("side-by-side")) as running:
        yield running.brokers


@pytest.fixture(scope="module")
def restarting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Both, where no transactional id expires while they start again."""
    config = {name: value for name, value in CONFIG.items() if name != "transactional.id.expiration.ms"}
    with both(tmp_path_factory.mktemp("restarts"), config) as running:
        yield running


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both, for members on connections of their own."""
    with both(tmp_path_factory.mktemp("members"), ORDERED) as running:
        yield running.brokers


def told(compared: Compared, steps: Sequence[object]) -> str:
    """A failure, to be read by a person."""
    lines = [f"  {step}" for step in steps]
    lines += [f"{compared.request}", *(f"  {each}" for each in compared.differences)]
    return "\n".join(lines)


@pytest.mark.parametrize("name", SCRIPTS)
def test_tools(brokers: Brokers, name: str) -> None:
    (pair,) = brokers.pairs(1)
    if name in consumer_groups.SCRIPTS:  # Kafka's group coordinator hears of topics behind everybody else
        time.sleep(NEWS_SECONDS)
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


@pytest.mark.parametrize("name", STORIES)
def test_members_of_a_group(ordered: Brokers, brokers: Brokers, name: str) -> None:
    """Each on a connection of its own; JoinGroup and SyncGroup wait for the others."""
    turns = list(STORIES[name]())
    failures = [told(each, turns) for each in ordered.play(turns) if each.differences]
    brokers.used += ordered.used
    ordered.used.clear()
    assert not failures, "\n".join(failures[:MOST_SHOWN])


def test_random_turns_of_members(ordered: Brokers) -> None:
    failures: list[str] = []
    for seed in range(FIRST_SEED, FIRST_SEED + PLAYS):
        turns = random_turns(seed)
        if len(failures) < MOST_SHOWN and any(each.differences for each in ordered.play(turns)):
            left, compared = ordered.shortened_play(turns)
            failures += [f"seed {seed}:\n{told(each, left)}" for each in compared if each.differences]
    SUMMARY.append(f"side by side: {PLAYS} random plays of members from seed {FIRST_SEED} on")
    assert not failures, "\n".join(failures[:MOST_SHOWN])


@pytest.mark.parametrize("name", CONSUMER_STORIES)
def test_members_of_a_consumer_group(ordered: Brokers, brokers: Brokers, name: str) -> None:
    """KIP-848, also with members of the classic protocol."""
    turns = list(CONSUMER_STORIES[name]())
    (pair,) = ordered.pairs(1)
    time.sleep(NEWS_SECONDS)
    failures = [told(each, turns) for each in ordered.play(turns, pair) if each.differences]
    brokers.used += ordered.used
    ordered.used.clear()
    assert not failures, "\n".join(failures[:MOST_SHOWN])


def test_random_turns_of_consumers(ordered: Brokers) -> None:
    failures: list[str] = []
    for seeds in parts(range(FIRST_SEED, FIRST_SEED + CONSUMER_PLAYS)):
        pairs = ordered.pairs(len(seeds))
        time.sleep(NEWS_SECONDS)
        for pair, seed in zip(pairs, seeds, strict=True):
            turns = random_consumer_turns(seed)
            if len(failures) < MOST_SHOWN and any(each.differences for each in ordered.play(turns, pair)):
                left, compared = ordered.shortened_play(turns, NEWS_SECONDS)
                failures += [f"seed {seed}:\n{told(each, left)}" for each in compared if each.differences]
    SUMMARY.append(f"side by side: {CONSUMER_PLAYS} random plays of consumers from seed {FIRST_SEED} on")
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


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_random_sequences_with_a_restart_between_their_steps(
    restarting: Both, brokers: Brokers, how: str
) -> None:
    """The second half of each finds what the first has left: open transactions, producers, logs. It does not
    name epochs of leaders and coordinators: a restart raises ours and Kafka's by different
    numbers."""
    both_of, seeds = restarting.brokers, range(FIRST_SEED, FIRST_SEED + RESTARTED)
    pairs, stories = both_of.pairs(len(seeds)), [Story(OPEN_MS) for _ in seeds]
    for pair in pairs:
        pair.rules += AFTER_RESTART
    failures = []
    for pair, story, seed in zip(pairs, stories, seeds, strict=True):
        compared = both_of.run(pair, halves(seed)[0], story=story)[-1]
        pair.settle()
        if compared.differences:
            failures.append(f"seed {seed}, before:\n{told(compared, halves(seed)[0])}")
    restarting.restart(how)
    both_of.wait_for_topics(pairs)
    for pair, story, seed in zip(pairs, stories, seeds, strict=True):
        first, second = halves(seed)
        compared = both_of.run(pair, second, story=story)[-1]
        if compared.differences:
            failures.append(f"seed {seed}:\n{told(compared, [*first, how, *second])}")
    both_of.forget(pairs)
    brokers.used += both_of.used
    assert not failures, "\n".join(failures[:MOST_SHOWN])


def halves(seed: int) -> tuple[list[Step], list[Step]]:
    """The steps of a seed before a restart, and those behind it, without those that name epochs; around it a
    producer sends three batches, and the first of them again."""
    steps = [step for step in random_steps(seed) if step.kind not in ("marker", "epochs")]
    sent = [Step("init", 5, "q"), *[Step("produce", 9, "q")] * 3]
    again = Step("produce", 9, "q", options={"sequence": "old"})
    return [*steps[: len(steps) // 2], *sent], [again, *steps[len(steps) // 2 :]]


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
    by_chance = {rule.name for rule in ALLOWED if rule.by_chance}
    assert {rule.name for rule in ALLOWED + AFTER_RESTART} - by_chance == brokers.used.keys() - by_chance

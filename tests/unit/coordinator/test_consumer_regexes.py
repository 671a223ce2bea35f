"""Subscriptions with patterns (KIP-848): which topics they are, when they are looked for again."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.consumer_clients import Consumer, ConsumerNode, config
from txnkafka.coordinator.group.consumer import consumer_regexes
from txnkafka.coordinator.group.consumer.consumer_regexes import MOST_STEPS_AT_ONCE
from txnkafka.coordinator.re2_pattern import Re2Pattern
from txnkafka.error_codes import ErrorCode as E


def joined(node: ConsumerNode, name: str, regex: str) -> Consumer:
    consumer = Consumer(node, name, topics=None, regex=regex).join()
    node.wait(0)
    return consumer


def test_what_a_pattern_matches_comes_behind_the_heartbeat() -> None:
    node = ConsumerNode({"orders-eu": 1, "orders-us": 1, "other": 1})
    one = joined(node, "a", "orders-.*")
    assert (one.error, one.epoch, one.has) == (E.NONE, 1, [])
    assert one.follow().has == [(1, 0), (2, 0)]
    assert node.consumers().regexes["orders-.*"].topics == ("orders-eu", "orders-us")


def test_a_pattern_is_for_the_whole_name() -> None:
    node = ConsumerNode({"orders": 1, "orders-us": 1})
    assert joined(node, "a", "orders").follow().has == [(1, 0)]


def test_a_bad_pattern_is_refused() -> None:
    node = ConsumerNode({"t": 1})
    one = Consumer(node, "a", topics=None, regex="(").join()
    assert one.error == E.INVALID_REGULAR_EXPRESSION
    told = "SubscribedTopicRegex `(` is not a valid regular expression: "
    assert str(one.answers[-1].message).startswith(told)
    assert node.coordinator.partitions.find("g") == E.GROUP_ID_NOT_FOUND


def test_a_known_pattern_counts_at_once() -> None:
    node = ConsumerNode({"t": 2})
    one = joined(node, "a", "t")
    one.follow()
    two = Consumer(node, "b", topics=None, regex="t").join()
    assert two.epoch == 3
    one.follow().follow()
    assert (one.has, two.follow().has) == ([(1, 0)], [(1, 1)])


def test_new_topics_are_looked_for_after_ten_seconds() -> None:
    node = ConsumerNode({"t1": 1})
    one = joined(node, "a", "t.").follow()
    node.create("t2", 1)
    node.wait(10_000)
    assert one.follow().has == [(1, 0)]
    node.wait(0)
    assert one.follow().has == [(1, 0)]
    node.wait(1)
    one.follow()
    node.wait(0)
    assert one.follow().has == [(1, 0), (2, 0)]


def test_patterns_are_looked_for_again_when_that_is_long_ago() -> None:
    node = ConsumerNode({"t1": 1}, consumer=config(regex_refresh_interval_ms=30_000))
    one = joined(node, "a", "t.").follow()
    before = node.consumers().regexes["t."]
    for _ in range(2):
        node.wait(15_001)
        one.follow()
    node.wait(0)
    assert node.consumers().regexes["t."] == before._replace(timestamp=before.timestamp + 30_002)
    assert one.follow().epoch == 2


def test_names_and_a_pattern_are_added() -> None:
    node = ConsumerNode({"t": 1, "u": 1})
    one = Consumer(node, "a", topics=("u",), regex="t").join()
    node.wait(0)
    assert one.follow().has == [(1, 0), (2, 0)]
    assert one.beat(regex="").has == [(2, 0)]
    assert node.consumers().regexes == {}


def test_the_last_subscriber_takes_the_pattern_with_it() -> None:
    node = ConsumerNode({"t": 1})
    one, two = joined(node, "a", "t"), Consumer(node, "b", topics=None, regex="t").join()
    one.leave()
    assert list(node.consumers().regexes) == ["t"]
    two.leave()
    assert node.consumers().regexes == {}
    assert node.consumers().metadata_hash == 0


def test_patterns_are_resolved_anew_after_a_restart() -> None:
    node = ConsumerNode({"t1": 1})
    one = joined(node, "a", "t.").follow()
    node.create("t2", 1)
    node.start()
    assert node.consumers().regexes["t."].topics == ("t1",)
    node.wait(10_001)
    one.follow()
    node.wait(0)
    assert one.follow().has == [(1, 0), (2, 0)]


def test_a_new_pattern_is_looked_for_when_the_clock_was_put_back() -> None:
    node = ConsumerNode({"t1": 1, "u1": 1})
    joined(node, "a", "t.").follow()
    node.now_ms -= 86_400_000
    assert joined(node, "b", "u.").follow().has == [(2, 0)]


class Steps:
    """Counts what the matches of all patterns take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        matched = Re2Pattern.fullmatch

        def fullmatch(pattern: Re2Pattern, text: str) -> bool:
            self.taken += pattern.steps(text)
            return matched(pattern, text)

        monkeypatch.setattr(Re2Pattern, "fullmatch", fullmatch)

    def of_turns(self, node: ConsumerNode) -> list[int]:
        """What each turn takes until nothing is due."""
        found = []
        while True:
            before = self.taken
            deadline = node.coordinator.advance(node.now_ms)
            node.settle()
            found.append(self.taken - before)
            if deadline > node.now_ms:
                return found


ONE_NAME = 500_000  # more than one name takes here


@pytest.mark.parametrize("is_one_group", [True, False])
def test_many_patterns_are_matched_in_pieces(is_one_group: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one bound for all that are to be matched, of one group or of many."""
    node = ConsumerNode({f"{i:02}{'x' * 200}": 1 for i in range(10)})
    joined(node, "first", "first")
    steps = Steps(monkeypatch)
    regexes = [f"{i:02}(a|x|b|.){{0,250}}" for i in range(20)]
    members = [
        Consumer(node, f"m{i}", None, group="g" if is_one_group else f"g{i}", regex=regex)
        for i, regex in enumerate(regexes)
    ]
    for member in members:
        member.join()
    node.now_ms += 10_001
    members[0].beat()
    turns = steps.of_turns(node)
    assert sum(turns) > 3 * MOST_STEPS_AT_ONCE
    assert max(turns) < MOST_STEPS_AT_ONCE + ONE_NAME
    for i, member in enumerate(members):
        found = node.consumers(member.group).regexes[member.regex or ""]
        assert [name[:2] for name in found.topics] == ([f"{i:02}"] if i < 10 else [])


def test_what_happens_while_patterns_are_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that nobody has any more are left out, topics that are new are looked for the next time, and a
    group that is gone is not written."""
    monkeypatch.setattr(consumer_regexes, "MOST_STEPS_AT_ONCE", 1)
    node = ConsumerNode({"t1": 1, "t2": 1})
    one = Consumer(node, "a", None, regex="t.").join()
    gone = Consumer(node, "c", None, group="gone", regex="t.").join()
    for _ in range(3):  # both are begun
        node.coordinator.advance(node.now_ms)
    two = Consumer(node, "b", None, regex="t.*").join()  # waits for the next time
    node.create("t3", 1)
    gone.leave()
    node.coordinator.delete("gone", lambda error: None)
    node.settle()
    Consumer(node, "c", ("t1",), group="gone").join()
    node.wait(0)
    assert {name: each.topics for name, each in node.consumers().regexes.items()} == {"t.": ("t1", "t2")}
    assert node.consumers("gone").regexes == {}
    node.wait(10_001)
    one.beat()
    for _ in range(8):
        node.coordinator.advance(node.now_ms)
    two.leave()
    node.wait(0)
    topics = ("t1", "t2", "t3")
    assert {name: each.topics for name, each in node.consumers().regexes.items()} == {"t.": topics}

"""Groups of consumers over a broker in process, in both protocols."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event, Thread
from typing import Any

import pytest

from tests.unit.client.consumer.wire_client import WireClient
from txnkafka import Broker
from txnkafka.client.consumer import Consumer, RebalanceListener
from txnkafka.client.consumer.consumer_errors import WakeupError
from txnkafka.errors import CommitFailedError, FencedInstanceIdError
from txnkafka.model import TopicPartition

PROTOCOLS = ("classic", "consumer")
WAIT = 10_000


class Journal(RebalanceListener):
    """The calls of a listener."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, frozenset[TopicPartition]]] = []

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", frozenset(partitions)))

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", frozenset(partitions)))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", frozenset(partitions)))


def member(broker: Broker, group: str, **settings: Any) -> Consumer:
    given = {
        "group_id": group, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50,
        "session_timeout_ms": 6_000, "metadata_max_age_ms": 100, **settings,
    }  # fmt: skip
    return Consumer(given, transport=broker._transport)


def poll_until(consumers: Collection[Consumer], is_done: Any) -> None:
    """Poll all consumers in turn. A test that never gets there fails by its rounds, not by a time."""
    for _ in range(2_000):
        if is_done():
            return
        for consumer in consumers:
            consumer.poll(10)
    raise AssertionError([consumer.assignment() for consumer in consumers])


def all_of(topic: str, count: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in range(count))


def are_divided(consumers: Collection[Consumer], partitions: Collection[TopicPartition]) -> bool:
    found = [each for consumer in consumers for each in consumer.assignment()]
    return (
        len(found) == len(partitions)
        and set(found) == set(partitions)
        and all(consumer.assignment() for consumer in consumers)
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_divide_the_partitions(broker: Broker, wire: WireClient, topic: str, protocol: str) -> None:
    wire.create(topic, 4)
    partitions = all_of(topic, 4)
    journal = Journal()
    one = member(broker, topic, group_protocol=protocol)
    one.subscribe([topic], listener=journal)
    poll_until([one], lambda: one.assignment() == partitions)
    assert one.subscription() == {topic}
    assert one.group_metadata().group_id == topic
    assert one.group_metadata().generation_id > 0
    two = member(broker, topic, group_protocol=protocol)
    two.subscribe([topic])
    poll_until([one, two], lambda: are_divided([one, two], partitions))
    assert journal.calls[0] == ("assigned", partitions)
    assert "revoked" in {name for name, _ in journal.calls}
    kept = two.assignment()
    two.close()
    poll_until([one], lambda: one.assignment() == partitions)
    assert kept <= journal.calls[-1][1]
    one.close()
    assert journal.calls[-1] == ("revoked", partitions)


@pytest.mark.parametrize("settings", [{}, {"partition_assignment_strategy": "cooperative-sticky"}])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_poll_that_waits_for_records_takes_part_in_a_rebalance(
    broker: Broker, wire: WireClient, topic: str, protocol: str, settings: dict[str, str]
) -> None:
    """As in Java: the other members do not wait for its next poll."""
    wire.create(topic, 4)
    partitions = all_of(topic, 4)
    one = member(broker, topic, group_protocol=protocol, **settings)
    one.subscribe([topic])
    poll_until([one], lambda: one.assignment() == partitions)
    ended: list[Any] = []

    def wait() -> None:
        with pytest.raises(WakeupError):
            ended.append(one.poll(600_000))

    waiting = Thread(target=wait)
    waiting.start()
    two = member(broker, topic, group_protocol=protocol, **settings)
    two.subscribe([topic])
    poll_until([two], lambda: len(two.assignment()) == 2)
    assert ended == []
    one.wakeup()
    waiting.join()
    assert one.assignment() | two.assignment() == partitions
    two.close()
    one.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_member_continues_at_the_committed_offsets(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    wire.create(topic)
    wire.values(TopicPartition(topic, 0), *(b"%d" % number for number in range(10)))
    with member(broker, topic, group_protocol=protocol, max_poll_records=4) as one:
        one.subscribe([topic])
        first = [each.offset for _ in range(50) for each in one.poll(20)][:4] or []
        assert first == [0, 1, 2, 3]
    # closing has committed the position
    with member(broker, topic, group_protocol=protocol, enable_auto_commit=False) as two:
        two.subscribe([topic])
        committed = two.committed([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
        assert committed is not None
        assert committed.offset == 10
        wire.values(TopicPartition(topic, 0), b"new")
        found: list[int] = []
        poll_until_found(two, found, 1)
        assert found == [10]
        two.commit()
        again = two.committed(two.assignment())[TopicPartition(topic, 0)]
        assert again is not None
        assert again.offset == 11


def poll_until_found(consumer: Consumer, found: list[int], count: int) -> None:
    for _ in range(2_000):
        if len(found) >= count:
            return
        found += [each.offset for each in consumer.poll(10)]
    raise AssertionError(found)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rebalance_commits_what_was_returned(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    """With automatic commits of an hour, only the rebalance can have committed."""
    wire.create(topic, 2)
    for partition in all_of(topic, 2):
        wire.values(partition, b"a", b"b", b"c")
    settings = {"group_protocol": protocol, "auto_commit_interval_ms": 3_600_000}
    with member(broker, topic, **settings) as one, member(broker, topic, **settings) as two:
        one.subscribe([topic])
        found: list[int] = []
        poll_until_found(one, found, 6)
        two.subscribe([topic])
        poll_until([one, two], lambda: are_divided([one, two], all_of(topic, 2)))
        (taken,) = two.assignment()
        assert two.position(taken) == 3
        assert two.poll(0) == []


def test_cooperative_members_keep_their_partitions(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic, 4)
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    journal = Journal()
    with member(broker, topic, **settings) as one, member(broker, topic, **settings) as two:
        one.subscribe([topic], listener=journal)
        poll_until([one], lambda: len(one.assignment()) == 4)
        two.subscribe([topic])
        poll_until([one, two], lambda: are_divided([one, two], all_of(topic, 4)))
        revoked = [some for name, some in journal.calls if name == "revoked"]
        assert revoked == [two.assignment()]


@pytest.mark.parametrize("assignor", ["roundrobin", "sticky"])
def test_other_assignors_divide_too(broker: Broker, wire: WireClient, topic: str, assignor: str) -> None:
    wire.create(topic, 5)
    settings = {"partition_assignment_strategy": assignor}
    with member(broker, topic, **settings) as one, member(broker, topic, **settings) as two:
        one.subscribe([topic])
        two.subscribe([topic])
        poll_until([one, two], lambda: are_divided([one, two], all_of(topic, 5)))
        assert sorted(len(each.assignment()) for each in (one, two)) == [2, 3]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_finds_new_topics(broker: Broker, wire: WireClient, topic: str, protocol: str) -> None:
    wire.create(f"{topic}-a")
    with member(broker, topic, group_protocol=protocol) as consumer:
        consumer.subscribe(pattern=f"{topic}-.")
        poll_until([consumer], lambda: consumer.subscription() == {f"{topic}-a"} and consumer.assignment())
        wire.create(f"{topic}-b")
        wire.create(f"{topic}-cc")
        poll_until([consumer], lambda: {each.topic[-1] for each in consumer.assignment()} == {"a", "b"})
        assert consumer.subscription() == {f"{topic}-a", f"{topic}-b"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_subscription_replaces_the_last(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    wire.create(f"{topic}-a")
    wire.create(f"{topic}-b")
    with member(broker, topic, group_protocol=protocol) as consumer:
        consumer.subscribe(f"{topic}-a")
        poll_until([consumer], lambda: consumer.assignment() == all_of(f"{topic}-a", 1))
        consumer.subscribe(f"{topic}-b")
        poll_until([consumer], lambda: consumer.assignment() == all_of(f"{topic}-b", 1))
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
        assert consumer.subscription() == frozenset()
        consumer.assign([TopicPartition(f"{topic}-a", 0)])
        assert consumer.poll(0) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_does_not_poll_loses_its_partitions(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    wire.create(topic, 2)
    journal = Journal()
    with (
        member(broker, topic, group_protocol=protocol, max_poll_interval_ms=300) as slow,
        member(broker, topic, group_protocol=protocol) as other,
    ):
        slow.subscribe([topic], listener=journal)
        poll_until([slow], lambda: slow.assignment() == all_of(topic, 2))
        other.subscribe([topic])
        poll_until([other], lambda: other.assignment() == all_of(topic, 2))
        with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
            slow.commit({TopicPartition(topic, 0): 0})
        poll_until([slow, other], lambda: are_divided([slow, other], all_of(topic, 2)))
        assert ("lost", all_of(topic, 2)) in journal.calls


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_listener_can_seek_and_commit(broker: Broker, wire: WireClient, topic: str, protocol: str) -> None:
    wire.create(topic)
    partition = TopicPartition(topic, 0)
    wire.values(partition, b"a", b"b", b"c")
    done: list[str] = []

    class Seeker(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            consumer.seek(partition, 2)

        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            consumer.commit({partition: 1})
            done.append("committed")

    consumer = member(broker, topic, group_protocol=protocol, enable_auto_commit=False)
    consumer.subscribe([topic], listener=Seeker())
    found: list[int] = []
    poll_until_found(consumer, found, 1)
    assert found == [2]
    consumer.close()
    assert done == ["committed"]
    with member(broker, topic) as other:
        assert other.committed([partition])[partition].offset == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_listener_that_fails_fails_the_poll_and_the_group_goes_on(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    wire.create(topic)

    class Failing(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            raise ZeroDivisionError

    with member(broker, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic], listener=Failing())
        with pytest.raises(ZeroDivisionError):
            poll_until([consumer], lambda: False)
        assert consumer.assignment() == all_of(topic, 1)


def test_an_interrupted_poll_loses_no_call_of_the_listener(
    broker: Broker, wire: WireClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.create(topic)
    journal = Journal()
    with member(broker, topic) as consumer:
        consumer.subscribe([topic], listener=journal)
        wait = consumer._reactor.wait

        def interrupted(task: Any) -> Any:
            if wait(task):
                raise KeyboardInterrupt
            return []

        with monkeypatch.context() as patch:
            patch.setattr(consumer._reactor, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                poll_until([consumer], lambda: False)
        assert journal.calls == []
        wire.values(TopicPartition(topic, 0), b"a")
        found: list[int] = []
        poll_until_found(consumer, found, 1)
        assert journal.calls == [("assigned", all_of(topic, 1))]
        assert found == [0]


def test_a_static_member_is_fenced_by_its_successor(broker: Broker, wire: WireClient, topic: str) -> None:
    wire.create(topic)
    one = member(broker, topic, group_instance_id="x")
    one.subscribe([topic])
    poll_until([one], one.assignment)
    assert one.group_metadata().group_instance_id == "x"
    with member(broker, topic, group_instance_id="x") as two:
        two.subscribe([topic])
        poll_until([two], two.assignment)
        with pytest.raises(FencedInstanceIdError):
            poll_until([one], lambda: False)
    one.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_in_threads_read_each_record_once(
    broker: Broker, wire: WireClient, topic: str, protocol: str
) -> None:
    wire.create(topic, 4)
    stop = Event()
    seen: list[tuple[int, int]] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with member(broker, topic, group_protocol=protocol) as consumer:
                consumer.subscribe([topic])
                while not stop.is_set():
                    seen.extend((each.partition, each.offset) for each in consumer.poll(20))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        wire.values(TopicPartition(topic, number % 4), b"x", b"y", b"z")
    expected = {(number, offset) for number in range(4) for offset in range(30)}
    watch = member(broker, f"{topic}-watch")
    watch.assign([TopicPartition(topic, 0)])
    for _ in range(2_000):
        if failures or set(seen) == expected:
            break
        watch.poll(10)
    stop.set()
    for thread in threads:
        thread.join()
    watch.close()
    assert failures == []
    assert set(seen) == expected
    assert len(seen) == len(expected)  # rebalances commit, so that nothing is read twice

"""Configs change: in the registry, in the open logs at once, and in those that are opened later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, batch_of
from txnkafka._core.encode import encode_batch
from txnkafka.broker.config.config_alteration import Alteration, ConfigChange, ConfigOp, alter_configs
from txnkafka.broker.requests import NewTopic
from txnkafka.coordinator.registry import metadata_records
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = ConfigOp
Change = tuple[str, ConfigOp, str | None]


def send(node: Node, kind: int, name: str, *changes: ConfigChange, **options: Any) -> list[ErrorCode]:
    """The answer, which comes later."""
    answers: list[ErrorCode] = []
    is_whole = options.pop("is_whole", False)
    node.request(
        alter_configs, node.broker, Alteration(kind, name, changes, is_whole),
        lambda error, _: answers.append(error), **options,
    )  # fmt: skip
    return answers


def alter(node: Node, kind: int, name: str, *changes: Change, **options: Any) -> str:
    answers = send(node, kind, name, *(ConfigChange(*change) for change in changes), **options)
    node.settle()
    (error,) = answers
    return error.name


def config(node: Node, topic: str = "t") -> Any:
    return node.broker.logs[TopicPartition(topic, 0)].config


def made(**configs: Any) -> Node:
    node = Node(**configs)
    node.create("t")
    return node


def test_an_open_log_has_its_new_config_at_once_and_after_a_restart() -> None:
    node = made()
    node.create("u")
    assert alter(node, TOPIC, "t", ("max.message.bytes", SET, "80")) == "NONE"
    large = batch_of(b"x" * 100)
    assert node.append(large).error == ErrorCode.MESSAGE_TOO_LARGE
    assert config(node, "u").max_message_bytes == 1_048_588
    node.restart()
    assert node.append(large).error == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(node, TOPIC, "t", ("max.message.bytes", DELETE, None)) == "NONE"
    assert node.append(large).error == ErrorCode.NONE
    node.restart()
    assert config(node).max_message_bytes == 1_048_588


def test_the_new_config_is_not_in_effect_before_it_is_durable() -> None:
    node = made()
    answers = send(node, TOPIC, "t", ConfigChange("retention.ms", SET, "5"))
    assert (answers, config(node).retention_ms) == ([], 604_800_000)
    node.settle()
    assert (answers, config(node).retention_ms) == ([ErrorCode.NONE], 5)


def test_segments_roll_and_are_deleted_by_the_new_config() -> None:
    node = made()
    for text in (b"a", b"b"):
        node.append(batch_of(text * 50))
    log = node.broker.logs[TopicPartition("t", 0)]
    assert len(log.segments) == 1
    changes = ("internal.segment.bytes", SET, "200"), ("retention.ms", SET, "1000")
    assert alter(node, TOPIC, "t", *changes) == "NONE"
    for text in (b"c", b"d"):
        node.append(batch_of(text * 50))
    assert len(log.segments) == 3
    node.wait(300_000)  # log.retention.check.interval.ms
    assert log.log_start_offset == 3


def test_changes_of_lists_follow_each_other() -> None:
    """The second is decided by what the first has left, although both come before anything is durable."""
    node = made()
    policy = "cleanup.policy"
    answers = [
        send(node, TOPIC, "t", ConfigChange(policy, op, value))
        for op, value in ((APPEND, "compact"), (SUBTRACT, "delete"), (APPEND, "compact"))
    ]
    node.settle()
    assert answers == [[ErrorCode.NONE]] * 3
    assert node.broker.image.topic_configs("t") == {policy: "compact"}
    assert config(node).compact
    assert alter(node, TOPIC, "t", (policy, SUBTRACT, "compact,delete")) == "NONE"
    assert node.broker.image.topic_configs("t") == {policy: ""}


@pytest.mark.parametrize(
    ("kind", "name", "setting"), [(TOPIC, "t", "retention.ms"), (BROKER, "", "log.retention.ms")]
)
def test_a_log_that_was_being_created_has_what_was_set_meanwhile(kind: int, name: str, setting: str) -> None:
    node = Node()
    broker = node.broker
    broker.call(broker.topics.create, [NewTopic("t", 1)], lambda _: None, now_ms=node.now_ms)
    flush(node)
    creation = broker.begin_work()
    assert creation is not None
    creation.run()
    answers = send(node, kind, name, ConfigChange(setting, SET, "5"))
    flush(node)
    assert answers == [ErrorCode.NONE]
    broker.finish_work(creation, None, now_ms=node.now_ms)
    assert config(node).retention_ms == 5


def flush(node: Node) -> None:
    while (group := node.broker.begin_flush()) is not None:
        node.broker.finish_flush(group, group.run(), now_ms=node.now_ms)


def test_all_changes_of_a_request_or_none() -> None:
    node = made()
    for bad in (("flush.ms", SET, "-1"), ("no.such", SET, "1"), ("flush.ms", APPEND, "1")):
        assert alter(node, TOPIC, "t", ("retention.ms", SET, "5"), bad) == "INVALID_CONFIG"
    assert alter(node, TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == "NONE"
    assert node.broker.image.topic_configs("t") == {}
    lags = ("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")
    assert alter(node, TOPIC, "t", *lags) == "INVALID_CONFIG"
    assert alter(node, TOPIC, "t", ("cleanup.policy", APPEND, "x" * 40_000)) == "INVALID_CONFIG"


def test_what_is_not_named_gets_its_default_where_all_configs_are_given() -> None:
    node = made()
    alter(node, TOPIC, "t", ("retention.ms", SET, "5"), ("flush.ms", SET, "6"))
    assert alter(node, TOPIC, "t", ("flush.ms", SET, "7"), is_whole=True) == "NONE"
    assert node.broker.image.topic_configs("t") == {"flush.ms": "7"}
    assert config(node).retention_ms == 604_800_000
    assert alter(node, TOPIC, "t", is_whole=True) == "NONE"
    assert node.broker.image.topic_configs("t") == {}


def test_a_topic_that_is_being_deleted_gets_no_configs() -> None:
    """A later topic of this name would have them."""
    node = made()
    node.request(node.broker.topics.delete, ["t"], [], lambda _: None)
    answers = send(node, TOPIC, "t", ConfigChange("retention.ms", SET, "5"))
    node.settle()
    assert answers == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.create("t")
    assert config(node).retention_ms == 604_800_000


def test_the_levels_of_a_setting() -> None:
    """Topic, this broker, all brokers, the start, the default."""
    node = made(topic_defaults={"retention.ms": "4"})
    seen = [config(node).retention_ms]
    for kind, name, key, value in (
        (BROKER, "", "log.retention.ms", "3"),
        (BROKER, "1", "log.retention.ms", "2"),
        (TOPIC, "t", "retention.ms", "1"),
    ):
        assert alter(node, kind, name, (key, SET, value)) == "NONE"
        seen.append(config(node).retention_ms)
    assert seen == [4, 3, 2, 1]
    node.restart()
    assert config(node).retention_ms == 1
    for kind, name, key in (
        (TOPIC, "t", "retention.ms"), (BROKER, "1", "log.retention.ms"), (BROKER, "", "log.retention.ms"),
    ):  # fmt: skip
        assert alter(node, kind, name, (key, DELETE, None)) == "NONE"
        seen.append(config(node).retention_ms)
    assert seen[4:] == [2, 3, 4]


def test_settings_of_the_broker_take_effect_on_all_topics_and_new_ones() -> None:
    node = made(given={"log.retention.hours": "1"}, topic_defaults={"retention.ms": "3600000"})
    assert alter(node, BROKER, "", ("log.retention.ms", SET, "7"), ("message.max.bytes", SET, "80")) == "NONE"
    node.create("u")
    assert {config(node, name).retention_ms for name in "tu"} == {7}
    assert node.append(batch_of(b"x" * 100)).error == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(node, BROKER, "1", ("log.cleaner.backoff.ms", SET, "9")) == "NONE"
    assert node.broker.config.log_cleaner_backoff_ms == 9


@pytest.mark.parametrize(
    ("where", "change", "expected"),
    [
        ("1", ("num.partitions", SET, "2"), "INVALID_REQUEST"),
        ("1", ("log.retention.hours", SET, "2"), "INVALID_REQUEST"),
        ("1", ("no.such", SET, "2"), "INVALID_REQUEST"),
        ("1", ("no.such", DELETE, None), "NONE"),
        ("1", ("num.io.threads", SET, "2"), "INVALID_REQUEST"),
        ("1", ("log.retention.ms", SET, "x"), "INVALID_REQUEST"),
        ("2", ("log.retention.ms", SET, "2"), "INVALID_REQUEST"),
        ("1", ("log.retention.ms", APPEND, "2"), "INVALID_CONFIG"),
        ("1", ("min.insync.replicas", SET, "1"), "INVALID_CONFIG"),
        ("", ("min.insync.replicas", DELETE, None), "INVALID_CONFIG"),
        ("", ("min.insync.replicas", SET, "0"), "INVALID_REQUEST"),
        ("", ("min.insync.replicas", SET, "2"), "NONE"),
    ],
)
def test_what_a_broker_takes(where: str, change: Change, expected: str) -> None:
    node = made()
    before = node.broker.config
    assert alter(node, BROKER, where, change) == expected
    assert node.broker.config == before


def test_a_change_that_fails_when_it_is_durable_does_not_hold_up_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = made()
    failures: list[Exception] = []
    change = ConfigChange("log.retention.ms", SET, "7")
    assert send(node, BROKER, "1", change, owner=failures.append) == []
    waiting = send(node, BROKER, "1", ConfigChange("log.retention.ms", SET, "8"))
    monkeypatch.setattr(node.broker.configs, "refresh", only_once(node.broker.configs.refresh))
    node.settle()
    assert ([type(each) for each in failures], waiting) == ([IndexError], [ErrorCode.NONE])
    assert config(node).retention_ms == 8


def only_once(refresh: Callable[[], None]) -> Callable[[], None]:
    """What fails when it is called first."""
    calls: list[None] = []

    def call() -> None:
        calls.append(None)
        if len(calls) == 1:
            raise IndexError
        refresh()

    return call


def session_of(node: Node, group: str = "g") -> int:
    return node.broker.groups.coordinator._consumer.config_of(group).session_timeout_ms


def test_a_group_has_its_config_at_once_and_after_a_restart() -> None:
    node = made()
    name = "consumer.session.timeout.ms"
    assert alter(node, GROUP, "g", (name, SET, "50000"), validate_only=True) == "NONE"
    assert session_of(node) == 45_000
    assert alter(node, GROUP, "g", (name, SET, "50000")) == "NONE"
    assert (session_of(node), session_of(node, "other")) == (50_000, 45_000)
    node.restart()
    assert session_of(node) == 50_000
    assert alter(node, GROUP, "g", (name, DELETE, None)) == "NONE"
    assert session_of(node) == 45_000
    assert (GROUP, "g") not in node.broker.image.configs


@pytest.mark.parametrize(
    ("text", "expected"), [("70000", 60_000), ("1", 45_000), ("nonsense", 45_000), ("46000", 46_000)]
)
def test_a_config_of_a_group_that_was_set_with_other_limits_counts_as_the_limit(
    text: str, expected: int
) -> None:
    node = made()
    node.broker.metadata.append(
        [metadata_records.config(GROUP, "g", "consumer.session.timeout.ms", text)], node.now_ms
    )
    node.restart()
    assert session_of(node) == expected


def test_limits_of_groups_are_those_of_the_broker() -> None:
    node = made(
        group_consumer_max_session_timeout_ms=90_000, group_consumer_session_timeout_ms=80_000,
        group_consumer_max_heartbeat_interval_ms=60_000,
    )  # fmt: skip
    assert alter(node, GROUP, "g", ("consumer.session.timeout.ms", SET, "90000")) == "NONE"
    assert alter(node, GROUP, "g", ("consumer.session.timeout.ms", SET, "90001")) == "INVALID_CONFIG"
    assert alter(node, GROUP, "h", ("consumer.heartbeat.interval.ms", SET, "60000")) == "NONE"
    session = ("consumer.session.timeout.ms", SET, "60000")
    assert alter(node, GROUP, "h", session) == "INVALID_CONFIG"  # not above the heartbeats


def test_the_interval_of_assignments_is_changed_while_the_broker_runs() -> None:
    node = made()
    name = "group.consumer.assignment.interval.ms"
    of_groups = node.broker.groups.coordinator
    assert alter(node, BROKER, "1", (name, SET, "7")) == "NONE"
    assert of_groups.config.consumer.assignment_interval_ms == 7
    assert alter(node, BROKER, "1", (name, SET, "15001")) == "INVALID_REQUEST"
    node.restart()
    assert node.broker.groups.coordinator.config.consumer.assignment_interval_ms == 7


def test_an_interval_that_was_set_with_other_limits_counts_as_the_limit() -> None:
    node = made()
    name = "group.consumer.assignment.interval.ms"
    node.broker.metadata.append([metadata_records.config(BROKER, "1", name, "99000")], node.now_ms)
    node.restart()
    assert node.broker.config.group_consumer_assignment_interval_ms == 15_000


def test_a_subscription_to_metrics_is_kept() -> None:
    node = made()
    assert alter(node, METRICS, "m", ("interval.ms", SET, "1000"), ("metrics", SET, "*")) == "NONE"
    node.restart()
    assert node.broker.image.configs[METRICS, "m"] == {"interval.ms": "1000", "metrics": "*"}
    assert alter(node, METRICS, "m", ("match", SET, "client_id=(")) == "INVALID_CONFIG"
    assert alter(node, METRICS, "m", ("match", SET, "client_id=" + "(" * 5000)) == "INVALID_CONFIG"


def test_a_log_that_is_not_compacted_any_more_is_left_alone() -> None:
    node = made(log_cleaner_backoff_ms=10)
    changes = ("cleanup.policy", SET, "compact"), ("internal.segment.bytes", SET, "80")
    assert alter(node, TOPIC, "t", *changes, ("min.cleanable.dirty.ratio", SET, "0")) == "NONE"
    for number in range(20):
        node.append(keyed(number))
    log = node.broker.logs[TopicPartition("t", 0)]
    count = len(log.segments)
    node.now_ms += 20
    node.broker.advance(node.now_ms)
    assert node.broker.deadlines._cleaner._pass is not None  # it has begun, and no piece was run
    log.update_config(config(node).of({"cleanup.policy": "delete"}))
    node.settle()
    assert node.broker.deadlines._cleaner._pass is None
    assert len(log.segments) == count


def keyed(number: int) -> memoryview:
    return memoryview(encode_batch([(b"key", b"%d" % number, NOW)]))


def test_segments_that_apache_kafka_refuses_are_refused() -> None:
    """It does not start on a directory with a topic of segments below 1 MiB (KIP-1030)."""
    node = made()
    assert alter(node, TOPIC, "t", ("segment.bytes", SET, "1048575")) == "INVALID_CONFIG"
    assert alter(node, TOPIC, "t", ("segment.bytes", SET, "1048576")) == "NONE"
    small = NewTopic("small", 1, configs={"segment.bytes": "1048575"})
    (result,) = node.call(node.broker.topics.create, [small])
    assert (result.error, "at least 1048576" in result.message) == (ErrorCode.INVALID_CONFIG, True)

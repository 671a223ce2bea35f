"""``Admin`` and the commands for clusters get the same from ``txnkafka serve`` and from Apache Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance.both_brokers import BROKERS, broker
from txnkafka.client.admin import (
    AbortTransactionSpec,
    Admin,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    MemberToRemove,
    NewTopic,
    OffsetSpec,
    OpType,
    UpgradeType,
)
from txnkafka.client.consumer import Consumer
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.client.producer import Producer
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition

Steps = Iterator[tuple[str, Any]]
CONFIGS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
ORDERS: Final = [TopicPartition("orders", number) for number in range(3)]
TOPIC: Final = ConfigResource(ConfigResourceType.TOPIC, "orders")


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the code of its error."""
    try:
        return call()
    except KafkaError as error:
        return error.code.name


def topics(admin: Admin, address: str) -> Steps:
    created = admin.create_topic("orders", 2, config={"retention.ms": 5000, "cleanup.policy": "compact"})
    yield "created", (created.partitions, created.replication_factor, created.config["retention.ms"])
    yield "again", outcome(lambda: admin.create_topic("orders"))
    yield "checked", outcome(lambda: admin.create_topics([NewTopic("a")], validate_only=True)["a"][2:4])
    yield "bad name", outcome(lambda: admin.create_topic("a b"))
    yield "bad config", outcome(lambda: admin.create_topic("a", config={"no.such": 1}))
    yield "too many replicas", outcome(lambda: admin.create_topic("a", 1, 2))
    yield "listed", [(each.name, each.is_internal) for each in admin.list_topics()]
    described = admin.describe_topics("orders")["orders"]
    yield "described", [each._replace(leader_epoch=0) for each in described.partitions]
    yield "extended", admin.create_partitions({"orders": 3})
    yield "not extended", outcome(lambda: admin.create_partitions({"orders": 3}))
    yield "gone", outcome(lambda: admin.describe_topics("gone"))
    yield "policy", outcome(lambda: admin.delete_records({ORDERS[0]: 0}))
    append = AlterConfigOp("cleanup.policy", "delete", OpType.APPEND)
    yield "altered", admin.incremental_alter_configs({TOPIC: [append, AlterConfigOp("segment.ms", 9)]})
    yield "reset", admin.incremental_alter_configs({TOPIC: {"retention.ms": None}})
    entries = admin.describe_configs([TOPIC], names=["retention.ms", "cleanup.policy", "segment.ms"])[TOPIC]
    yield "entries", sorted(each[:6] for each in entries.values())
    yield "refused", outcome(lambda: admin.incremental_alter_configs({TOPIC: {"segment.ms": "soon"}}))
    yield "deleted", admin.delete_topics("orders")
    yield "not there", outcome(lambda: admin.delete_topics("orders"))


def records(admin: Admin, address: str) -> Steps:
    admin.create_topic("orders", 3)
    with Producer(bootstrap_servers=address) as producer:
        for timestamp in (1_000, 3_000, 2_000):
            producer.send("orders", b"x", partition=0, timestamp=timestamp)
    for spec in (*list(OffsetSpec)[:3], 1_500, 9_000):
        found = admin.list_offsets(dict.fromkeys(ORDERS, spec))
        yield f"offsets {spec}", [each._replace(leader_epoch=0) for each in found.values()]
    yield "deleted", admin.delete_records({ORDERS[0]: 2})
    yield "out of range", outcome(lambda: admin.delete_records({ORDERS[0]: 9}))
    yield "no partition", outcome(lambda: admin.list_offsets({("orders", 9): OffsetSpec.LATEST}))


def groups(admin: Admin, address: str) -> Steps:
    admin.create_topic("orders", 3)
    with Producer(bootstrap_servers=address) as producer:
        producer.send("orders", b"x", partition=0)
    settings = {"bootstrap_servers": address, "auto_offset_reset": "earliest"}
    for protocol in ("classic", "consumer"):
        group = f"of-{protocol}"
        with Consumer(group_id=group, group_protocol=protocol, topics=["orders"], **settings) as consumer:
            while not consumer.poll(500):
                pass
            consumer.commit()
            described = admin.describe_groups(group)[group]
            (member,) = described.members
            yield f"{protocol} described", (described[:6], member.client_id, sorted(member.assignment))
            yield f"{protocol} listed", admin.list_groups()
            yield f"{protocol} not empty", outcome(lambda group=group: admin.delete_groups(group))
            yield (
                f"{protocol} refused",
                outcome(lambda group=group: admin.alter_group_offsets(group, {ORDERS[0]: 0})),
            )
            yield (
                f"{protocol} subscribed",
                outcome(lambda group=group: admin.delete_group_offsets(group, [ORDERS[0]])),
            )
        yield f"{protocol} empty", admin.describe_groups(group)[group].members
        found = admin.list_group_offsets(group, [ORDERS[0]], require_stable=True)
        yield f"{protocol} offsets", [each.offset for each in found.values()]
    yield "altered", admin.alter_group_offsets("by-hand", {ORDERS[0]: OffsetAndMetadata(7, "why", 0)})
    yield "offsets", admin.list_group_offsets("by-hand")
    yield "no partition", outcome(lambda: admin.alter_group_offsets("by-hand", {("orders", 9): 0}))
    yield "deleted offsets", admin.delete_group_offsets("by-hand", [ORDERS[0]])
    yield "no member", outcome(lambda: admin.remove_members("by-hand", [MemberToRemove("nix")]))
    yield "gone", outcome(lambda: admin.describe_groups("gone"))
    yield "not deleted", outcome(lambda: admin.delete_groups("gone"))
    yield "deleted", outcome(lambda: admin.delete_groups(["of-classic", "of-consumer"]))


def transactions(admin: Admin, address: str) -> Steps:
    admin.create_topic("orders", 3)
    with Producer(bootstrap_servers=address, transactional_id="shop") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x", partition=0).result()
        yield "listed", [(each.transactional_id, each.state) for each in admin.list_transactions()]
        for filters in ({"states": ["Ongoing"]}, {"states": ["Empty"]}, {"pattern": "s.*"}, {"pattern": "s"}):
            found = admin.list_transactions(**filters)  # type: ignore[arg-type]
            yield f"listed {filters}", [each.transactional_id for each in found]
        yield "bad pattern", outcome(lambda: admin.list_transactions(pattern="("))
        described = admin.describe_transactions("shop")["shop"]
        yield "described", (described.state, described.transaction_timeout_ms, described.topic_partitions)
        (state,) = admin.describe_producers(ORDERS[:1])[ORDERS[0]]
        yield (
            "producers",
            (state.last_sequence, state.coordinator_epoch, state.current_transaction_start_offset),
        )
        yield "not hanging", admin.find_hanging_transactions(max_transaction_timeout_ms=-1000)
        old = AbortTransactionSpec("orders", 0, state.producer_id, state.producer_epoch - 1)
        yield "old epoch", outcome(lambda: admin.abort_transaction(old)) if old.producer_epoch >= 0 else None
        yield "aborted", admin.abort_transaction(old._replace(producer_epoch=state.producer_epoch))
        (state,) = admin.describe_producers(ORDERS[:1])[ORDERS[0]]
        yield "closed", state.current_transaction_start_offset
        yield "still there", admin.describe_transactions("shop")["shop"].state
        yield "fenced", sorted(admin.fence_producers(["shop", "new"]))
        yield "states", [(each.transactional_id, each.state) for each in admin.list_transactions()]
        yield "commit", outcome(producer.commit_transaction)
    yield "gone", outcome(lambda: admin.describe_transactions("gone"))


def cluster(admin: Admin, address: str) -> Steps:
    described = admin.describe_cluster()
    yield "cluster", (described.controller, [each.node_id for each in described.nodes])
    quorum = admin.describe_quorum()
    yield "quorum", (quorum.leader_id, [each.replica_id for each in quorum.voters], quorum.observers)
    features = admin.describe_features()
    yield "features", {name: features.finalized[name] for name in ("transaction.version", "group.version")}
    lower = {"transaction.version": 1}
    yield "upgrade", outcome(lambda: admin.update_features(lower))
    yield (
        "downgrade",
        outcome(
            lambda: admin.update_features(lower, upgrade_type=UpgradeType.SAFE_DOWNGRADE, validate_only=True)
        ),
    )
    admin.create_topic("orders")
    while True:  # Kafka's broker makes the log after the answer
        ((directory,),) = [list(each.values()) for each in admin.describe_log_dirs().values()]
        if ORDERS[0] in directory.replicas:
            break
    yield "log dirs", (directory.error, directory.replicas[ORDERS[0]])


def commands(admin: Admin, address: str) -> Steps:
    def run(*words: str, stdin: bytes = b"") -> tuple[int, str]:
        command = [sys.executable, "-m", "txnkafka", *words, "-b", address]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)
        return done.returncode, done.stdout.decode()

    admin.create_topic("orders", 2)
    yield "produce", run("produce", "orders", "-K", ":", "--transactional-id", "t", stdin=b"a:1\nb:2\nc:3\n")
    status, text = run("consume", "orders", "-e", "-f", r"%p %k %s\n")
    yield "consume", (status, sorted(text.splitlines()))
    status, text = run("consume", "orders", "-G", "g", "-e", "-J")
    yield "group", (status, sorted(json.loads(line)["value"] for line in text.splitlines()))
    yield "groups", run("groups", "--format", "text", "--topic", "orders")
    yield "reset", run("groups", "--group", "g", "--reset-offsets", "--to-earliest")
    yield "topics", run("topics", "list")
    yield "find-hanging", run("txn", "find-hanging", "--max-transaction-timeout", "0")
    yield "delete", run("groups", "--group", "g", "--delete")


@pytest.mark.parametrize("story", [topics, records, groups, transactions, cluster, commands])
def test_both_brokers_answer_alike(story: Callable[[Admin, str], Steps], tmp_path: Path) -> None:
    def told(name: str) -> list[tuple[str, Any]]:
        with (
            broker(name, tmp_path / name.partition(" ")[0], CONFIGS, ()) as running,
            Admin(bootstrap_servers=running.bootstrap_servers) as admin,
        ):
            return list(story(admin, running.bootstrap_servers))

    with ThreadPoolExecutor(len(BROKERS)) as pool:
        ours, kafkas = pool.map(told, BROKERS)
    assert len(ours) == len(kafkas)
    assert [each for each in zip(ours, kafkas, strict=True) if each[0] != each[1]] == []

"""What tools ask of a broker: each API in each of its versions on a broker in memory, through bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import batch_of
from tests.unit.server.wire_node import WireNode, node, topic_id, versions
from txnkafka.coordinator.registry.metadata_records import LogRecord
from txnkafka.error_codes import ErrorCode
from txnkafka.handover.hand_over import check
from txnkafka.handover.registry import read_registry
from txnkafka.handover.report import Owner
from txnkafka.wire.messages import (
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_acls,
    delete_acls,
    describe_client_quotas,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    describe_user_scram_credentials,
    elect_leaders,
    update_features,
)

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def left_by_another_broker(of: WireNode, kind: str, api_key: int, **value: Any) -> None:
    of.broker.metadata.append([LogRecord(kind, api_key, None, 0, value)], of.now_ms)
    of.restart()


# Directories


@versions("DescribeLogDirs")
def test_describe_log_dirs(version: int) -> None:
    of = node(2)
    of.create("u")
    size = batch_of(b"a").nbytes
    of.append(batch_of(b"a"), 1)
    asked = (
        describe_log_dirs.DescribableLogDirTopic(topic="t", partitions=(1, 7)),
        describe_log_dirs.DescribableLogDirTopic(topic="missing", partitions=(0,)),
    )
    (found,) = of.ask("DescribeLogDirs", version, topics=asked).results
    assert (found.error_code, found.log_dir) == (ErrorCode.NONE, "/data")
    assert [(topic.name, topic.partitions[0].partition_index) for topic in found.topics] == [("t", 1)]
    partition = found.topics[0].partitions[0]
    assert (partition.partition_size, partition.offset_lag, partition.is_future_key) == (size, 0, False)
    (found,) = of.ask("DescribeLogDirs", version, topics=None).results
    assert [(topic.name, len(topic.partitions)) for topic in found.topics] == [("t", 2), ("u", 1)]


@versions("AlterReplicaLogDirs")
def test_alter_replica_log_dirs(version: int) -> None:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name="t", partitions=(0, 9))
    for path, expected in (("/data", [ErrorCode.NONE, UNKNOWN]), ("/x", [ErrorCode.LOG_DIR_NOT_FOUND] * 2)):
        moved = alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=(topic,))
        (result,) = node().ask("AlterReplicaLogDirs", version, dirs=(moved,)).results
        assert [each.error_code for each in result.partitions] == expected


# Partitions


def page(of: WireNode, limit: int, *names: str, cursor: tuple[str, int] | None = None) -> Any:
    topics = tuple(describe_topic_partitions.TopicRequest(name=name) for name in names)
    where = cursor and describe_topic_partitions.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    fields = {"topics": topics, "response_partition_limit": limit, "cursor": where or None}
    return of.ask("DescribeTopicPartitions", 0, **fields)


@versions("DescribeTopicPartitions")
def test_describe_topic_partitions(version: int) -> None:
    of = node(2)
    (found, missing) = page(of, 10, "t", "zzz").topics
    assert (found.error_code, found.name, found.topic_id) == (ErrorCode.NONE, "t", topic_id(of))
    assert [(each.partition_index, each.leader_id, each.isr_nodes) for each in found.partitions] == [
        (0, 1, (1,)), (1, 1, (1,)),
    ]  # fmt: skip
    assert (missing.error_code, missing.partitions) == (UNKNOWN, ())


@pytest.mark.parametrize("limit", [-1, 1, 2, 3, 4, 100])
@pytest.mark.parametrize("is_named", [False, True])
def test_pages_have_everything_once(limit: int, is_named: bool) -> None:
    of = node(3)
    of.create("a", 1)
    of.create("u", 2)
    seen: list[tuple[str, int]] = []
    cursor = None
    for _ in range(20):
        answer = page(of, limit, *(["a", "t", "u"] if is_named else []), cursor=cursor)
        rows = [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
        assert 1 <= len(rows) <= max(limit, 1)
        seen += rows
        if answer.next_cursor is None:
            break
        cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
    assert seen == [("a", 0), ("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)]


def test_a_cursor_must_be_among_the_topics() -> None:
    of = node()
    for cursor in (("t", -1), ("u", 0)):
        assert [topic.error_code for topic in page(of, 5, "t", cursor=cursor).topics] == [
            ErrorCode.INVALID_REQUEST
        ]


@versions("ElectLeaders")
def test_elect_leaders(version: int) -> None:
    of = node()
    asked = (elect_leaders.TopicPartitions(topic="t", partitions=(0, 9)),)
    (result,) = of.ask("ElectLeaders", version, topic_partitions=asked).replica_election_results
    errors = [each.error_code for each in result.partition_result]
    assert errors == [ErrorCode.ELECTION_NOT_NEEDED, UNKNOWN]
    (result,) = of.ask("ElectLeaders", version, topic_partitions=None).replica_election_results
    assert (result.topic, result.partition_result) == ("t", ())
    if version:
        answer = of.ask("ElectLeaders", version, topic_partitions=asked, election_type=7)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


@versions("AlterPartitionReassignments")
def test_alter_partition_reassignments(version: int) -> None:
    wanted = ((0, (1,)), (0, None), (0, (2,)), (0, (1, 2)), (9, (1,)))
    partitions = tuple(
        alter_partition_reassignments.ReassignablePartition(partition_index=number, replicas=replicas)
        for number, replicas in wanted
    )
    topics = (alter_partition_reassignments.ReassignableTopic(name="t", partitions=partitions),)
    (result,) = node().ask("AlterPartitionReassignments", version, topics=topics).responses
    assert [ErrorCode(each.error_code).name for each in result.partitions] == [
        "NONE", "NO_REASSIGNMENT_IN_PROGRESS", "INVALID_REPLICA_ASSIGNMENT", "INVALID_REPLICA_ASSIGNMENT",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]  # fmt: skip


@versions("ListPartitionReassignments")
def test_list_partition_reassignments(version: int) -> None:
    answer = node().ask("ListPartitionReassignments", version, topics=None)
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, ())


# The cluster


@versions("DescribeQuorum")
def test_describe_quorum(version: int) -> None:
    of = node()
    for number, expected in ((0, ErrorCode.NONE), (1, UNKNOWN)):
        partition = describe_quorum.PartitionData(partition_index=number)
        topics = (describe_quorum.TopicData(topic_name="__cluster_metadata", partitions=(partition,)),)
        answer = of.ask("DescribeQuorum", version, topics=topics)
        (found,) = answer.topics[0].partitions
        assert (answer.error_code, found.error_code) == (ErrorCode.NONE, expected)
        if expected == ErrorCode.NONE:
            metadata = of.broker.metadata
            (voter,) = found.current_voters
            assert (found.leader_id, found.leader_epoch, voter.replica_id) == (1, metadata.epoch, 1)
            assert found.high_watermark == voter.log_end_offset == metadata.log.log_end_offset
            assert voter.last_fetch_timestamp == (of.now_ms if version else -1)
            assert [each.node_id for each in answer.nodes] == ([1] if version >= 2 else [])


@versions("UnregisterBroker")
def test_unregister_broker(version: int) -> None:
    of = node()
    assert of.ask("UnregisterBroker", version, broker_id=7).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert of.ask("UnregisterBroker", version, broker_id=1).error_code == ErrorCode.INVALID_REQUEST
    left_by_another_broker(
        of, "register_broker_record", 0, broker_id=7, incarnation_id="A" * 22, broker_epoch=5, end_points=[],
        features=[], rack=None, fenced=True,
    )  # fmt: skip
    assert of.ask("UnregisterBroker", version, broker_id=7).error_code == ErrorCode.NONE
    of.restart()
    assert of.ask("UnregisterBroker", version, broker_id=7).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def update(of: WireNode, version: int, *rows: tuple[str, int, int], only: bool = False) -> Any:
    updates = tuple(
        update_features.FeatureUpdateKey(
            feature=name, max_version_level=level, **({"upgrade_type": kind} if version else {})
        )
        for name, level, kind in rows
    )
    options = {"validate_only": only} if version else {}
    return of.ask("UpdateFeatures", version, feature_updates=updates, **options)


@versions("UpdateFeatures")
def test_update_features(version: int) -> None:
    of = node()
    refused = [("transaction.version", 3, 1), ("metadata.version", 29, 1)]
    refused += [("no.such", 1, 1), ("no.such", 0, 1)]
    if version:
        refused += [("metadata.version", 29, 2), ("kraft.version", 2, 1), ("group.version", 0, 9)]
        refused += [("group.version", 0, 1), ("share.version", -1, 1), ("share.version", 2, 1)]
        refused += [("streams.version", 0, 2), ("metadata.version", 33, 1)]
    for row in refused:
        answer = update(of, version, row)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION, row
        assert answer.error_message
    if version:
        assert update(of, version, ("transaction.version", 1, 2), only=True).error_code == ErrorCode.NONE
        assert of.broker.image.features["transaction.version"] == 2
        assert update(of, version, ("transaction.version", 1, 2)).error_code == ErrorCode.NONE
        assert of.broker.transactions.coordinator.version == 1
        of.restart()
        assert of.broker.image.features["transaction.version"] == 1
    answer = update(of, version, ("transaction.version", 2, 1), ("metadata.version", 30, 1))
    assert answer.error_code == ErrorCode.NONE
    assert len(answer.results) == (2 if version <= 1 else 0)
    assert of.broker.transactions.coordinator.version == of.broker.image.features["transaction.version"] == 2


def test_levels_of_a_release() -> None:
    """``kafka-features upgrade --release-version 4.3``: the voter moves to the metadata log, the other levels
    stay."""
    of = node()
    levels = (*of.broker.image.features.items(), ("kraft.version", 1))
    rows = tuple((name, level, 1) for name, level in levels)
    before = of.broker.metadata.log.log_end_offset
    assert update(of, 2, *rows, only=True).error_code == ErrorCode.NONE
    assert (of.broker.metadata.kraft_version, of.broker.metadata.log.log_end_offset) == (0, before)
    for _ in range(2):  # the second time changes nothing
        assert update(of, 2, *rows).error_code == ErrorCode.NONE
        assert (of.broker.metadata.kraft_version, of.broker.metadata.log.log_end_offset) == (1, before + 2)
    software = {"client_software_name": "test", "client_software_version": "1.0"}
    finalized = of.ask("ApiVersions", 4, **software).finalized_features
    assert ("kraft.version", 1) in {(each.name, each.max_version_level) for each in finalized}
    of.restart()
    assert of.broker.metadata.kraft_version == 1
    assert update(of, 2, ("kraft.version", 0, 2)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    registry = read_registry(of.files, of.path)
    (voter,) = registry.voters
    directory_id = of.broker.data.identity.directory_id
    assert (voter["voter_id"], voter["voter_directory_id"]) == (1, directory_id)
    of.close()
    assert check(of.files, of.path, Owner.KAFKA, now_ms=of.now_ms).is_ready


def test_a_voter_needs_the_id_of_its_directory() -> None:
    of = node()
    of.broker.data.identity = of.broker.data.identity._replace(directory_id=None)
    answer = update(of, 2, ("kraft.version", 1, 1))
    assert "meta.properties has no directory.id" in (answer.error_message or "")
    assert of.broker.metadata.kraft_version == 0


def test_a_limit_of_the_isr_for_all_brokers_comes_with_eligible_leaders() -> None:
    of = node()
    feature = "eligible.leader.replicas.version"
    assert update(of, 2, (feature, 0, 2)).error_code == ErrorCode.NONE
    assert feature not in of.broker.image.features
    of.broker.image.configs.clear()
    assert update(of, 2, (feature, 1, 1)).error_code == ErrorCode.NONE
    assert of.broker.configs.of_cluster == {"min.insync.replicas": "1"}


@versions("ListConfigResources")
def test_list_config_resources(version: int) -> None:
    of = node()
    for kinds, expected in (
        ((), [(4, "1"), (2, "t")]), ((4,), [(4, "1")]), ((2,), [(2, "t")]), ((8, 16, 32), []), ((7,), None),
    ):  # fmt: skip
        answer = of.ask("ListConfigResources", version, **({"resource_types": kinds} if version else {}))
        rows = [(each.resource_type, each.resource_name) for each in answer.config_resources]
        assert rows == (expected or [] if version else [])
        is_refused = version > 0 and expected is None
        assert (answer.error_code == ErrorCode.UNSUPPORTED_VERSION) == is_refused


# What needs users


@versions("DescribeClientQuotas")
def test_describe_client_quotas(version: int) -> None:
    of = node()
    for name, rate in (("a", 1000.0), (None, 5.0)):
        left_by_another_broker(
            of, "client_quota_record", 14, entity=[{"entity_type": "user", "entity_name": name}],
            key="consumer_byte_rate", value=rate, remove=False,
        )  # fmt: skip

    def ask(*rows: tuple[str, int, str | None], strict: bool = False) -> Any:
        components = tuple(
            describe_client_quotas.ComponentData(entity_type=kind, match_type=how, match=text)
            for kind, how, text in rows
        )
        answer = of.ask("DescribeClientQuotas", version, components=components, strict=strict)
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return [(each.entity[0].entity_name, each.values[0].value) for each in answer.entries]

    everything = [("a", 1000.0), (None, 5.0)]
    assert ask() == ask(("user", 2, None)) == ask(("user", 2, None), strict=True) == everything
    assert ask(("user", 0, "a")) == [("a", 1000.0)]
    assert ask(("user", 1, None)) == [(None, 5.0)]
    assert ask(strict=True) == ask(("ip", 2, None)) == ask(("user", 2, None), ("client-id", 2, None)) == []
    assert ask(("odd", 0, "a")) == "UNSUPPORTED_VERSION"
    assert ask(("user", 0, None)) == ask(("user", 0, "a"), ("user", 0, "b")) == "INVALID_REQUEST"
    assert ask(("ip", 2, None), ("user", 2, None)) == ask(("", 0, "a")) == "INVALID_REQUEST"


@versions("AlterClientQuotas")
def test_alter_client_quotas(version: int) -> None:
    entity = (alter_client_quotas.EntityData(entity_type="user", entity_name="a"),)
    operations = (alter_client_quotas.OpData(key="consumer_byte_rate", value=1.5),)
    entry = alter_client_quotas.EntryData(entity=entity, ops=operations)
    (result,) = node().ask("AlterClientQuotas", version, entries=(entry,)).entries
    assert (result.error_code, result.entity) == (ErrorCode.INVALID_REQUEST, entity)
    assert "not enforced" in result.error_message


@versions("DescribeUserScramCredentials")
def test_describe_user_scram_credentials(version: int) -> None:
    of = node()
    assert of.ask("DescribeUserScramCredentials", version, users=None).results == ()
    left_by_another_broker(
        of, "user_scram_credential_record", 11, name="a", mechanism=1, salt=b"s", stored_key=b"k",
        server_key=b"k", iterations=4096,
    )  # fmt: skip
    users = tuple(describe_user_scram_credentials.UserName(name=name) for name in ("a", "b", "c", "c"))
    answer = of.ask("DescribeUserScramCredentials", version, users=users)
    rows = {each.user: (ErrorCode(each.error_code).name, each.credential_infos) for each in answer.results}
    (info,) = rows["a"][1]
    assert (rows["a"][0], info.mechanism, info.iterations) == ("NONE", 1, 4096)
    assert (rows["b"][0], rows["c"][0]) == ("RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE")
    (found,) = of.ask("DescribeUserScramCredentials", version, users=()).results
    assert found.user == "a"


@versions("DescribeAcls")
def test_describe_acls(version: int) -> None:
    answer = node().ask("DescribeAcls", version, resource_type_filter=1, operation=1, permission_type=1)
    assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, ())


@versions("CreateAcls")
def test_create_acls(version: int) -> None:
    creations = (create_acls.AclCreation(resource_type=2, resource_name="t", principal="User:a"),) * 2
    results = node().ask("CreateAcls", version, creations=creations).results
    assert [each.error_code for each in results] == [ErrorCode.SECURITY_DISABLED] * 2


@versions("DeleteAcls")
def test_delete_acls(version: int) -> None:
    results = node().ask("DeleteAcls", version, filters=(delete_acls.DeleteAclsFilter(),)).filter_results
    assert [each.error_code for each in results] == [ErrorCode.SECURITY_DISABLED]


def token(name: str, version: int, **fields: Any) -> Any:
    answer = node().ask(name, version, **fields)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return answer


@versions("CreateDelegationToken")
def test_create_delegation_token(version: int) -> None:
    answer = token("CreateDelegationToken", version)
    assert (answer.principal_name, answer.max_timestamp_ms) == ("ANONYMOUS", -1)
    if version >= 3:
        owner = {"owner_principal_type": "User", "owner_principal_name": "a"}
        answer = token("CreateDelegationToken", version, **owner)
        assert (answer.principal_name, answer.token_requester_principal_name) == ("a", "ANONYMOUS")


@versions("RenewDelegationToken")
def test_renew_delegation_token(version: int) -> None:
    assert token("RenewDelegationToken", version, hmac=b"x").expiry_timestamp_ms == -1


@versions("ExpireDelegationToken")
def test_expire_delegation_token(version: int) -> None:
    assert token("ExpireDelegationToken", version, hmac=b"x").expiry_timestamp_ms == -1


@versions("DescribeDelegationToken")
def test_describe_delegation_token(version: int) -> None:
    assert token("DescribeDelegationToken", version, owners=None).tokens == ()

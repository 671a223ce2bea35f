"""Which differences of two answers are meant (``ALLOWED``, and ``AFTER_RESTART`` of both brokers, each with
its reason).

A rule that explains nothing in a whole run is itself a failure: what it says is not true any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from tests.side_by_side.comparison import MISSING, NOTHING_YET, Difference, differences
from tests.side_by_side.messages import Request
from tests.side_by_side.naming import NOW
from txnkafka.wire.schema import ZERO_UUID

__all__ = ["AFTER_RESTART", "ALLOWED", "Rule", "unexplained"]

_REBALANCE_IN_PROGRESS: Final = 27
_UNKNOWN_SERVER_ERROR: Final = -1
_REMOVED: Final = {  # by Kafka 4
    "message.format.version", "message.downconversion.enable", "message.timestamp.difference.max.ms"
}  # fmt: skip
_EPOCHS_AFTER_RESTARTS: Final = (2, 4)  # of Kafka: the end and the start of a leader are an epoch each
_YEAR: Final = 31_536_000  # in seconds
_OUT_OF_ORDER: Final = 45


class Rule(NamedTuple):
    """A difference that is meant: in the answers of ``api``, at paths that match ``path`` as a whole.
    One that is ``by_chance`` may be missing from a whole run."""

    name: str
    reason: str
    api: str
    path: str
    when: Callable[[Request, Any, Any], bool] = lambda request, ours, kafka: True
    by_chance: bool = False

    def explains(self, request: Request, found: Difference) -> bool:
        return bool(
            re.fullmatch(self.api, request.api)
            and re.fullmatch(self.path, found.path)
            and self.when(request, found.ours, found.kafka)
        )


def _is_superset(ours: Any, kafka: Any) -> bool:
    ours = [] if ours == MISSING else ours
    return ours is not None and isinstance(kafka, list) and all(each in kafka for each in ours)


def _has_nameless_topic(request: Request) -> bool:
    nameless = [{"topic_id": ZERO_UUID, "name": None}]
    if request.api == "DescribeTopicPartitions":
        nameless.append({"name": ""})
    return any(topic in nameless for topic in request.fields["topics"] or ())


def _has_twice(request: Request) -> bool:
    """Whether a topic, a partition or a transactional id is in the request more than once."""
    holders = request.fields.get("transactions", [request.fields])
    ids = [holder.get("transactional_id") for holder in holders]
    return len(ids) > len(set(ids)) or any(_has_topic_twice(holder) for holder in holders)


def _has_topic_twice(holder: dict[str, Any]) -> bool:
    found: list[str] = []
    for topic in holder.get("topic_data", ()):
        found += [topic.get("name", ""), *(str(data["index"]) for data in topic["partition_data"])]
    for topic in holder.get("topics", ()):
        found += [topic["name"], *map(str, topic["partitions"])]
    return len(found) > len(set(found))


def _asks_twice(value: Any) -> bool:
    """Whether a list in a request names something more than once."""
    if isinstance(value, dict):
        return any(map(_asks_twice, value.values()))
    if not isinstance(value, list):
        return False
    names = ("resource_type", "resource_name", "name", "group_id")
    asked = [str(list(map(each.get, names)) if isinstance(each, dict) else each) for each in value]
    return len(asked) > len(set(asked)) or any(map(_asks_twice, value))


def _is_of_clock(epoch: Any) -> bool:
    return isinstance(epoch, int) and epoch > _YEAR


def _is_marker_with_later_epoch(ours: Any, kafka: Any) -> bool:
    """Whether both are the one record of an end marker, and differ in its coordinator epoch only."""
    if not isinstance(ours, str) or not isinstance(kafka, str) or ours[:-10] != kafka[:-10]:
        return False
    epochs = [int.from_bytes(bytes.fromhex(each)[-5:-1]) for each in (ours, kafka)]
    return ours.startswith("20") and epochs[0] > _YEAR and epochs[1] in _EPOCHS_AFTER_RESTARTS


def _is_refused_duplicate(request: Request, ours: Any, kafka: Any) -> bool:
    """Whether ours refuses a transactional batch, and Kafka answers with an offset."""
    is_refusal = ours == _OUT_OF_ORDER and kafka == MISSING
    return "'transactional': True" in str(request) and (is_refusal or ours in (-1, MISSING))


def _configs(request: Request) -> dict[str, Any]:
    """The configs of topics that are to be created."""
    topics = request.fields["topics"]
    return {config["name"]: config["value"] for topic in topics for config in topic.get("configs", ())}


def _altered(request: Request) -> list[str]:
    """The names of the configs that are to be changed."""
    return [config["name"] for resource in request.fields["resources"] for config in resource["configs"]]


ALLOWED: Final = (
    Rule(
        "words",
        "an error is explained where Kafka has a code only",
        ".*",
        r"(.*\.)?error_message",
        lambda request, ours, kafka: ours == "words" and kafka in (MISSING, None),
    ),
    Rule(
        "not served",
        "share and streams groups, authentication and several voters are not served",
        "ApiVersions",
        r"api_keys\.\d+",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "ended transaction",
        "no batch repeats one of a transaction that has ended: librdkafka uses sequences again",
        "Produce",
        r"responses\..*\.(error_code|base_offset|log_append_time_ms)",
        _is_refused_duplicate,
    ),
    Rule(
        "features epoch",
        "it is an offset of the metadata log, which has fewer records here",
        "ApiVersions",
        "finalized_features_epoch",
    ),
    Rule(
        "levels of groups",
        "share and streams groups are not served; Kafka has kraft.version 1 from the beginning",
        "ApiVersions",
        r"(finalized|supported)_features\.(share|streams|kraft)\.version",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "change of levels of groups",
        "share and streams groups are not served, so that their levels stay as they are",
        "UpdateFeatures",
        "error_code|results",
        lambda request, ours, kafka: "'share.version'" in str(request),
    ),
    Rule(
        "directory of the voter",
        "a voter that is not in the log has no directory",
        "DescribeQuorum",
        r".*\.replica_directory_id",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "offsets of the metadata log",
        "it has fewer records here",
        "DescribeQuorum",
        r".*\.(high_watermark|log_end_offset)",
    ),
    Rule(
        "controllers",
        "there is no listener of controllers",
        "DescribeQuorum",
        r"nodes\.0\.listeners",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "room",
        "both directories are on one file system, which has other bytes left at another moment",
        "DescribeLogDirs",
        r"results\..*\.usable_bytes",
        by_chance=True,
    ),
    Rule(
        "loggers",
        "there are no loggers whose levels could be changed",
        "ListConfigResources",
        "config_resources",
        lambda request, ours, kafka: ours == MISSING and request.fields["resource_types"] == [8],
    ),
    Rule(
        "quotas",
        "quotas are not enforced, and not taken",
        "AlterClientQuotas",
        r"entries\.0\.error_code",
        lambda request, ours, kafka: (ours, kafka) == (42, MISSING),
    ),
    Rule(
        "many partitions",
        "more than 10,000 new partitions are refused as by CreateTopics; Kafka fails",
        "CreatePartitions",
        r"results\..*\.error_code",
        lambda request, ours, kafka: (ours, kafka) == (44, -1),
    ),
    Rule(
        "partitions of coordinators",
        "ids are found by the number of partitions of a coordinator's topic, so that it is not changed",
        "CreatePartitions",
        r"results\.__transaction_state\.error_code",
        lambda request, ours, kafka: (ours, kafka) == (17, MISSING),
    ),
    Rule(
        "operations",
        "an operation on a config that there is not is refused as such; Kafka fails for a topic",
        "IncrementalAlterConfigs",
        r"responses\..*\.error_code",
        lambda request, ours, kafka: (ours, kafka) == (42, -1) and "'config_operation': 9" in str(request),
    ),
    Rule(
        "settings without effect",
        "settings of the broker that are not known, or have no effect on one node, are refused by name",
        "IncrementalAlterConfigs",
        r"responses\.1\.error_code",
        lambda request, ours, kafka: (ours, kafka) == (42, MISSING)
        and bool({"no.such", "num.io.threads"} & set(_altered(request))),
    ),
    Rule(
        "removed settings",
        "settings of topics that Kafka 4 has removed are taken, for older tools, without effect",
        "CreateTopics",
        ".*",
        lambda request, ours, kafka: bool(_REMOVED & _configs(request).keys()),
    ),
    Rule(
        "text of settings",
        "the answer has the value that is meant, without spaces",
        "CreateTopics",
        r".*\.value",
        lambda request, ours, kafka: ours == str(kafka).strip(),
    ),
    Rule(
        "settings",
        "settings that mean something on several brokers or to tiered storage only are taken and not shown",
        "CreateTopics|DescribeConfigs",
        r".*\.configs\.[a-z.]+",
        lambda request, ours, kafka: (
            ours == MISSING and isinstance(kafka, dict) and "'resource_type': 32" not in str(request)
        ),
    ),
    Rule(
        "nameless topic",
        "a topic without name and id is refused as such, Kafka fails with UNKNOWN_SERVER_ERROR",
        "Metadata|DescribeTopicPartitions",
        ".*",
        lambda request, ours, kafka: _has_nameless_topic(request),
    ),
    Rule(
        "acks",
        "acks other than -1, 0 and 1 are refused before the transaction is looked at",
        "Produce",
        r"responses\..*",
        lambda request, ours, kafka: request.fields["acks"] not in (-1, 0, 1),
    ),
    Rule(
        "coordinator epoch",
        "a marker with a negative coordinator epoch, which no coordinator has, is refused",
        "WriteTxnMarkers",
        r".*\.error_code",
        lambda request, ours, kafka: request.fields["markers"][0]["coordinator_epoch"] < 0 and ours == 87,
    ),
    Rule(
        "zstd",
        "a topic that compresses with zstd is refused to versions that do not know zstd, as before Kafka 4",
        "Fetch",
        ".*",
        lambda request, ours, kafka: request.version < 10 and "~zstd" in str(request.fields),
    ),
    Rule(
        "twice",
        "what a request has twice is answered twice",
        "Produce|AddPartitionsToTxn",
        r"(responses|results_by_transaction)\..*",
        lambda request, ours, kafka: _has_twice(request),
    ),
    Rule(
        "once",
        "what a request asks twice is described once, so that no answer is larger than what it describes",
        "Describe(Transactions|Producers|Groups|Configs)|ConsumerGroupDescribe|OffsetFetch",
        r"(transaction_states|topics|groups|results)\..*",
        lambda request, ours, kafka: MISSING in (ours, kafka) and _asks_twice(request.fields),
    ),
    Rule(
        "vote",
        "of protocols with as many votes, that of the earliest member; Kafka's hash table has its own order",
        "JoinGroup",
        "protocol_name",
        lambda request, ours, kafka: {ours, kafka} == {"range", "sticky"},
    ),
    Rule(
        "instance",
        "an instance id with an id that was given to a dynamic member is no member; Kafka fails",
        "JoinGroup",
        "error_code|member_id",
        lambda request, ours, kafka: (
            kafka in (_UNKNOWN_SERVER_ERROR, MISSING) and bool(request.fields["group_instance_id"])
        ),
    ),
    Rule(
        "forgotten group",
        "a refused JoinGroup leaves an empty consumer group as it is; Kafka forgets it, but not in its log",
        "ConsumerGroupHeartbeat",
        "member_epoch",
        lambda request, ours, kafka: (ours, kafka, request.fields["member_epoch"]) == (4, 2, 0),
    ),
    Rule(
        "superseded",
        "of two requests of a member that wait, the first one is told to join again; Kafka never answers it",
        "JoinGroup|SyncGroup",
        "answer",
        lambda request, ours, kafka: (
            kafka == NOTHING_YET and ours.get("error_code") == _REBALANCE_IN_PROGRESS
        ),
    ),
    Rule(
        "aborted",
        "the list of aborted transactions has those with data in the answer, Kafka's may have later ones",
        "Fetch",
        r".*\.aborted_transactions",
        lambda request, ours, kafka: _is_superset(ours, kafka),
    ),
)

AFTER_RESTART: Final = (
    Rule(
        "leader epoch",
        "a restart raises the epochs of leaders and coordinators to the seconds since 2025, Kafka's by two",
        ".*",
        r".*\.(leader_epoch|current_leader_epoch|coordinator_epoch)",
        lambda request, ours, kafka: _is_of_clock(ours) and kafka in _EPOCHS_AFTER_RESTARTS,
    ),
    Rule(
        "coordinator epoch of a marker",
        "as with the epochs of leaders",
        "Fetch",
        r".*\.records",
        lambda request, ours, kafka: _is_marker_with_later_epoch(ours, kafka),
    ),
    Rule(
        "duplicate",
        "a batch sent again is recognised after a restart, too; Kafka has the last, and its last timestamp",
        "Produce",
        r"responses\..*\.(error_code|base_offset|log_append_time_ms)",
        lambda request, ours, kafka: (ours, kafka) == (MISSING, _OUT_OF_ORDER) or kafka in (-1, MISSING, NOW),
    ),
)


def unexplained(
    request: Request, ours: Any, kafka: Any, used: Counter[str], rules: Iterable[Rule] = ALLOWED
) -> list[Difference]:
    """The differences that no rule explains; ``used`` counts the rules."""
    left = []
    for found in differences(ours, kafka):
        rule = next((rule for rule in rules if rule.explains(request, found)), None)
        if rule is None:
            left.append(found)
        else:
            used[rule.name] += 1
    return left

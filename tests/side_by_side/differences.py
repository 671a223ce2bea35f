"""What two answers differ in, and which differences are meant (``ALLOWED``, each with its reason).

A rule that explains nothing in a whole run is itself a failure: what it says is not true any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from tests.side_by_side.messages import Request
from txnkafka.wire.schema import ZERO_UUID

__all__ = ["ALLOWED", "MISSING", "Difference", "Rule", "differences", "unexplained"]

MISSING: Final = "<missing>"
# Lists that are compared by what their elements are called, because their order means nothing.
_KEYS: Final = {
    "api_keys": ("api_key",),
    "configs": ("name",),
    "active_producers": ("producer_id",),
    "transaction_states": ("transactional_id",),
    "supported_features": ("name",),
    "finalized_features": ("name",),
    "responses": ("name", "topic", "topic_id"),
    "topics": ("name", "topic", "topic_id"),
    "topic_results": ("name",),
    "results_by_topic_v3_and_below": ("name",),
    "partitions": ("partition_index", "partition"),
    "partition_responses": ("index",),
    "results_by_partition": ("partition_index",),
    "markers": ("producer_id",),
}
_REMOVED: Final = {"message.format.version", "message.downconversion.enable"}  # by Kafka 4
_WHOLE: Final = "aborted_transactions"
_SETS: Final = {"unknown_state_filters", "partitions"}


class Difference(NamedTuple):
    """One field; ``path`` as ``responses.0.partitions.1.error_code``."""

    path: str
    ours: Any
    kafka: Any

    def __str__(self) -> str:
        return f"{self.path}: ours {self.ours!r}, Kafka {self.kafka!r}"


class Rule(NamedTuple):
    """A difference that is meant: in the answers of ``api``, at paths that match ``path`` as a whole."""

    name: str
    reason: str
    api: str
    path: str
    when: Callable[[Request, Any, Any], bool] = lambda request, ours, kafka: True

    def explains(self, request: Request, found: Difference) -> bool:
        return bool(
            re.fullmatch(self.api, request.api)
            and re.fullmatch(self.path, found.path)
            and self.when(request, found.ours, found.kafka)
        )


def differences(ours: Any, kafka: Any, path: str = "", name: str = "") -> Iterator[Difference]:
    """All fields that differ."""
    if isinstance(ours, list) and isinstance(kafka, list) and name != _WHOLE:
        ours, kafka = _by_key(name, ours), _by_key(name, kafka)
    if isinstance(ours, dict) and isinstance(kafka, dict):
        for key in [*ours, *(key for key in kafka if key not in ours)]:
            below = f"{path}.{key}" if path else str(key)
            pair = ours.get(key, MISSING), kafka.get(key, MISSING)
            yield from differences(*pair, below, str(key) if isinstance(key, str) else name)
    elif ours != kafka:
        yield Difference(path, ours, kafka)


def _is_superset(ours: Any, kafka: Any) -> bool:
    ours = [] if ours == MISSING else ours
    return ours is not None and isinstance(kafka, list) and all(each in kafka for each in ours)


def _has_nameless_topic(request: Request) -> bool:
    return any(topic == {"topic_id": ZERO_UUID, "name": None} for topic in request.fields["topics"] or ())


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


def _configs(request: Request) -> dict[str, Any]:
    """The configs of topics that are to be created."""
    topics = request.fields["topics"]
    return {config["name"]: config["value"] for topic in topics for config in topic.get("configs", ())}


def _by_key(name: str, elements: list[Any]) -> dict[Any, Any]:
    """The elements by their keys, or by their numbers where two have the same."""
    if all(isinstance(each, dict) for each in elements):
        keyed = {_key(each, _KEYS.get(name, ())): each for each in elements}
        if len(keyed) == len(elements):
            return keyed
    elif name in _SETS:
        elements = sorted(elements)
    return dict(enumerate(elements))


def _key(element: dict[str, Any], names: tuple[str, ...]) -> Any:
    """What an element is called; a number that is 0 is not in it."""
    return next((element[name] for name in names if element.get(name) is not None), 0)


ALLOWED: Final = (
    Rule(
        "words",
        "an error is explained where Kafka has a code only",
        ".*",
        r"(.*\.)?error_message",
        lambda request, ours, kafka: ours == "words" and kafka == MISSING,
    ),
    Rule(
        "not served",
        "consumer groups, and what administers several brokers, are not served",
        "ApiVersions",
        r"api_keys\.\d+",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "offsets",
        "__consumer_offsets is not created, because groups are not served",
        "Metadata",
        r"topics\.__consumer_offsets",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "features epoch",
        "it is an offset of the metadata log, which has fewer records here",
        "ApiVersions",
        "finalized_features_epoch",
    ),
    Rule(
        "quorum",
        "there is no quorum of voters, and so no level of kraft.version",
        "ApiVersions",
        r"finalized_features\.kraft\.version",
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "small segments",
        "segments may be smaller than 1 MiB",
        "CreateTopics",
        ".*",
        lambda request, ours, kafka: "segment.bytes" in _configs(request),
    ),
    Rule(
        "retention",
        "retention.bytes below -1 is refused",
        "CreateTopics",
        ".*",
        lambda request, ours, kafka: _configs(request).get("retention.bytes") == "-2",
    ),
    Rule(
        "removed settings",
        "message.format.version and message.downconversion.enable are taken, for older tools, without effect",
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
        lambda request, ours, kafka: ours == MISSING,
    ),
    Rule(
        "settings of the broker",
        "settings of the broker are those of its command line",
        "DescribeConfigs",
        r".*\.read_only",
        lambda request, ours, kafka: ours is True and request.fields["resources"][0]["resource_type"] == 4,
    ),
    Rule(
        "nameless topic",
        "a topic without name and id is refused as such, Kafka fails with UNKNOWN_SERVER_ERROR",
        "Metadata",
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
        "aborted",
        "the list of aborted transactions has those with data in the answer, Kafka's may have later ones",
        "Fetch",
        r".*\.aborted_transactions",
        lambda request, ours, kafka: _is_superset(ours, kafka),
    ),
)


def unexplained(request: Request, ours: Any, kafka: Any, used: Counter[str]) -> list[Difference]:
    """The differences that no rule explains; ``used`` counts the rules."""
    left = []
    for found in differences(ours, kafka):
        rule = next((rule for rule in ALLOWED if rule.explains(request, found)), None)
        if rule is None:
            left.append(found)
        else:
            used[rule.name] += 1
    return left

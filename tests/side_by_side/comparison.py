"""What two answers differ in: ``differences``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

__all__ = ["MISSING", "NOTHING_YET", "Difference", "differences"]

MISSING: Final = "<missing>"
NOTHING_YET: Final = "<nothing yet>"
"""Instead of an answer that has not come."""
# Lists that are compared by what their elements are called, because their order means nothing.
_KEYS: Final = {
    "api_keys": ("api_key",),
    "configs": ("name",),
    "active_producers": ("producer_id",),
    "transaction_states": ("transactional_id",),
    "supported_features": ("name",),
    "finalized_features": ("name",),
    "responses": ("resource_name", "name", "topic", "topic_id"),
    "topics": ("name", "topic", "topic_id"),
    "topic_results": ("name",),
    "results_by_topic_v3_and_below": ("name",),
    "partitions": ("partition_index", "partition"),
    "partition_responses": ("index",),
    "results_by_partition": ("partition_index",),
    "markers": ("producer_id",),
    "groups": ("group_id",),
    "members": ("member_id",),
    "topic_partitions": ("topic_id",),
    "results": ("group_id", "resource_name", "name", "topic_name"),
    "config_resources": ("resource_name",),
}
_WHOLE: Final = "aborted_transactions"
_SETS: Final = {"unknown_state_filters", "partitions", "subscribed_topic_names"}


class Difference(NamedTuple):
    """One field; ``path`` as ``responses.0.partitions.1.error_code``."""

    path: str
    ours: Any
    kafka: Any

    def __str__(self) -> str:
        return f"{self.path}: ours {self.ours!r}, Kafka {self.kafka!r}"


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

"""Known levels of features, and the levels that this broker serves. Pure.

Source: ``MetadataVersion``, ``Feature``, ``KRaftVersion`` of Apache Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

KRAFT_VERSION: Final = "kraft.version"
METADATA_VERSION: Final = "metadata.version"
KNOWN_FEATURES: Final = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 33),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""Lowest and highest level of each known feature."""
_HIGHEST_OF_4_3: Final = {METADATA_VERSION: 30, "share.version": 1}  # where 4.4 knows more
_NOT_SERVED: Final = ("share.version", "streams.version")  # group types whose APIs this broker does not have
SERVED_FEATURES: Final = {name: levels for name, levels in KNOWN_FEATURES.items() if name not in _NOT_SERVED}
"""Lowest and highest level of each feature whose APIs this broker serves."""
UNKNOWN_LEVEL_REMEDY: Final = "use the release of Apache Kafka that set the level, or a newer txnkafka"


def unknown_levels(finalized: Mapping[str, int]) -> Iterator[str]:
    """Yield an error for each finalized feature whose level is unknown: at an unknown level, records of the
    metadata log may have another meaning. A registry without features belongs to a directory on which no
    broker has started."""
    for name, level in finalized.items():
        low, high = KNOWN_FEATURES.get(name, (0, -1))
        if not low <= level <= high:
            known = f"known levels are {low} to {high}" if name in KNOWN_FEATURES else "the name is unknown"
            yield f"the feature {name} has level {level}; {known}"
    if finalized and METADATA_VERSION not in finalized:
        yield f"the registry has no {METADATA_VERSION}"


def newer_levels(finalized: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the features, with their levels, that Apache Kafka 4.4 knows and 4.3 does not."""
    for name, highest in _HIGHEST_OF_4_3.items():
        if highest < finalized.get(name, 0) <= KNOWN_FEATURES[name][1]:
            yield name, finalized[name]

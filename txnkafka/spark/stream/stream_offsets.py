"""The offsets of a stream, as Spark keeps them in the checkpoint of a query.

They look like the offsets of Spark's Kafka source, ``{"orders": {"0": 23}}``, with two additions, whose names
are invalid for topics. ``#first`` has the offsets where the first batch begins: Spark does not record them,
and asks for the initial offsets again if the first batch is repeated after a restart. ``#cleaned`` has, for
compacted partitions, the offset up to which the log was compacted when the range was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from txnkafka.model import TopicPartition

FIRST: Final = "#first"
CLEANED: Final = "#cleaned"
Offsets = Mapping[TopicPartition, int]


class StreamOffsets(NamedTuple):
    """The next offset of each partition. ``first``: the begin of the first batch, which ends here.
    ``is_initial``: no batch ends here; the first one begins here."""

    offsets: Offsets
    cleaned: Offsets = MappingProxyType({})
    first: Offsets | None = None
    is_initial: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> StreamOffsets:
        """Return the offsets of a JSON object. Raises ValueError for an object of another source."""
        rest = dict(given)
        first, cleaned = rest.pop(FIRST, None), rest.pop(CLEANED, {})
        is_initial = first is True
        try:
            return cls(
                _parsed(rest),
                _parsed(cleaned),
                None if is_initial or first is None else _parsed(first),
                is_initial,
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f'{given!r} are not offsets such as {{"orders": {{"0": 23}}}}: another source wrote the '
                "checkpoint; start the query with a new checkpointLocation"
            ) from error

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object. Equal offsets give equal texts: Spark compares texts."""
        found: dict[str, Any] = _object(self.offsets)
        if self.cleaned:
            found[CLEANED] = _object(self.cleaned)
        if self.is_initial:
            found[FIRST] = True
        elif self.first is not None:
            found[FIRST] = _object(self.first)
        return found


def _object(offsets: Offsets) -> dict[str, Any]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return dict(found)


def _parsed(given: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in given.items()
        for partition, offset in partitions.items()
    }

"""The logs of a data directory by partition, with a helpful error for a wrong key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from txnkafka.storage.log.partition_log import PartitionLog

_LISTED = 3


class OpenLogs(dict[TopicPartition, "PartitionLog"]):
    """Open logs by partition. A missing key raises KeyError, which shows the form of a key and the open
    logs."""

    def __missing__(self, key: object) -> NoReturn:
        names = [str(each) for each in sorted(self)[:_LISTED]]
        open_here = ", ".join(names + ["…"] * (len(self) > _LISTED)) or "none"
        how = "" if isinstance(key, TopicPartition) else 'a key is TopicPartition("orders", 0); '
        raise KeyError(f"no open log of {str(key)!r}: {how}logs here: {open_here}")

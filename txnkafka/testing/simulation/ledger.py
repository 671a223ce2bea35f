"""What must have happened in a long run: a simulation in which a fault or an action never occurs proves
nothing about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.testing.simulation.swarm import FAULTS

if TYPE_CHECKING:
    from collections import Counter

__all__ = ["COMPLETE_EVENTS", "EXPECTED", "missing"]

COMPLETE_EVENTS: Final = 400_000
"""A run of so many events in all its seeds must have everything."""
_OF_THE_NETWORK: Final = (
    "request dropped",
    "request held back",
    "request duplicated",
    "request arrived late",
    "answer lost",
)
_MET: Final = (
    "disk error met",
    "full disk met",
    "start failed by the disk",
    "recovery cut",
    "log compacted",
    "offsets compacted",
    "retention",
)
_REQUESTS: Final = (
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "CreateTopics",
    "DeleteGroups",
    "DeleteTopics",
    "DescribeProducers",
    "DescribeTransactions",
    "EndTxn",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListOffsets",
    "ListTransactions",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "Produce",
    "SyncGroup",
    "TxnOffsetCommit",
)
_ACTIONS: Final = (
    "batch acknowledged",
    "calm",
    "commit of a zombie refused",
    "consumer begins anew",
    "copier overslept in a transaction",
    "copier stopped in a transaction",
    "copies aborted",
    "copies committed",
    "generation joined",
    "instance fenced",
    "instance joined",
    "member left",
    "member overslept",
    "member stopped",
    "offset expired",
    "offset out of range",
    "offsets committed",
    "offsets deleted",
    "offsets of a zombie refused",
    "overslept in a transaction",
    "process stopped in a transaction",
    "producer fenced",
    "producer id rotated",
    "read in a transaction",
    "sequence wrapped",
    "start",
    "topic created",
    "topic deleted",
    "transaction aborted",
    "transaction committed",
    "transaction without records",
    "transactional id expired",
    "unstable offset",
)
EXPECTED: Final = (*FAULTS, *_OF_THE_NETWORK, *_MET, *_REQUESTS, *_ACTIONS)


def missing(counts: Counter[str], events: int) -> list[str]:
    """What never happened in a run that is long enough for everything."""
    return [name for name in EXPECTED if not counts[name]] if events >= COMPLETE_EVENTS else []

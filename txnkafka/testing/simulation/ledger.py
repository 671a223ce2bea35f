"""The events that a long run must contain: a simulation without some fault or action proves nothing about
it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.testing.simulation.swarm import FAULTS

if TYPE_CHECKING:
    from collections import Counter

COMPLETE_EVENTS: Final = 1_500_000
"""A run with this total number of events must contain all of them."""
_OF_THE_NETWORK: Final = (
    "request dropped",
    "request held back",
    "request duplicated",
    "request arrived late",
    "answer lost",
    "connection cut",
)
_MET: Final = (
    "disk error met",
    "flush in several steps",
    "full disk met",
    "full disk survived",
    "kill in a call",
    "killed after a disk error",
    "power cut in a call",
    "recovery points written",
    "start failed by the disk",
    "recovery cut",
    "log compacted",
    "offsets compacted",
    "retention",
)
_REQUESTS: Final = (
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "CreateTopics",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeConfigs",
    "DescribeProducers",
    "DescribeTransactions",
    "EndTxn",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
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
    "classic group without a generation",
    "commit of a former member refused",
    "commit of a stale consumer refused",
    "commit of a zombie refused",
    "consumer begins anew",
    "consumer expelled",
    "consumer group Assigning",
    "consumer group Empty",
    "consumer group Reconciling",
    "consumer group Stable",
    "consumer joined",
    "consumer kept its partitions",
    "consumer left",
    "copier overslept in a transaction",
    "copier stopped in a transaction",
    "copies aborted",
    "copies committed",
    "generation joined",
    "group downgraded",
    "group upgraded",
    "hostile: fetch beyond the end",
    "hostile: gap of sequences",
    "hostile: old commit",
    "hostile: old heartbeat",
    "hostile: older epoch",
    "instance fenced",
    "instance joined",
    "instance not released",
    "member left",
    "member overslept",
    "member stopped",
    "metadata snapshot",
    "offset expired",
    "offset out of range",
    "offsets committed",
    "offsets deleted",
    "offsets of a former member refused",
    "operation not finished in time",
    "overslept in a transaction",
    "partitions given up",
    "partitions taken",
    "process stopped in a transaction",
    "producer fenced",
    "producer id rotated",
    "producer upgraded",
    "read in a transaction",
    "records deleted",
    "sequence given up",
    "sequence wrapped",
    "settings changed",
    "small fetch",
    "start",
    "static consumer came back",
    "static consumer left for a while",
    "topic created",
    "topic deleted",
    "transaction aborted",
    "transaction committed",
    "transaction committed at once",
    "transaction without records",
    "transactional id expired",
    "unstable offset",
)
EXPECTED: Final = (*FAULTS, *_OF_THE_NETWORK, *_MET, *_REQUESTS, *_ACTIONS)


def missing(counts: Counter[str], events: int) -> list[str]:
    """Return the events that never happened in a sufficiently long run."""
    return [name for name in EXPECTED if not counts[name]] if events >= COMPLETE_EVENTS else []

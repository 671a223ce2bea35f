"""The same requests to our broker and to Apache Kafka."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.side_by_side.comparison import Difference
from tests.side_by_side.differences import ALLOWED, Rule, unexplained
from tests.side_by_side.messages import Request
from tests.side_by_side.sides import Conversation, Side

__all__ = ["COORDINATED", "READING", "Compared", "Pair"]

PATIENCE_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.002
LONG_SECONDS: Final = 60.0
AT_ONCE: Final = 50  # requests under way on one connection
COORDINATED: Final = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"})
"""Kafka refuses these with CONCURRENT_TRANSACTIONS while a transaction is being completed: they are sent
again, as clients do. Ours wait."""
READING: Final = frozenset(
    {
        "Fetch",
        "ListOffsets",
        "Metadata",
        "FindCoordinator",
        "OffsetForLeaderEpoch",
        "DescribeConfigs",
        "DescribeCluster",
        "DescribeProducers",
        "DescribeTransactions",
        "ListTransactions",
        "OffsetFetch",
        "DescribeGroups",
        "ConsumerGroupDescribe",
        "ListGroups",
        "DescribeTopicPartitions",
        "DescribeLogDirs",
        "ApiVersions",
        "ListConfigResources",
    }
)
"""What changes nothing and may be asked again: a broker completes transactions, creates and deletes topics
behind the answer, and hears of levels of features late."""
_BUSY: Final = {14, 15, 16, 51}  # loading, not available, not coordinator, CONCURRENT_TRANSACTIONS
_NOT_ENOUGH_REPLICAS: Final = 19  # what Produce before version 12 says for them


@dataclass
class Compared:
    """One request with both answers."""

    request: Request
    ours: dict[str, Any]
    kafka: dict[str, Any]
    differences: list[Difference]


@dataclass
class Pair:
    """One conversation with both brokers. ``used`` counts the ``rules`` that explained a difference."""

    ours: Conversation
    kafka: Conversation
    used: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)
    is_settled: bool = True
    rules: tuple[Rule, ...] = ALLOWED

    @classmethod
    def of(cls, ours: Side, kafka: Side, prefix: str) -> Pair:
        return cls(Conversation(ours, prefix), Conversation(kafka, prefix))

    def ask(self, request: Request) -> Compared:
        """Ask both. What may be asked again is, until the answers agree or patience is over."""
        if request.api not in COORDINATED or _has_no_error(request):
            self.settle()
        self._note(request)
        self.ours.send(request)
        self.kafka.send(request)
        ours, kafka = self.ours.receive(request), self.kafka.receive(request)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._may_change(request, ours, kafka) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            if request.api in READING:
                ours = self.ours.ask(request)
            kafka = self.kafka.ask(request)
        return Compared(request, ours, kafka, unexplained(request, ours, kafka, self.used, self.rules))

    def _may_change(self, request: Request, ours: Any, kafka: Any) -> bool:
        if request.api in READING:
            is_session = request.fields.get("session_epoch", -1) not in (0, -1)
            return not is_session and bool(unexplained(request, ours, kafka, Counter(), self.rules))
        busy = _BUSY | {_NOT_ENOUGH_REPLICAS} if request.api == "Produce" else _BUSY
        return bool(busy & set(_codes(kafka))) and set(_codes(kafka)) != set(_codes(ours))

    def wait_for(self, request: Request, text: str) -> None:
        """Ask both until their answers have a text."""
        deadline = time.monotonic() + LONG_SECONDS
        for conversation in (self.ours, self.kafka):
            while text not in str(conversation.ask(request)) and time.monotonic() < deadline:
                time.sleep(10 * PAUSE_SECONDS)

    def repeat(self, request: Request, times: int) -> None:
        """Send a request many times, some at once, without a look at the answers."""
        both = self.ours, self.kafka
        while times:
            count = min(times, AT_ONCE)
            for conversation in both:
                for _ in range(count):
                    conversation.send(request)
            for conversation in both:
                for _ in range(count):
                    conversation.receive(request)
            times -= count

    def settle(self) -> None:
        """Wait until both have completed the transactions that were ended."""
        if self.is_settled:
            return
        question = Request("DescribeTransactions", 0, {"transactional_ids": sorted(self.ids)})
        deadline = time.monotonic() + PATIENCE_SECONDS
        for conversation in (self.ours, self.kafka):
            while "Prepare" in str(conversation.ask(question)) and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)
        self.is_settled = True

    def _note(self, request: Request) -> None:
        transactional_id = request.fields.get("transactional_id")
        if request.api in ("EndTxn", "InitProducerId") and transactional_id:
            self.ids.add(transactional_id)
            self.is_settled = False


def _has_no_error(request: Request) -> bool:
    """Whether the answer has no place for CONCURRENT_TRANSACTIONS: no partitions are added."""
    return request.api == "AddPartitionsToTxn" and "'partitions': []" in str(request.fields)


def _codes(answer: Any) -> list[int]:
    """All error codes of an answer."""
    if isinstance(answer, list):
        return [code for each in answer for code in _codes(each)]
    if not isinstance(answer, dict):
        return []
    found = []
    for name, value in answer.items():
        if name.endswith("error_code"):
            found.append(value)
        else:
            found += _codes(value)
    return found

"""Steps in few words, and the requests that they become by what was answered before.

A step says "the producer of ~a, its epoch and one more, the next sequence". So a sequence of steps stays
meaningful when some of them are left out, which is how a failing one is shortened.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.side_by_side.messages import Request
from tests.side_by_side.naming import FOREIGN, topic_uuid

__all__ = ["Step", "Story"]

TOPIC: Final = "~t"
TOPIC_ID: Final = topic_uuid(0)
LAST_SEQUENCE: Final = 2**31 - 1
Identity = tuple[int, int]


class Step(NamedTuple):
    """One request. ``who`` is a producer (``~a`` is also its transactional id, ``p`` has none), ``delta`` is
    added to its epoch, ``options`` depend on the kind."""

    kind: str
    version: int
    who: str = ""
    delta: int = 0
    options: dict[str, Any] = {}  # noqa: RUF012

    def __str__(self) -> str:
        epoch = f" epoch{self.delta:+d}" if self.delta else ""
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind} v{self.version} {self.who}{epoch} {options}".rstrip()


class Story:
    """The knowledge of the clients of one conversation. ``timeout_ms`` is their transaction timeout."""

    def __init__(self, timeout_ms: int = 60_000) -> None:
        self._timeout_ms = timeout_ms
        self._identities: dict[str, Identity] = {}
        self._next: dict[tuple[Identity, int], int] = {}
        self._sent: dict[tuple[Identity, int], list[int]] = {}
        self._written: set[int] = set()  # partitions

    def request(self, step: Step) -> Request:
        """The request of a step."""
        made: tuple[str, dict[str, Any]] = getattr(self, f"_{step.kind}")(step, step.options)
        return Request(made[0], step.version, made[1])

    def answered(self, step: Step, request: Request, answer: dict[str, Any]) -> None:
        """Learn from an answer."""
        if step.kind in ("init", "end") and answer.get("producer_id", -1) != -1:
            self._identities[step.who] = answer["producer_id"], answer.get("producer_epoch", 0)
        elif step.kind == "produce" and "responses" in answer:
            for topic in answer["responses"]:
                for partition in topic["partition_responses"]:
                    if not partition.get("error_code"):
                        self._wrote(step, request, partition.get("index", 0))

    def _wrote(self, step: Step, request: Request, partition: int) -> None:
        self._written.add(partition)
        for topic in request.fields["topic_data"]:
            for data in topic["partition_data"]:
                (batch,) = data["records"]
                if data["index"] == partition and batch["base_sequence"] >= 0:
                    identity = batch["producer_id"], batch["producer_epoch"]
                    key, first = (identity, partition), batch["base_sequence"]
                    if first not in self._sent.setdefault(key, []):
                        self._sent[key].append(first)
                        self._next[key] = (first + len(batch["values"])) & LAST_SEQUENCE

    def identity(self, step: Step) -> Identity:
        producer_id, epoch = self._identities.get(step.who, (FOREIGN, 0))
        if step.options.get("alien"):
            producer_id = FOREIGN
        return producer_id, max(-1, min(epoch + step.delta, 32767))

    def _sequence(self, key: tuple[Identity, int], kind: str) -> int:
        if key[1] not in self._written:
            return 0  # the one sequence that Kafka before 4.5 and txnkafka both accept (KAFKA-15591)
        following, sent = self._next.get(key, 0), self._sent.get(key, [])
        if kind == "duplicate":
            return sent[-1] if sent else following
        if kind == "old":
            return sent[max(0, len(sent) - 3)] if sent else following
        return {"next": following, "gap": following + 2, "zero": 0, "wrap": LAST_SEQUENCE - 1}[kind]

    # Requests of producers

    def _init(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        fields: dict[str, Any] = {
            "transactional_id": step.who if step.who.startswith("~") else options.get("id"),
            "transaction_timeout_ms": options.get("timeout", self._timeout_ms),
        }
        if options.get("again") and step.version >= 3:
            fields["producer_id"], fields["producer_epoch"] = self.identity(step)
        return "InitProducerId", fields

    def _produce(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        identity, data = self.identity(step), []
        for partition in options.get("partitions", [0]):
            batch = {
                "producer_id": identity[0],
                "producer_epoch": identity[1],
                "base_sequence": self._sequence((identity, partition), options.get("sequence", "next")),
                "transactional": options.get("transactional", step.who.startswith("~")),
                "values": [f"{options.get('value', 'v')}{i}" for i in range(options.get("count", 1))],
            }
            data.append({"index": partition, "records": [batch]})
        topic = {"topic_id": TOPIC_ID} if step.version >= 13 else {"name": TOPIC}
        is_named = step.who.startswith("~") and not options.get("nameless")
        fields = {
            "acks": options.get("acks", -1),
            "timeout_ms": 30_000,
            "topic_data": [{**topic, "partition_data": data}],
            "transactional_id": step.who if is_named else None,
        }
        return "Produce", fields

    def _add(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        producer_id, epoch = self.identity(step)
        topics = [{"name": options.get("topic", TOPIC), "partitions": options.get("partitions", [0])}]
        if step.version < 4:
            return "AddPartitionsToTxn", {
                "v3_and_below_transactional_id": step.who,
                "v3_and_below_producer_id": producer_id,
                "v3_and_below_producer_epoch": epoch,
                "v3_and_below_topics": topics,
            }
        transaction = {
            "transactional_id": step.who,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "verify_only": options.get("verify", False),
            "topics": topics,
        }
        return "AddPartitionsToTxn", {"transactions": [transaction]}

    def _offsets(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "AddOffsetsToTxn", {**self._of(step), "group_id": options.get("group", "~g")}

    def _send(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        parts = [
            {"partition_index": number, "committed_offset": options.get("offset", 0)}
            for number in options.get("partitions", [0])
        ]
        topic = {"topic_id": TOPIC_ID} if step.version >= 6 else {"name": options.get("topic", TOPIC)}
        return "TxnOffsetCommit", {
            **self._of(step),
            "group_id": options.get("group", "~g"),
            "topics": [{**topic, "partitions": parts}],
        }

    def _commit(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        parts = [
            {"partition_index": number, "committed_offset": options.get("offset", 0)}
            for number in options.get("partitions", [0])
        ]
        topic = {"topic_id": TOPIC_ID} if step.version >= 10 else {"name": TOPIC}
        topics = [{**topic, "partitions": parts}]
        return "OffsetCommit", {"group_id": options.get("group", "~g"), "topics": topics}

    def _committed(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        topic = {"topic_id": TOPIC_ID} if step.version >= 10 else {"name": TOPIC}
        group = {
            "group_id": options.get("group", "~g"),
            "topics": None if options.get("all") else [{**topic, "partition_indexes": [0, 1]}],
        }
        stable = {"require_stable": options.get("stable", False)}
        return "OffsetFetch", {"groups": [group], **stable} if step.version >= 8 else {**group, **stable}

    def _end(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "EndTxn", {**self._of(step), "committed": options.get("commit", True)}

    def _of(self, step: Step) -> dict[str, Any]:
        producer_id, epoch = self.identity(step)
        return {"transactional_id": step.who, "producer_id": producer_id, "producer_epoch": epoch}

    def _marker(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        producer_id, epoch = self.identity(step)
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": options.get("commit", False),
            "topics": [{"name": TOPIC, "partition_indexes": options.get("partitions", [0])}],
            "coordinator_epoch": options.get("coordinator", 0),
        }
        if step.version >= 2:
            marker["transaction_version"] = options.get("level", 0)
        return "WriteTxnMarkers", {"markers": [marker]}

    # Requests of consumers and tools

    def _fetch(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        topic = {"topic_id": TOPIC_ID} if step.version >= 13 else {"topic": TOPIC}
        partitions = [
            {
                "partition": number,
                "fetch_offset": options.get("offset", 0),
                "partition_max_bytes": options.get("bytes", 1 << 20),
            }
            for number in options.get("partitions", [0])
        ]
        return "Fetch", {
            "max_wait_ms": 0,
            "max_bytes": options.get("bytes", 1 << 20),
            "isolation_level": options.get("isolation", 1),
            "topics": [{**topic, "partitions": partitions}],
        }

    def _times(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        partitions = [{"partition_index": number, "timestamp": options["time"]} for number in (0, 1)]
        fields = {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": partitions}]}
        if step.version >= 2:
            fields["isolation_level"] = options.get("isolation", 1)
        return "ListOffsets", fields

    def _producers(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0, 1]}]}

    def _describe(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "DescribeTransactions", {"transactional_ids": ["~a", "~b"]}

    def _list(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        fields: dict[str, Any] = {"state_filters": options.get("states", [])}
        ids = sorted({identity[0] for identity in self._identities.values()})
        fields["producer_id_filters"] = ids or [FOREIGN]
        if step.version >= 1:
            fields["duration_filter"] = options.get("duration", -1)
        if step.version >= 2:
            fields["transactional_id_pattern"] = options.get("pattern", "~.*")
        return "ListTransactions", fields

    def _epochs(self, step: Step, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        partitions = [{"partition": number, "leader_epoch": options.get("epoch", 0)} for number in (0, 1, 7)]
        return "OffsetForLeaderEpoch", {"topics": [{"topic": TOPIC, "partitions": partitions}]}

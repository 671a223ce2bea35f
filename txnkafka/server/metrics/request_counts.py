"""``RequestCounts``: counts of requests and responses, as plain numbers. For the thread of the loop.

The dispatcher calls ``begin`` for each request, and answers with the returned function.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.env import running_seconds
from txnkafka.error_codes import ErrorCode
from txnkafka.record.batch_header import HEADER_SIZE, MAGIC, RECORDS_COUNT
from txnkafka.server.metrics.durations import Durations
from txnkafka.server.peer import CloseConnection
from txnkafka.wire.fields import ArrayOf, fields_of, is_message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Reply
    from txnkafka.wire.messages.apis import Api

MOST_TOPICS: Final = 1000
OTHERS: Final = "(others)"  # not a valid topic name
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_ERRORS: Final = ("error_code", "partition_error_code")


class _Sent(NamedTuple):
    """A batch of a Produce request."""

    topic: str
    topic_id: str
    partition: int
    records: int
    size: int


class RequestCounts:
    """Counters by API (``requests``, ``errors``, ``seconds``) and by topic (``messages_in`` and the others).

    At most a thousand existing topics are counted by name, all others as ``OTHERS``."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, Durations] = {}
        self.fenced = 0
        self.messages_in: Counter[str] = Counter()
        self.bytes_in: Counter[str] = Counter()
        self.bytes_out: Counter[str] = Counter()
        self.failed_produce: Counter[str] = Counter()
        self._topics: set[str] = set()

    def begin(self, broker: Broker, api: Api, version: int, message: Any, reply: Reply) -> Reply:
        """Count a request; return a ``reply`` that counts the response and passes it on."""
        begin = running_seconds()
        name = api.name
        self.requests[name, version] += 1
        names, topics = broker.image.topic_names, broker.image.topics
        sent = list(_sent(message, names)) if name == "Produce" else []
        seconds = self.seconds.get(name)
        if seconds is None:
            seconds = self.seconds[name] = Durations()

        def replied(response: Any) -> None:
            seconds.add(running_seconds() - begin)
            if name == "Produce":
                self._produced(sent, response, topics)
            elif name == "Fetch":
                self._fetched(response, names, topics)
            self._count_errors(name, response)
            reply(response)

        return replied

    def _count_errors(self, name: str, response: Any) -> None:
        for code in _errors_in(response):
            error = ErrorCode(code)
            self.errors[name, error.name] += 1
            self.fenced += error in _FENCED

    def _produced(self, sent: list[_Sent], response: Any, topics: Collection[str]) -> None:
        is_refused = isinstance(response, CloseConnection)  # with acks 0 only this shows the failure
        failed = {
            (topic.name or topic.topic_id, partition.index)
            for topic in getattr(response, "responses", ())
            for partition in topic.partition_responses
            if partition.error_code
        }
        for batch in sent:
            topic = self._counted_topic(batch.topic, topics)
            if is_refused or {(batch.topic, batch.partition), (batch.topic_id, batch.partition)} & failed:
                self.failed_produce[topic] += 1
            else:
                self.messages_in[topic] += batch.records
                self.bytes_in[topic] += batch.size

    def _fetched(self, response: Any, names: dict[str, str], topics: Collection[str]) -> None:
        for topic in getattr(response, "responses", ()):
            size = sum(len(partition.records or b"") for partition in topic.partitions)
            if size:
                name = topic.topic or names.get(topic.topic_id, OTHERS)
                self.bytes_out[self._counted_topic(name, topics)] += size

    def _counted_topic(self, topic: str, topics: Collection[str]) -> str:
        if topic not in self._topics:
            if len(self._topics) >= MOST_TOPICS or topic not in topics:
                return OTHERS
            self._topics.add(topic)
        return topic

    def keep_only(self, topics: Collection[str]) -> None:
        """Forget deleted topics, so that others can take their places."""
        for topic in self._topics.difference(topics):
            self._topics.remove(topic)
            for counter in (self.messages_in, self.bytes_in, self.bytes_out, self.failed_produce):
                counter.pop(topic, None)


def _sent(message: Any, names: dict[str, str]) -> Iterator[_Sent]:
    """Yield the batches of a Produce request as their headers describe them, without keeping its bytes."""
    for topic in message.topic_data:
        name = topic.name or names.get(topic.topic_id, OTHERS)
        for data in topic.partition_data:
            records = memoryview(data.records or b"")
            count = 0
            if len(records) >= HEADER_SIZE and records[MAGIC] == 2:
                count = max(0, int.from_bytes(records[RECORDS_COUNT : RECORDS_COUNT + 4], "big", signed=True))
            yield _Sent(name, topic.topic_id, data.index, count, len(records))


_Plan = tuple[list[str], list[str]]
_PLANS: Final[dict[Any, _Plan]] = {}


def _plan(cls: Any) -> _Plan:
    """Return the names of a struct's fields that are error codes, and of its arrays that may contain more."""
    found = _PLANS.get(cls)
    if found is None:
        found = _PLANS[cls] = [], []
        for field in fields_of(cls):
            kind = field.schema.type
            if field.name in _ERRORS:
                found[0].append(field.name)
            elif isinstance(kind, ArrayOf) and isinstance(kind.element, type) and any(_plan(kind.element)):
                found[1].append(field.name)
    return found


def _errors_in(response: Any) -> Iterator[int]:
    """Yield all error codes of a response except NONE."""
    if not is_message(response):
        return  # no response, or the end of the connection
    errors, arrays = _plan(type(response))
    for name in errors:
        code = getattr(response, name)
        if code:
            yield code
    for name in arrays:
        for element in getattr(response, name) or ():
            yield from _errors_in(element)

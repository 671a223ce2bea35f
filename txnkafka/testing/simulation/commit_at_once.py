"""``commit_at_once``: a producer in the process of its broker. It sees its batches in the logs, and commits
without waiting for their acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.requests import ProduceRequest, ProduceResult
    from txnkafka.coordinator.txn.txn_events import Answer
    from txnkafka.model import TopicPartition


class Ended(NamedTuple):
    """``results`` of the batches; the response to EndTxn, None if it was not sent because a batch was refused
    or is not in its log yet."""

    results: Mapping[TopicPartition, ProduceResult]
    answer: Answer | None

    @property
    def error(self) -> ErrorCode:
        """The first error."""
        errors = [result.error for result in self.results.values()]
        errors += [] if self.answer is None else [self.answer.error]
        return next(filter(None, errors), ErrorCode.NONE)


def commit_at_once(
    request: ProduceRequest, identity: tuple[str, int, int]
) -> Callable[[Any, Callable[[Ended], None]], None]:
    """Return the call of a broker: Produce, then EndTxn once all batches are appended."""

    def perform(broker: Any, reply: Callable[[Ended], None]) -> None:
        results: dict[TopicPartition, ProduceResult] = {}
        answers: list[Answer | None] = []

        def answered() -> None:
            if len(results) == len(request.batches) and answers:
                reply(Ended(results, answers[0]))

        def produced(found: Mapping[TopicPartition, ProduceResult]) -> None:
            results.update(found)
            answered()

        def ended(answer: Answer | None) -> None:
            answers.append(answer)
            answered()

        before = _log_ends(broker, request)
        broker.produce(request, produced)
        is_appended = all(old < new for old, new in zip(before, _log_ends(broker, request), strict=True))
        if is_appended and not any(result.error for result in results.values()):
            broker.transactions.end_txn(*identity, True, ended, client_transaction_version=2)
        else:
            ended(None)

    return perform


def _log_ends(broker: Any, request: ProduceRequest) -> list[int]:
    logs = [broker.logs.get(partition) for partition in request.batches]
    return [-1 if log is None else log.log_end_offset for log in logs]

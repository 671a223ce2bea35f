"""``CallerHost``: callers' threads run the broker, and share flushes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, batch_of
from txnkafka.broker.host import CallerHost
from txnkafka.broker.requests import ProduceRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

T0 = TopicPartition("t", 0)


@pytest.fixture
def host() -> CallerHost:
    node = Node()
    node.create()
    return CallerHost(node.broker, lambda: NOW)


def produce(host: CallerHost, value: bytes) -> list[Any]:
    """The list that the answer will be in."""
    answers: list[Any] = []
    host.call(host.broker.produce, ProduceRequest({T0: batch_of(value)}), answers.append)
    return answers


def test_until_runs_flushes_until_the_answer_is_there(host: CallerHost) -> None:
    answers = produce(host, b"a")
    assert answers == []
    host.until(lambda: answers)
    assert answers[0][T0].error == ErrorCode.NONE


def test_until_raises_when_nothing_is_left_to_do(host: CallerHost) -> None:
    with pytest.raises(RuntimeError, match="nothing to do"):
        host.until(lambda: False)


def test_threads_share_flushes_and_each_gets_its_answer(host: CallerHost) -> None:
    """The first thread is held in its flush until the others have appended."""
    appended, flushes = threading.Semaphore(0), list[int]()
    begin_flush = host.broker.begin_flush

    class Held:
        """A flush that waits for the appends of three threads."""

        def __init__(self, flush: Any) -> None:
            self.flush, self.logs = flush, flush.logs

        def run(self) -> Any:
            for _ in range(3):
                assert appended.acquire(timeout=60)
            return self.flush.run()

    def begin() -> Any:
        flush = begin_flush()
        if flush is None:
            return None
        flushes.append(len(flush.logs))
        return flush if len(flushes) > 1 else Held(flush)

    finish_flush = host.broker.finish_flush
    host.broker.begin_flush = begin  # type: ignore[method-assign]
    host.broker.finish_flush = lambda flush, failed, *, now_ms: finish_flush(  # type: ignore[method-assign]
        getattr(flush, "flush", flush), failed, now_ms=now_ms
    )
    errors: list[ErrorCode] = []

    def client(number: int) -> None:
        answers = produce(host, b"%d" % number)
        if number:
            appended.release()
        host.until(lambda: answers)
        errors.append(answers[0][T0].error)

    first = threading.Thread(target=client, args=(0,))
    first.start()
    while not flushes and first.is_alive():  # until the first thread is in its flush
        first.join(0.001)
    others = [threading.Thread(target=client, args=(number,)) for number in (1, 2, 3)]
    for thread in others:
        thread.start()
    for thread in (first, *others):
        thread.join(60)
    assert errors == [ErrorCode.NONE] * 4
    assert len(flushes) == 2


class Work:
    """A piece of work that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self) -> None:
        raise self.error

    def finish(self, error: Exception | None) -> None:
        """Nothing depends on it."""


def test_the_broker_gets_the_error_of_work_and_goes_on(host: CallerHost) -> None:
    told: list[Exception | None] = []
    host.broker.jobs.add(lambda: Work(OSError("disk")), told.append)
    host.idle()
    assert [str(error) for error in told] == ["disk"]
    assert produce(host, b"a") == []


def test_a_bug_in_work_is_raised_to_the_caller_and_told_to_the_broker(host: CallerHost) -> None:
    told: list[Exception | None] = []
    host.broker.jobs.add(lambda: Work(ZeroDivisionError()), told.append)
    with pytest.raises(ZeroDivisionError):
        host.idle()
    assert [type(error) for error in told] == [ZeroDivisionError]
    host.idle()


def test_an_interrupted_flush_fences_its_logs(host: CallerHost) -> None:
    """A signal leaves unknown which files were synced (KAFKA-10778)."""
    answers = produce(host, b"a")
    flush = host.broker.begin_flush()
    assert flush is not None

    class Interrupted:
        logs = flush.logs

        def run(self) -> Any:
            raise KeyboardInterrupt

    finish_flush = host.broker.finish_flush
    host.broker.begin_flush = lambda: Interrupted()  # type: ignore[method-assign,assignment,return-value]
    host.broker.finish_flush = lambda _, failed, *, now_ms: finish_flush(  # type: ignore[method-assign]
        flush, failed, now_ms=now_ms
    )
    with pytest.raises(KeyboardInterrupt):
        host.until(lambda: answers)
    assert answers[0][T0].error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_request_that_raises_still_runs_what_is_deferred(host: CallerHost) -> None:
    calls: list[str] = []

    def request() -> None:
        host.broker.durability.soon(calls.append, "deferred")
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        host.call(request)
    assert calls == ["deferred"]

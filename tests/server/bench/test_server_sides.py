"""The sides of the server's contests that need neither Kafka nor Go: what they did is what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.handling import KINDS, HandlerSide, has_error
from bench.harness import DisagreementError
from bench.in_process import InProcessSide
from bench.producing import ProduceSide
from bench.servers import BareServer, cpu_seconds, resident_bytes
from bench.transaction_logs import LogSide, Transactions
from txnkafka.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


@pytest.mark.parametrize("name", ["C, epoll", "asyncio"])
def test_a_bare_server_writes_what_the_generator_sends(name: str, tmp_path: Path) -> None:
    server = BareServer(name, place=tmp_path)
    side = ProduceSide(server, 40)
    try:
        side.warm()
        timing = side.run()
        assert (timing.units, timing.peak_bytes > 0, timing.cpu > 0) == (40, True, True)
        assert side.digest() == "all batches, as they were sent"
        content = bytearray(server.file.read_bytes())
        server.file.write_bytes(content[: len(content) // 2])
        with pytest.raises(DisagreementError, match="100 of 200 batches"):
            side.digest()
        content[-1] ^= 1
        server.file.write_bytes(content)
        with pytest.raises(DisagreementError, match="is not what was sent"):
            side.digest()
    finally:
        side.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_is_answered_without_an_error(kind: str) -> None:
    side = HandlerSide(kind, 4)
    try:
        side.warm()
        assert side.run().units == 4
    finally:
        side.close()


def test_an_error_code_is_found_wherever_it_is() -> None:
    for code in (0, 3):
        partition = PartitionProduceResponse(index=0, error_code=code)
        topic = TopicProduceResponse(name="t", partition_responses=(partition,))
        assert has_error(ProduceResponse(responses=(topic,))) == bool(code)


def test_transactions_in_process_are_visible() -> None:
    side = InProcessSide(3)
    try:
        side.warm()
        timing = side.run()
        assert (timing.units, len(timing.latencies)) == (3, 3)
        assert side.digest() is None  # six records and their markers are below the last stable offset
    finally:
        side.close()


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("open", sum(range(1, 6 * 3 + 1))),  # five rounds before the first one
        ("ids", 2 * sum(range(40))),
    ],
)
def test_a_log_of_transactions_says_the_same_as_its_making(kind: str, wanted: int) -> None:
    side = LogSide(Transactions(kind, 40), 3)
    try:
        side.warm()
        side.run()
        assert side.digest() == wanted
    finally:
        side.close()


def test_a_fetch_among_aborted_transactions_lists_those_of_its_slice() -> None:
    side = LogSide(Transactions("aborted", 40), 3)
    try:
        side.warm()
        side.run()
        fetched = [*side.offsets(0), *side.offsets(1)]
        assert side.digest() == sum(40 - offset // 2 for offset in fetched)
    finally:
        side.close()


def test_cpu_time_and_memory_are_those_of_the_process(tmp_path: Path) -> None:
    server = BareServer(place=tmp_path)
    server.start()
    try:
        assert 0 <= cpu_seconds(server.process_id) < 5
        assert 1 << 16 < resident_bytes(server.process_id) < 1 << 26
    finally:
        server.stop()
    with pytest.raises(OSError, match="Invalid argument"):
        cpu_seconds(2**22 + 1)  # more than there can be

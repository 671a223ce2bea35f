"""``python -m bench.walk``: the Python calls of a request, the files they are in, and the changes of file.

Each request goes from its bytes through the session, the dispatcher and the broker until its answer is given
and everything is durable. ``sys.setprofile`` counts the calls of Python functions in ``txnkafka``, but not
those inside compiled modules. A change of file is a call in another file than the call before.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import txnkafka
from bench.handling import Wire, framed, produce_request
from bench.in_process import TRANSACTIONAL_ID, Host
from txnkafka.broker.broker import open_broker
from txnkafka.broker.host import CallerHost
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.wire.messages.end_txn import EndTxnRequest

PACKAGE = str(Path(txnkafka.__file__).parent)
PARTITIONS = 3


class Walk:
    """The calls of ``run``."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.calls = self.changes = 0
        self.files: set[str] = set()
        self._file = ""
        sys.setprofile(self._on_event)
        try:
            run()
        finally:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            self.calls += 1
            self.changes += file != self._file
            self.files.add(file)
            self._file = file


class Requests:
    """A broker in ``directory`` that has served each kind of request before, so that nothing is imported."""

    def __init__(self, directory: Path) -> None:
        self.host = Host(directory, partitions=PARTITIONS)
        self._wire = Wire(self.host)
        self._identity = self.host.init_producer_id()
        self._epoch = self._identity.producer_epoch
        self.plain = framed("Produce", 9, produce_request())
        for _ in range(2):
            self.serve(self.plain)
            self.serve(self.joining())
            self.serve(self.ending())

    def serve(self, frame: bytes) -> None:
        """Serve one request until everything is durable."""
        answer = self._wire.send(memoryview(frame))
        self.host.idle()
        if not answer + self._wire.answers():
            raise RuntimeError("the request was not answered")

    def joining(self) -> bytes:
        """A Produce that adds its partition to the transaction."""
        producer = {"producer_id": self._identity.producer_id, "producer_epoch": self._epoch}
        return framed("Produce", 12, produce_request(TRANSACTIONAL_ID, **producer))

    def ending(self) -> bytes:
        """The EndTxn of the same transaction; the next one has the next epoch (KIP-890)."""
        request = EndTxnRequest(
            transactional_id=TRANSACTIONAL_ID, committed=True, producer_id=self._identity.producer_id,
            producer_epoch=self._epoch,
        )  # fmt: skip
        self._epoch += 1
        return framed("EndTxn", 5, request)


def crashed_start(directory: Path) -> Callable[[], object]:
    """Return the start of a broker on a directory whose owner was killed."""

    def start() -> None:
        clock = SystemClock()
        broker = open_broker(LocalDataFiles(), str(directory), now_ms=clock.now_ms())
        CallerHost(broker, clock.now_ms).idle()

    return start


def main() -> None:
    with tempfile.TemporaryDirectory() as top:
        requests = Requests(Path(top) / "data")
        joining, ending = requests.joining(), requests.ending()
        walks = {
            "Produce without a producer": Walk(lambda: requests.serve(requests.plain)),
            "Produce that joins a transaction": Walk(lambda: requests.serve(joining)),
            "EndTxn until its markers are durable": Walk(lambda: requests.serve(ending)),
        }
        requests.host.broker.data.abandon()
        walks[f"start after a crash, {PARTITIONS} logs"] = Walk(crashed_start(Path(top) / "data"))
    print(f"{'':38} {'calls':>6} {'files':>6} {'changes of file':>16}")
    for name, walk in walks.items():
        print(f"{name:38} {walk.calls:6,} {len(walk.files):6} {walk.changes:16,}")


if __name__ == "__main__":
    main()

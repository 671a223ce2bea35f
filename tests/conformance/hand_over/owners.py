"""The two owners of a data directory, and the items that a hand-over must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from txnkafka.handover.report import Owner

__all__ = ["Item", "Owned", "owned"]


@dataclass(frozen=True)
class Owned:
    """A running owner: its address, and a function that returns the lines of its log."""

    owner: Owner
    address: str
    log: Callable[[], Sequence[str]]


class Item(Protocol):
    """One kind of state in the directory. Each method does the same with both owners."""

    def check(self, owned: Owned, turn: int) -> None:
        """Compare the state of this owner with the state that the owner before it has left."""

    def leave(self, owned: Owned, turn: int) -> None:
        """Change the state with clients of this owner."""


@contextmanager
def owned(
    kafka: KafkaBroker, owner: Owner, topics: Sequence[str], settings: Mapping[str, str]
) -> Iterator[Owned]:
    """Start an owner on the directory of ``kafka``, and stop it cleanly in the end.

    ``topics``, such as ``t:2``, and ``settings`` are for txnkafka; ``kafka`` has the same settings.
    """
    if owner is Owner.KAFKA:
        kafka.start()
        yield Owned(owner, kafka.bootstrap_servers, kafka.said)
        kafka.stop()
        return
    options = [word for topic in topics for word in ("--create-topic", topic)]
    options += [word for item in settings.items() for word in ("--config", "=".join(item))]
    with Serving(kafka.log_dir, *options) as serving:
        yield Owned(owner, serving.address, lambda: serving.log().splitlines())
        assert serving.stop() == 0

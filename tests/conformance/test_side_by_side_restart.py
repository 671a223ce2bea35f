"""Both brokers are stopped, or killed, and started again: producers go on, and get the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.broker import KafkaBroker
from tests.side_by_side.brokers import CONFIG, Brokers
from tests.side_by_side.matrix import restarted_cases
from tests.side_by_side.sides import TcpSide
from tests.side_by_side.story import Story
from tests.unit.server.serving import Serving

MOST_SHOWN = 5


class Restarting:
    """Both brokers, which can be started again on their directories."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._data = directory / "ours"
        self._stack = stack
        self._options = [word for item in CONFIG.items() for word in ("--config", "=".join(item))]
        self._kafka = stack.enter_context(KafkaBroker(directory / "kafka", CONFIG))
        self._ours = Serving(self._data, *self._options)
        self.brokers = Brokers(*self._sides(), "r")
        self.brokers.warm_up()

    def _sides(self) -> tuple[TcpSide, TcpSide]:
        return TcpSide(self._ours.address), TcpSide(self._kafka.bootstrap_servers)

    def restart(self, *, is_kill: bool) -> tuple[TcpSide, TcpSide]:
        """Stop or kill both, and start them again."""
        if is_kill:
            self._ours.kill()
            self._kafka.kill()
        else:
            assert self._ours.stop() == 0
            self._kafka.stop()
        self._kafka.start()
        self._ours = Serving(self._data, *self._options)
        return self._sides()

    def close(self) -> None:
        self._ours.stop()


@pytest.fixture(scope="module")
def restarting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarting]:
    with ExitStack() as stack:
        found = Restarting(tmp_path_factory.mktemp("restart"), stack)
        yield found
        found.close()


@pytest.mark.parametrize("is_kill", [False, True], ids=["stopped", "killed"])
def test_after_a_restart(restarting: Restarting, is_kill: bool) -> None:
    brokers, found = restarting.brokers, list(restarted_cases())
    pairs, stories = brokers.pairs(len(found)), [Story() for _ in found]
    for (case, _), pair, story in zip(found, pairs, stories, strict=True):
        assert not brokers.run(pair, case.steps, story=story)[-1].differences
    brokers.connect(*restarting.restart(is_kill=is_kill), pairs)
    failures = []
    for (case, after), pair, story in zip(found, pairs, stories, strict=True):
        for compared in brokers.run(pair, after, story=story):
            if compared.differences:
                lines = [case.state, *after, compared.request, *compared.differences]
                failures.append("\n  ".join(map(str, lines)))
    brokers.forget(pairs)
    assert not failures, "\n".join([f"{len(failures)} of {len(found)}", *failures[:MOST_SHOWN]])

"""Random runs of a partition log, compared with its model; planted faults are found by the comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import BRIEF, LONG
from tests.property.partition_log_machine import PartitionLogMachine
from txnkafka.errors import KafkaError
from txnkafka.storage.log import partition_log, transactions
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.local_log import LocalLog
from txnkafka.storage.log.log_offset_metadata import OffsetPositions
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.txn_index_file import TxnIndexFile
from txnkafka.storage.log.verification import VerificationState

EXAMPLES, STEPS = 200, 40
RUNS = 20 * EXAMPLES if LONG else EXAMPLES // 4 if BRIEF else EXAMPLES
# failures are reported without shrinking, which takes minutes
PHASES = list(Phase) if LONG else [Phase.explicit, Phase.reuse, Phase.generate]
COMMON = settings(stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck))
LIVES = settings(COMMON, max_examples=RUNS, phases=PHASES)
# the first failure ends the run, without shrinking
UNTIL_FOUND = settings(COMMON, max_examples=EXAMPLES, phases=[Phase.generate], database=None)


@seed(1)
class SameLives(PartitionLogMachine):
    """The runs of `make test`, in which every planted fault must be found: finding it in more or other runs
    proves nothing about these. `make long` tries new ones."""


def test_a_log_lives_as_its_model() -> None:
    run_state_machine_as_test(PartitionLogMachine if LONG else SameLives, settings=LIVES)


# Planted faults: a class, a method, and its replacement, which gets the method as its first argument.

Replacement = Callable[..., Any]


def named_at_once(original: Replacement, local: LocalLog, *arguments: Any) -> None:
    original(local, *arguments)
    local.segments.active.files.become("")


def nothing(original: Replacement, *arguments: Any, **named: Any) -> bool:
    """Do not call the method."""
    return False


def one_less(original: Replacement, segment: LogSegment, position: int, offset: int) -> None:
    original(segment, position, offset)
    if segment.txn_index is not None:
        segment.txn_index.entries = segment.txn_index.entries[:-1]


def stale(original: Replacement, snapshots: ProducerSnapshots, offset: int, content: bytes) -> None:
    """KAFKA-6683: write an older state."""
    newest = snapshots.newest(offset)
    original(snapshots, offset, content if newest is None else snapshots.read(newest))


PLANTED: list[tuple[str, Any, str, Replacement]] = [
    ("aborted transactions are not noted", TxnIndexFile, "add", nothing),
    ("aborted transactions are not cut", TxnIndexFile, "keep_below", nothing),
    ("a cut takes too many aborted transactions", LogSegment, "truncate", one_less),
    ("epochs are not cut", LeaderEpochs, "truncate_from_end", nothing),
    ("a cut does not load the producers again", partition_log, "reload_state", nothing),
    ("a snapshot of another moment", ProducerSnapshots, "write", stale),
    ("snapshots behind the end stay", ProducerSnapshots, "remove_above", nothing),
    ("nothing is replayed", transactions, "_add_from_log", nothing),
    ("a verification that is never over", VerificationState, "clear", nothing),
    ("a segment has its name before the one in front is durable", LocalLog, "roll", named_at_once),
    ("a roll does not move the positions at the log end", OffsetPositions, "on_roll", nothing),
]


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        pytest.param(*row, id=name, marks=[] if number % 4 == 0 else pytest.mark.slow)
        for number, (name, *row) in enumerate(PLANTED)
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, instead: Replacement
) -> None:
    original = getattr(where, name)
    monkeypatch.setattr(where, name, lambda *arguments, **named: instead(original, *arguments, **named))
    with pytest.raises((AssertionError, KafkaError, ValueError)):
        run_state_machine_as_test(SameLives, settings=UNTIL_FOUND)


def test_the_last_stable_offset_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionLog, "last_stable_offset", property(lambda log: log.high_watermark))
    with pytest.raises(AssertionError):
        run_state_machine_as_test(SameLives, settings=UNTIL_FOUND)

"""Each check of the three checkers finds the anomalies planted for it, and nothing in a sound history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation import test_anomalies, test_group_anomalies, test_member_anomalies
from txnkafka.testing.simulation.anomalies import CHECKS, anomalies
from txnkafka.testing.simulation.group_anomalies import GROUP_CHECKS
from txnkafka.testing.simulation.member_anomalies import MEMBER_CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.testing.simulation.history import History

CHECKERS = (
    (test_anomalies, CHECKS),
    (test_group_anomalies, GROUP_CHECKS),
    (test_member_anomalies, MEMBER_CHECKS),
)
SOUND = [checker.sound for checker, _ in CHECKERS]
PLANTED = [(checker.sound, *planted) for checker, _ in CHECKERS for planted in checker.PLANTED]


@pytest.mark.parametrize("sound", SOUND, ids=lambda sound: sound.__module__.rpartition("test_")[2])
def test_a_sound_history_has_none(sound: Callable[[], History]) -> None:
    assert anomalies(sound()) == []


@pytest.mark.parametrize(("sound", "name", "plant"), PLANTED, ids=[plant.__name__ for *_, plant in PLANTED])
def test_a_planted_anomaly_is_found(
    sound: Callable[[], History], name: str, plant: Callable[[History], None]
) -> None:
    history = sound()
    plant(history)
    assert name in test_anomalies.names(history)


def test_each_check_has_a_planted_anomaly() -> None:
    for checker, checks in CHECKERS:
        assert {name for name, _ in checker.PLANTED} == set(checks)

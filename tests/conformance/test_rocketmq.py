"""The same scripts of check-back messages against Apache RocketMQ and against txnkafka.

Both play them at the same time, for about two minutes, when the first test asks for a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.rocketmq_cases import CASES, Case, Result, Seen
from tests.conformance.rocketmq_player import play_on_rocketmq
from tests.conformance.txnkafka_player import play_on_txnkafka


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Result]]:
    """RocketMQ's results by case, and txnkafka's."""
    with ThreadPoolExecutor() as threads:
        players = (play_on_rocketmq, play_on_txnkafka)
        playing = [threads.submit(play, tmp_path_factory.mktemp("played")) for play in players]
        return [each.result() for each in playing]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{'-'.join(map(str, case.rows))}")
def test_both_do_what_is_expected(case: Case, results: list[Mapping[str, Result]]) -> None:
    """The same, or a difference on purpose."""
    theirs, ours = (result[case.name] for result in results)
    assert _seen(case, theirs, case.rocketmq) == case.rocketmq
    expected = case.txnkafka or case.rocketmq
    assert _seen(case, ours, expected) == expected


def _seen(case: Case, result: Result, expected: Seen) -> Seen:
    """The result as far as it is promised."""
    visible = result.visible if case.in_order else sorted(result.visible)
    asked = {value: _number(result.asked.get(value, 0), number) for value, number in expected.asked.items()}
    return Seen(" ".join(visible), " ".join(result.parked), asked, result.refused)


def _number(found: int, expected: int | range) -> int | range:
    return expected if isinstance(expected, range) and found in expected else found

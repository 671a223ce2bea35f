"""Random numbers come from the system, or from a seed while a simulation lasts."""

from __future__ import annotations

import uuid
from random import Random

from txnkafka.env import random_below, random_from, unique_name


def test_names_are_unlike_each_other() -> None:
    names = {unique_name() for _ in range(100)}
    assert len(names) == 100
    assert {uuid.UUID(name).version for name in names} == {4}
    assert {uuid.UUID(name).variant for name in names} == {uuid.RFC_4122}


def test_a_seed_determines_everything_while_it_lasts() -> None:
    def drawn() -> tuple[str, list[int]]:
        with random_from(Random(7)):
            return unique_name(), [random_below(1000) for _ in range(5)]

    assert drawn() == drawn()
    assert unique_name() != drawn()[0]
    assert {random_below(3) for _ in range(100)} == {0, 1, 2}

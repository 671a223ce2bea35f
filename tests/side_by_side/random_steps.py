"""Random steps of a seed: mostly what clients do, with a share of what they should not."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.side_by_side.story import Step

__all__ = ["random_steps"]

_VERSIONS: Final = {  # by transaction version of the client: 1, 2, any
    "produce": {1: (3, 11), 2: (12, 13), 0: (3, 13)},
    "add": {1: (0, 3), 2: (4, 5), 0: (0, 5)},
    "end": {1: (0, 4), 2: (5, 5), 0: (0, 5)},
    "offsets": {1: (0, 4), 2: (0, 4), 0: (0, 4)},
    "send": {1: (0, 4), 2: (5, 5), 0: (0, 5)},
    "commit": {0: (2, 10)},
    "committed": {0: (7, 10)},
    "init": {1: (0, 5), 2: (3, 5), 0: (0, 5)},
    "marker": {1: (1, 1), 2: (2, 2), 0: (1, 2)},
    "fetch": {0: (4, 18)},
    "times": {0: (1, 11)},
    "producers": {0: (0, 0)},
    "describe": {0: (0, 0)},
    "list": {0: (0, 2)},
    "epochs": {0: (2, 4)},
}
_WRITING: Final = (
    ("produce", 30), ("end", 16), ("init", 8), ("add", 8), ("offsets", 4), ("send", 8), ("commit", 2),
    ("marker", 3),
)  # fmt: skip
_LOOKING: Final = (
    ("fetch", 10), ("times", 4), ("producers", 5), ("describe", 5), ("committed", 5), ("list", 2),
    ("epochs", 1),
)  # fmt: skip
_TIMES: Final = (-1, -1, -2, -3, -4, -5, -6, -7, 0, 1_600_000_000_000, 1_600_000_000_001)
_LEVELS: Final = (1, 2, 2, 0)  # of a client


def random_steps(seed: int) -> list[Step]:
    """9 to 19 steps on two partitions: two transactional producers and an idempotent one."""
    chance = Random(seed)
    levels = {who: chance.choice(_LEVELS) for who in ("~a", "~b", "p")}
    first = [Step("init", 5, who) for who in ("~a", *chance.sample(("~b", "p"), chance.randrange(3)))]
    weights = dict((*_WRITING, *_LOOKING))
    kinds = chance.choices(list(weights), list(weights.values()), k=chance.randrange(5, 14))
    steps = [_step(kind, levels, chance) for kind in kinds]
    last = Step("fetch", 12, options={"partitions": [0, 1]}), Step("producers", 0), Step("committed", 9)
    return [*first, *steps, *last]


def _step(kind: str, levels: dict[str, int], chance: Random) -> Step:
    names = ("~a", "~a", "~b") if kind in ("end", "add", "offsets", "send") else ("~a", "~a", "~b", "p")
    who = chance.choice(names)
    level = levels[who] if chance.random() < 0.9 else 0
    versions = _VERSIONS[kind].get(level) or _VERSIONS[kind][0]
    delta = chance.choices((0, -1, 1), (85, 9, 6))[0]
    options: dict[str, Any] = _OPTIONS[kind](chance)
    if delta > 0:  # Kafka refuses the marker of the epoch before then, and its transactional id is stuck
        options.pop("transactional", None)
    if kind in ("produce", "end", "add", "offsets", "send", "init", "marker"):
        if chance.random() < 0.04:
            options["alien"] = True
        return Step(kind, chance.randint(*versions), who, delta, options)
    return Step(kind, chance.randint(*versions), options=options)


def _some(chance: Random) -> list[int]:
    return chance.choices(([0], [1], [0, 1], [1, 0]), (6, 2, 2, 1))[0]


def _produce(chance: Random) -> dict[str, Any]:
    sequences = ("next", "duplicate", "old", "gap", "zero", "wrap")
    options: dict[str, Any] = {
        "partitions": _some(chance),
        "sequence": chance.choices(sequences, (70, 10, 6, 5, 5, 4))[0],
        "count": chance.choice((1, 1, 1, 2, 3)),
    }
    if chance.random() < 0.05:
        options["transactional"] = chance.random() < 0.5
    if chance.random() < 0.03:
        options["nameless"] = True
    if chance.random() < 0.06:
        options["acks"] = chance.choice((0, 1))
    return options


def _add(chance: Random) -> dict[str, Any]:
    options: dict[str, Any] = {"partitions": _some(chance)}
    if chance.random() < 0.1:
        options["partitions"] = chance.choice(([], [0, 7]))
    if chance.random() < 0.3:
        options["verify"] = True
    return options


def _marker(chance: Random) -> dict[str, Any]:
    return {
        "partitions": _some(chance),
        "commit": chance.random() < 0.5,
        "level": chance.choice((0, 0, 1, 2)),
    }


def _fetch(chance: Random) -> dict[str, Any]:
    return {
        "partitions": _some(chance),
        "isolation": chance.randrange(2),
        "offset": chance.choice((0, 0, 0, 1, 2, 5, 50)),
        "bytes": chance.choice((1 << 20, 1 << 20, 1, 150)),
    }


def _offset(chance: Random) -> dict[str, Any]:
    return {
        "group": chance.choice(("~g", "~g", "~g", "~h")),
        "partitions": _some(chance),
        "offset": chance.randrange(100),
    }


_OPTIONS: Final[dict[str, Any]] = {
    "produce": _produce,
    "add": _add,
    "end": lambda chance: {"commit": chance.random() < 0.6},
    "offsets": lambda chance: {"group": chance.choice(("~g", "~h", ""))},
    "send": lambda chance: {**_offset(chance), "topic": chance.choice(("~t", "~t", "~t", "~t", "~missing"))},
    "commit": _offset,
    "committed": lambda chance: {
        "group": chance.choice(("~g", "~g", "~h")),
        "stable": chance.random() < 0.5,
        "all": chance.random() < 0.3,
    },
    "init": lambda chance: {"again": chance.random() < 0.5},
    "marker": _marker,
    "fetch": _fetch,
    "times": lambda chance: {"time": chance.choice(_TIMES), "isolation": chance.randrange(2)},
    "producers": lambda chance: {},
    "describe": lambda chance: {},
    "list": lambda chance: {
        "states": chance.choice(([], ["Ongoing"], ["CompleteCommit", "Empty"], ["Nonsense", "Ongoing"]))
    },
    "epochs": lambda chance: {"epoch": chance.choice((0, 0, 1, -1))},
}

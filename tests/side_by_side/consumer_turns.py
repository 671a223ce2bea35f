"""Lives of groups of the consumer protocol with several members (KIP-848), some of the classic protocol: told
ones, and such from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.side_by_side.consumer_players import Turn

__all__ = ["CONSUMER_STORIES", "random_consumer_turns"]

CONSUMERS: Final = ("M", "N", "O")
CLASSIC: Final = ("P", "Q")  # of the other protocol
LOOK: Final = Turn("look", version=1)
TYPES: Final = Turn("types", version=6)


def _enter(who: str, version: int = 1, **options: Any) -> Turn:
    return Turn("enter", who, version, options)


def _beat(who: str, owns: str | None = "told", version: int = 1, **options: Any) -> Turn:
    return Turn("beat", who, version, {**({} if owns is None else {"owns": owns}), **options})


def _depart(who: str, **options: Any) -> Turn:
    return Turn("depart", who, 1, options)


def _classic(who: str, owns: str | None = None, version: int = 9, **options: Any) -> Turn:
    return Turn("join", who, version, {"own_id": True, "owns": owns, **options})


def _static(who: str) -> Turn:
    """Join as a static member of the classic protocol, as a new process; its id comes from the broker."""
    return Turn("join", who, 9, {"own_id": False, "fresh": True, "instance": f"instance-{who.lower()}"})


def _again(who: str, owns: str | None = None) -> Turn:
    return Turn("join", who, 9, {"own_id": False, "fresh": False, "owns": owns})


def _sync(who: str) -> Turn:
    return Turn("sync", who, 5, {"real": True})


def _alive(who: str) -> Turn:
    return Turn("heartbeat", who, 4)


def _share() -> Iterator[Turn]:
    """Two members share, the first one gives up late, and leaves."""
    yield _enter("M")
    yield _beat("M")
    yield _enter("N")
    yield from (_beat("M", "same"), _beat("N"), LOOK, _beat("M"), _beat("M"), _beat("N"), LOOK, _depart("M"))
    yield from (_beat("N"), _beat("N"), LOOK)


def _upgraded_by_an_instance() -> Iterator[Turn]:
    """A static member comes back with the other protocol: in a stable group, and in a rebalance."""
    yield _enter("M")
    yield from (_static("P"), _sync("P"), _depart("M"), TYPES, _again("P"), _sync("P"), TYPES)
    yield from (_static("Q"), _again("P"), _sync("P"), _sync("Q"), _alive("P"), _alive("Q"), TYPES)
    yield _enter("N", instance="instance-q")
    yield from (LOOK, _beat("N"), _alive("P"), _sync("P"), LOOK)
    yield from (_static("Q"), TYPES, _sync("Q"), _beat("N"), _alive("P"), _alive("Q"), TYPES)


def _upgraded_in_a_rebalance() -> Iterator[Turn]:
    """The partition of a member that has left stays without an owner: a static member with the same topics
    has taken the place of another one, and ends the rebalance of the classic group."""
    yield _enter("M")
    yield from (_static("P"), _sync("P"), _depart("M"), _alive("P"), _again("P"), _sync("P"))
    yield from (_static("Q"), _again("P"), _sync("P"), _sync("Q"), _alive("P"), _alive("Q"), TYPES)
    yield Turn("leave", "Q", 5)
    yield _enter("N", instance="instance-p")
    yield from (LOOK, _beat("N"), _beat("N"), LOOK)
    yield _enter("M")
    yield from (LOOK, _beat("M"), LOOK)


def _another_assignor() -> Iterator[Turn]:
    """The assignor of most members changes, with one member and with two."""
    yield from (_enter("M", assignor="uniform"), _beat("M"), _beat("M", assignor="range"), _beat("M"), LOOK)
    yield from (_enter("N", assignor="range"), _beat("M"), _beat("N"), _beat("M"), _beat("N"), LOOK)
    yield from (_beat("M", assignor="uniform"), LOOK)


CONSUMER_STORIES: Final = {
    "another assignor": _another_assignor,
    "an upgrade in a rebalance": _upgraded_in_a_rebalance,
    "consumers share": _share,
    "an instance changes its protocol": _upgraded_by_an_instance,
}

_KINDS: Final = (
    ("enter", 14), ("next", 34), ("beat", 8), ("depart", 5), ("commit", 8), ("committed", 2), ("look", 6),
    ("types", 2), ("classic", 12), ("sync", 9), ("heartbeat", 5), ("leave", 2),
)  # fmt: skip
_TOPICS: Final = (("~t",), ("~t", "~missing"), ())
_OF_CLASSIC: Final = ("classic", "sync", "heartbeat", "leave")


def random_consumer_turns(seed: int) -> list[Turn]:
    """Some 45 turns of three members of the consumer protocol and two of the classic one, some static. All
    have one assignor: with as many votes for two of them, Kafka 4.4 begins a rebalance at each heartbeat."""
    chance = Random(seed)
    instances = (None, None, None, "instance-a", "instance-b")
    static = {who: chance.choice(instances) for who in (*CONSUMERS, *CLASSIC)}
    assignor = chance.choice((None, None, "uniform", "range"))
    weights = {kind: weight for kind, weight in _KINDS if chance.random() < 0.8 or kind not in _OF_CLASSIC}
    if chance.random() < 0.4:
        weights = {kind: weight for kind, weight in weights.items() if kind not in _OF_CLASSIC}
    kinds = chance.choices(list(weights), list(weights.values()), k=45)
    first = [_enter("M", instance=static["M"], assignor=assignor)]
    return first + [_turn(kind, chance, static, assignor) for kind in kinds]


def _turn(kind: str, chance: Random, static: dict[str, str | None], assignor: str | None) -> Turn:
    who = chance.choice(CLASSIC if kind in _OF_CLASSIC else CONSUMERS)
    if kind == "look":
        return LOOK
    if kind == "types":
        return TYPES
    if kind == "committed":
        return Turn("committed", version=9)
    if kind == "enter":
        options: dict[str, Any] = {"instance": static[who], "assignor": assignor}
        if chance.random() < 0.2:
            options["topics"] = chance.choice(_TOPICS)
        if chance.random() < 0.15:
            options["id"] = chance.choice("fgh")
        return _enter(who, chance.choice((0, 1, 1)), **options)
    if kind == "next":
        return _beat(who, "told")
    if kind == "beat":
        return _any_beat(who, chance)
    if kind == "depart":
        return _depart(who, away=static[who] is not None and chance.random() < 0.6)
    if kind == "commit":
        return _commit(chance.choice((*CONSUMERS, *CLASSIC)), chance)
    if kind == "classic":
        owns = chance.choice((None, "told", "told", "same"))
        return _classic(who, owns, chance.choice((5, 8, 9)), instance=static[who])
    if kind == "sync":
        return _sync(who)
    if kind == "heartbeat":
        return _alive(who)
    return Turn("leave", who, 5)


def _any_beat(who: str, chance: Random) -> Turn:
    options: dict[str, Any] = {}
    if chance.random() < 0.3:
        options["delta"] = chance.choice((-1, -1, 1))
    if chance.random() < 0.2:
        options["topics"] = chance.choice(_TOPICS)
    if chance.random() < 0.2:
        options["assignor"] = "sticky"  # which no broker has
    if chance.random() < 0.2:
        options["whole"] = True
    owns = chance.choice((None, "same", "same", "nothing", "both"))
    return _beat(who, owns, chance.choice((0, 1)), **options)


def _commit(who: str, chance: Random) -> Turn:
    options: dict[str, Any] = {"offset": chance.randrange(100), "partition": chance.randrange(2)}
    if chance.random() < 0.4:
        options["delta"] = chance.choice((-2, -1, -1, 1))
    return Turn("commit", who, chance.choice((8, 9, 9, 9)), options)

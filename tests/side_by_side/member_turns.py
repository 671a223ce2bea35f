"""Lives of groups with several members: told ones, and such from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.side_by_side.cast import Turn

__all__ = ["NAMES", "STORIES", "random_turns"]

NAMES: Final = ("M", "N", "O", "P", "Q")
"""Who may have a turn; the last two are of the classic protocol where the group is of the other one."""
_CLASSIC: Final = NAMES[:3]
SHORT_MS: Final = 400
LONGER: Final = Turn("wait", options={"seconds": 1.2})  # than a session or a rebalance of SHORT_MS
DESCRIBE: Final = Turn("describe", version=5)


def _join(who: str, version: int = 9, **options: Any) -> Iterator[Turn]:
    """Join as a new member: the first answer of version 4 and later has only the id of a dynamic one."""
    yield Turn("join", who, version, {"fresh": True, **options})
    if version >= 4 and "instance" not in options:
        yield Turn("join", who, version)


def _again(who: str, version: int = 9, **options: Any) -> Turn:
    return Turn("join", who, version, options)


def _sync(*names: str, version: int = 5) -> Iterator[Turn]:
    yield from (Turn("sync", who, version) for who in names)


def _two(version: int = 9, first: Any = None, second: Any = None) -> Iterator[Turn]:
    """M leads, N follows, both have their assignment."""
    sync = 5 if version >= 7 else 3
    yield from _join("M", version, **(first or {}))
    yield from _sync("M", version=sync)
    yield from _join("N", version, **(second or {}))
    yield _again("M", version)
    yield from _sync("M", "N", version=sync)


def _beats(*names: str, version: int = 4) -> Iterator[Turn]:
    yield from (Turn("heartbeat", who, version) for who in names)


def _rebalances() -> Iterator[Turn]:
    """Three members, a request of each kind in each state."""
    yield from _two()
    yield from _beats("M", "N")
    yield DESCRIBE
    yield from _join("O")
    yield from _beats("M", "N")
    yield from _sync("M")
    yield Turn("commit", "M", 9)
    yield DESCRIBE
    yield _again("M")
    yield _again("N")
    yield DESCRIBE
    yield from _beats("M", "O")
    yield Turn("commit", "O", 9)
    yield Turn("sync", "O", 5, {"delta": -1})
    yield from _sync("O", "N", "M")
    yield Turn("commit", "O", 9, {"offset": 7})
    yield Turn("committed", version=9)
    yield DESCRIBE


def _versions() -> Iterator[Turn]:
    """Each version of JoinGroup, one group life after the other."""
    for version in range(10):
        yield from _two(version)
        yield from _beats("M", "N", version=min(version, 4))
        leave = min(version, 5)
        yield Turn("leave", "N", leave)
        yield from _beats("M", "N", version=min(version, 4))
        yield Turn("leave", "M", leave)
        yield DESCRIBE


def _leader_leaves() -> Iterator[Turn]:
    yield from _two()
    yield Turn("leave", "M", 5)
    yield from _beats("M", "N")
    yield _again("N")
    yield from _sync("N")
    yield DESCRIBE
    yield Turn("leave", "N", 5)
    yield DESCRIBE
    yield from _join("M")
    yield Turn("delete", version=2)


def _leaves_while_others_wait() -> Iterator[Turn]:
    """In the middle of a rebalance, and between JoinGroup and SyncGroup."""
    yield from _two()
    yield from _join("O")
    yield Turn("leave", "N", 5)
    yield DESCRIBE
    yield _again("M")
    yield from _sync("O")
    yield DESCRIBE
    yield Turn("leave", "M", 5)
    yield DESCRIBE
    yield _again("O")
    yield from _sync("O")
    yield DESCRIBE


def _follower_joins_again() -> Iterator[Turn]:
    yield from _two()
    yield _again("N")
    yield from _sync("N")
    yield _again("N", protocols=("roundrobin", "range"))
    yield from _beats("M")
    yield _again("M", protocols=("range", "roundrobin"))
    yield _again("M")
    yield from _sync("N", "M")
    yield _again("M")
    yield _again("N", protocols=("sticky",))
    yield _again("N", protocols=("range",))
    yield from _sync("M", "N")


def _cooperative() -> Iterator[Turn]:
    """From eager to cooperative: the protocols that all have decide."""
    both, one = ("cooperative-sticky", "range"), ("cooperative-sticky",)
    yield from _two(first={"protocols": both}, second={"protocols": ("range",)})
    yield _again("N", protocols=both)
    yield _again("M")
    yield from _sync("M", "N")
    yield from _join("O", protocols=one)
    yield _again("M", protocols=one)
    yield _again("N", protocols=one)
    yield from _sync("N", "O", "M")
    yield DESCRIBE


def _votes() -> Iterator[Turn]:
    """As many for one protocol as for another."""
    yield from _two(6, first={"protocols": ("range", "sticky")}, second={"protocols": ("sticky", "range")})


def _sync_before_the_leader() -> Iterator[Turn]:
    yield from _two()
    yield _again("M")
    yield _again("N")
    yield from _sync("N")
    yield Turn("sync", "M", 5, {"delta": -1})
    yield Turn("sync", "M", 5, {"delta": 1})
    yield Turn("join", "O", 9, {"id_of": "N"})
    yield from _sync("M")
    yield _again("M")
    yield from _sync("M")


def _two_processes_with_one_id() -> Iterator[Turn]:
    """Of two requests that wait, the later one gets the answer."""
    yield from _two()
    yield _again("M")
    yield Turn("join", "O", 9, {"id_of": "M"})
    yield _again("N")
    yield from _sync("N")
    yield from _sync("O")


def _session_ends() -> Iterator[Turn]:
    """A member says nothing for its session timeout, while nobody and while somebody waits for it."""
    short: dict[str, Any] = {"session": SHORT_MS}
    yield from _two(second=short)
    yield LONGER
    yield from _beats("M", "N")
    yield _again("M")
    yield from _sync("M")
    yield from _join("N", **short)
    yield _again("M")
    yield from _sync("M", "N")
    yield from _join("O")
    yield _again("M")
    yield LONGER
    yield from _sync("O", "M")
    yield DESCRIBE
    yield from _beats("N")


def _rebalance_ends() -> Iterator[Turn]:
    """Members that do not join in time, or do not ask for their assignment in time."""
    short: dict[str, Any] = {"rebalance": SHORT_MS}
    yield from _two(first=short, second=short)
    yield from _join("O", **short)
    yield LONGER
    yield from _beats("M", "N")
    yield from _sync("O")
    yield from _join("M", **short)
    yield _again("O")
    yield from _sync("M")
    yield LONGER
    yield DESCRIBE
    yield from _beats("M", "O")


def _pending_member() -> Iterator[Turn]:
    """An id that was given holds up the rebalance until its session is over, or it leaves."""
    yield from _join("M")
    yield from _sync("M")
    yield Turn("join", "O", 4, {"fresh": True, "session": SHORT_MS})
    yield from _join("N")
    yield _again("M")
    yield LONGER
    yield from _sync("M", "N")
    yield Turn("join", "O", 4, {"fresh": True})
    yield _again("M")
    yield _again("N")
    yield Turn("leave", "O", 5)
    yield from _sync("M", "N")
    yield Turn("join", "O", 4)


def _static_members() -> Iterator[Turn]:
    """Replaced in a stable group, in each version: the old one is fenced."""
    for version in range(5, 10):
        yield from _two(version, {"instance": "instance-a"}, {"instance": "instance-b"})
        for who in "NM":
            instance: dict[str, Any] = {"instance": f"instance-{'ab'[who == 'N']}"}
            yield Turn("join", "O", version, {"fresh": True, **instance})
            yield from _beats("O", who)
            yield from _sync("O", who)
            yield Turn("commit", who, 9)
            yield Turn("commit", "O", 9)
            yield Turn("leave", who, 5)
        yield DESCRIBE
        yield Turn("leave", "M", 5, {"names": (), "instances": ("instance-a", "instance-b", "instance-c")})
        yield DESCRIBE


def _static_replaced_while_others_wait() -> Iterator[Turn]:
    instance: dict[str, Any] = {"instance": "instance-a", "rebalance": 60_000}
    yield from _two(first=instance)
    yield _again("N", protocols=("roundrobin", "range"))
    yield from _join("O", **instance)
    yield from _sync("O", "N")
    yield from _beats("M", "N", "O")
    yield _again("O")
    yield from _join("M", **instance)
    yield _again("N")
    yield from _sync("N")
    yield from _join("O", **instance)
    yield from _beats("N", "M")
    yield DESCRIBE


def _static_replaced_while_it_waits_for_its_assignment() -> Iterator[Turn]:
    instance: dict[str, Any] = {"instance": "instance-a"}
    yield from _two(second=instance)
    yield _again("M")
    yield _again("N")
    yield from _sync("N")
    yield from _join("O", **instance)
    yield from _sync("M")
    yield _again("M")
    yield from _sync("M", "O", "N")


def _static_stays() -> Iterator[Turn]:
    """Out of time, a static member is in the next generation all the same, until its session is over."""
    short: dict[str, Any] = {"rebalance": SHORT_MS}
    yield from _two(first=short, second={**short, "instance": "instance-b"})
    yield _again("M")
    yield LONGER
    yield from _sync("M")
    yield from _beats("N")
    yield Turn("heartbeat", "N", 4, {"delta": 1})
    yield DESCRIBE
    yield from _join("O", **short, instance="instance-b")
    yield from _sync("O")


def _instance_with_the_id_of_a_dynamic_member() -> Iterator[Turn]:
    yield Turn("join", "M", 9, {"fresh": True})
    yield _again("M", instance="instance-a")
    yield _again("M")


def _last_member_leaves_while_an_id_is_given() -> Iterator[Turn]:
    """The group has no members then, and waits for the one that has only got its id."""
    yield from _join("M")
    yield from _sync("M")
    yield Turn("join", "N", 9, {"fresh": True})
    yield Turn("leave", "M", 5)
    yield DESCRIBE
    yield _again("M")
    yield Turn("join", "O", 9, {"fresh": True, "protocols": ("sticky",)})
    yield _again("O")
    yield _again("N")
    yield DESCRIBE


def _several_leave() -> Iterator[Turn]:
    yield from _two(second={"instance": "instance-b"})
    yield from _join("O")
    yield Turn("leave", "M", 3, {"names": ("M", "N"), "instances": ("instance-z",)})
    yield DESCRIBE
    yield from _sync("O")
    yield Turn("leave", "O", 4, {"names": ("O", "O", "M")})
    yield DESCRIBE


STORIES: Final = {
    "rebalances": _rebalances,
    "versions": _versions,
    "the leader leaves": _leader_leaves,
    "members leave while others wait": _leaves_while_others_wait,
    "a follower joins again": _follower_joins_again,
    "cooperative": _cooperative,
    "votes": _votes,
    "SyncGroup before the leader's": _sync_before_the_leader,
    "two processes with one id": _two_processes_with_one_id,
    "a session ends": _session_ends,
    "a rebalance takes too long": _rebalance_ends,
    "a pending member": _pending_member,
    "static members": _static_members,
    "a static member is replaced while others wait": _static_replaced_while_others_wait,
    "a static member is replaced while it waits": _static_replaced_while_it_waits_for_its_assignment,
    "a static member stays": _static_stays,
    "an instance with a dynamic member's id": _instance_with_the_id_of_a_dynamic_member,
    "the last member leaves while an id is given": _last_member_leaves_while_an_id_is_given,
    "several leave": _several_leave,
}

_KINDS: Final = (
    ("join", 34), ("again", 14), ("sync", 28), ("heartbeat", 12), ("leave", 5), ("commit", 6),
    ("describe", 4),
)  # fmt: skip
_VERSIONS: Final = {"join": (2, 9), "again": (2, 9), "sync": (1, 5), "heartbeat": (0, 4), "leave": (0, 5),
                    "commit": (5, 9)}  # fmt: skip


def random_turns(seed: int) -> list[Turn]:
    """Some 40 turns of three members, of whom some are static. Each has its own versions."""
    chance = Random(seed)
    instances = (None, None, None, None, "instance-a", "instance-b")
    static = {who: chance.choice(instances) for who in _CLASSIC}
    versions = {who: chance.random() for who in _CLASSIC}
    kinds = chance.choices([kind for kind, _ in _KINDS], [weight for _, weight in _KINDS], k=40)
    return [_turn(kind, chance, static, versions) for kind in kinds]


def _turn(kind: str, chance: Random, static: dict[str, str | None], versions: dict[str, float]) -> Turn:
    if kind == "describe":
        return DESCRIBE
    who = chance.choice(_CLASSIC)
    low, high = _VERSIONS[kind]
    if static[who]:
        low = max(low, {"join": 5, "again": 5, "sync": 3, "heartbeat": 3, "leave": 3, "commit": 7}[kind])
    version = low + round(versions[who] * (high - low))
    options: dict[str, Any] = {}
    if kind in ("again", "join") and static[who]:
        options["instance"] = static[who]
    if kind == "again":
        if chance.random() < 0.3:
            options["protocols"] = chance.choice((("range",), ("range", "sticky"), ("range", "roundrobin")))
        kind = "join"
    elif kind == "join":
        options["fresh"] = chance.random() < 0.25
    elif chance.random() < 0.08 and kind != "leave":
        options["delta"] = chance.choice((-1, 1))
    return Turn(kind, who, version, options)

"""Explains one half, for ``halves show``: the verdict, its evidence, and the command that changes it.

All functions are pure: facts in, lines out. The settings of the resolver are not in the log, so that times of
checks follow from its defaults, unless the half has its own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.logdir.explain import Line
from txnkafka.shown import counted, duration, iso_time, printable

if TYPE_CHECKING:
    from txnkafka.checkback.admin import HalfMessage
    from txnkafka.checkback.checkback_config import CheckBackConfig


class HalfVerdict(enum.StrEnum):
    """The reason for the state of a half; docs/check-back.md explains each."""

    WAITS_FOR_DECISION = "WAITS_FOR_DECISION"
    WAITS_FOR_ANSWER = "WAITS_FOR_ANSWER"
    WAITS_FOR_LISTENER = "WAITS_FOR_LISTENER"
    WAITS_FOR_RESOLVER = "WAITS_FOR_RESOLVER"
    WAITS_FOR_MOVE = "WAITS_FOR_MOVE"
    PARKED = "PARKED"


class Circumstances(NamedTuple):
    """The facts beside the log: the time, the members of the group of resolvers and of the listeners of the
    producer group (None in a data directory, which has no clients), and the options that choose the
    cluster."""

    now_ms: int
    resolvers: int | None
    listeners: int | None
    options: str


_REASONS = {
    HalfVerdict.WAITS_FOR_DECISION: "the producer has not decided, and its first check is not due yet",
    HalfVerdict.WAITS_FOR_ANSWER: "the producer has not decided, and a check must find the outcome",
    HalfVerdict.WAITS_FOR_LISTENER: "no process of the producer group runs that a check could ask",
    HalfVerdict.WAITS_FOR_RESOLVER: "no resolver runs to send checks and carry decisions out",
    HalfVerdict.WAITS_FOR_MOVE: "it is decided, and the resolver carries the decision out",
    HalfVerdict.PARKED: "its checks have ended",
}


def verdict_of(half: HalfMessage, facts: Circumstances, settings: CheckBackConfig) -> HalfVerdict:
    """Judge a half that is not done."""
    if half.state == "parked":
        return HalfVerdict.PARKED
    if facts.resolvers == 0:
        return HalfVerdict.WAITS_FOR_RESOLVER
    if half.state == "decided":
        return HalfVerdict.WAITS_FOR_MOVE
    if not half.asks and facts.now_ms < _next_check_ms(half, settings):
        return HalfVerdict.WAITS_FOR_DECISION
    return HalfVerdict.WAITS_FOR_LISTENER if facts.listeners == 0 else HalfVerdict.WAITS_FOR_ANSWER


def explained(half: HalfMessage, facts: Circumstances, settings: CheckBackConfig) -> list[Line]:
    """Return the verdict, the evidence, and the advice with its commands."""
    verdict = verdict_of(half, facts, settings)
    name = printable(half.transaction_id)
    return [
        Line("verdict", f"{name}: {verdict}: {_REASONS[verdict]}"),
        *(Line("evidence", text) for text in _evidence(half, facts, settings)),
        *_advice(half, verdict, facts),
    ]


def _evidence(half: HalfMessage, facts: Circumstances, settings: CheckBackConfig) -> Iterator[str]:
    if half.born_timestamp is not None:
        age = duration(facts.now_ms - half.born_timestamp)
        yield f"{half.state}, sent at {iso_time(half.born_timestamp)}, {age} ago"
    last = half.last_asked_timestamp
    yield counted(half.asks, "check") + ("" if last is None else f", the last one at {iso_time(last)}")
    if half.state == "prepared":
        yield _next_step(half, settings)
    if half.outcome is not None:
        reason = "" if half.reason is None else f": {printable(half.reason)}"
        yield f"{half.outcome}, decided by: {half.decided_by}{reason}"
    if facts.resolvers is None:
        yield "resolvers and listeners are not running: this is a data directory"
    elif facts.listeners is not None:
        listeners = counted(facts.listeners, "process of", "processes of")
        group = printable(half.producer_group)
        yield f"{counted(facts.resolvers, 'resolver')}, {listeners} the group {group}"


def _next_step(half: HalfMessage, settings: CheckBackConfig) -> str:
    most = settings.transaction_check_max if half.check_max is None else half.check_max
    at = iso_time(_next_check_ms(half, settings))
    if half.asks >= most:
        return f"the answer to check {half.asks} counts until {at}; then {settings.transaction_check_policy}"
    return f"check {half.asks + 1} of {most} is due at {at}, by the resolver's default settings"


def _next_check_ms(half: HalfMessage, settings: CheckBackConfig) -> int:
    if half.last_asked_timestamp is not None:
        return half.last_asked_timestamp + settings.transaction_check_interval
    own = half.check_immunity_ms
    return (half.born_timestamp or 0) + (settings.transaction_timeout if own is None else own)


def _advice(half: HalfMessage, verdict: HalfVerdict, facts: Circumstances) -> Iterator[Line]:
    def command(text: str) -> Line:
        return Line("command", f"txnkafka {text} {facts.options}")

    # after -- an id may begin with a hyphen
    name = (
        f"-- {quote(half.transaction_id)}" if half.transaction_id[:1] == "-" else quote(half.transaction_id)
    )
    if verdict is HalfVerdict.PARKED:
        yield Line("advice", "remove the reason; then check it again:")
        yield Line("command", f"txnkafka halves resume {facts.options} {name}")
        return
    if verdict is HalfVerdict.WAITS_FOR_RESOLVER:
        yield Line("advice", "start a resolver:")
        yield command("resolve")
    elif verdict is HalfVerdict.WAITS_FOR_LISTENER:
        yield Line("advice", f"start a process of the producer group {printable(half.producer_group)}")
    elif facts.resolvers is None:
        yield Line("advice", "serve this directory with a resolver:")
        yield command("serve --resolve")
    elif verdict is HalfVerdict.WAITS_FOR_MOVE:
        yield Line("advice", "wait; the log of the resolver has the error if its topic takes no records")
    else:
        yield Line("advice", "wait for the producer or a check")
    if half.state == "prepared":
        yield Line("advice", "if you know from the database that it committed (otherwise: rollback):")
        yield Line("command", f"txnkafka halves decide {facts.options} {name} commit")

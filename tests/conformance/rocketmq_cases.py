"""Scripts of check-back messages, with the results of RocketMQ 5.4.0 and of txnkafka.

A line of a script is a command:

    checks A ANSWER,ANSWER    answers of the checks of message A in turn; the last one is repeated
    half A OUTCOME [SECONDS]  send the message, with an outcome of its local transaction, and an immunity
    plain A                   send a plain message
    decide A OUTCOME          decide about the message from outside of its local transaction
    resume A                  let the checks of a parked message begin again
    asked A N, visible N, parked A
                              wait for N checks of a message, for N messages in the topic, for a parked one
    rounds N                  wait for N checks of a new message: older ones were checked before it
    close, open, open known   end the producer; start one; start one with its topic, which RocketMQ needs
    crash                     kill the broker, and start it again

Outcomes and answers are commit, rollback, unknown, null, raise; ``commit-after-check-1`` is a local
transaction that lasts until the first check was answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

__all__ = [
    "CASES",
    "CRASH",
    "LATE_MARKS",
    "ORDINARY",
    "RESUMED",
    "Case",
    "Result",
    "Seen",
    "commands",
]


class Seen(NamedTuple):
    """Values in the topic, and parked ones; the number of checks, or its range, of each message for
    which it is promised; errors that decisions raised."""

    visible: str = ""
    parked: str = ""
    asked: Mapping[str, int | range] = {}
    refused: str = ""


class Result(NamedTuple):
    """The observed result of a script, with the number of checks of every message."""

    visible: Sequence[str]
    parked: Sequence[str]
    asked: Mapping[str, int]
    refused: str = ""


class Case(NamedTuple):
    """``rows`` are numbers of the list of situations that was observed with RocketMQ. ``txnkafka`` is None
    unless it differs, on purpose. The
    order of visible values counts only if ``in_order``: decisions in flight at the same time have none."""

    name: str
    rows: Sequence[int]
    script: str
    rocketmq: Seen
    txnkafka: Seen | None = None
    in_order: bool = False


ORDINARY: Final = [
    Case("commit", [2], "half a commit; visible 1; rounds 2", Seen("a", asked={"a": 0})),
    Case("rollback", [3], "half a rollback; rounds 2", Seen(asked={"a": 0})),
    Case("unknown", [4], "checks a commit; half a unknown; visible 1; rounds 1", Seen("a", asked={"a": 1})),
    Case("null", [6], "checks a rollback; half a null; asked a 1; rounds 2", Seen(asked={"a": 1})),
    Case("raise", [5], "checks a commit; half a raise; visible 1; rounds 1", Seen("a", asked={"a": 1})),
    Case(
        "check-raises",
        [7],
        "checks a raise,commit; half a unknown; visible 1; rounds 1",
        Seen("a", asked={"a": 2}),
    ),
    Case(
        "check-returns-null",
        [8],
        "checks a null,commit; half a unknown; visible 1; rounds 1",
        Seen("a", asked={"a": 2}),
    ),
    Case(
        "check-does-not-know",
        [7],
        "checks a unknown,commit; half a unknown; visible 1; rounds 1",
        Seen("a", asked={"a": 2}),
    ),
    Case("parked", [9], "half a unknown; parked a; rounds 1", Seen(parked="a", asked={"a": 3})),
    Case(
        "commit-after-parking",
        [12],
        "half a unknown; parked a; decide a commit; rounds 1",
        Seen("a", parked="a", asked={"a": 3}),
        Seen(parked="a", asked={"a": 3}, refused="TransactionParkedError"),
    ),
    Case(
        "no-producer-for-a-time",
        [14, 15],
        "checks a commit; half a unknown; close; rounds 3; rounds 1; open known; rounds 2",
        Seen(parked="a", asked={"a": 0}),
        Seen("a", asked={"a": 1}),
    ),
    Case(
        "restarted-without-a-send",
        [19],
        "checks a commit; half a unknown; close; open; rounds 3; rounds 1",
        Seen(parked="a", asked={"a": 0}),
        Seen("a", asked={"a": 1}),
    ),
    Case(
        "restarted-with-its-topic",
        [20],
        "checks a commit; half a unknown; close; open known; visible 1; rounds 1",
        Seen("a", asked={"a": 1}),
    ),
    Case(
        "commit-commit",
        [21],
        "half a commit; visible 1; decide a commit; rounds 2",
        Seen("a a"),
        Seen("a"),
    ),
    Case(
        "rollback-commit",
        [22],
        "half a rollback; rounds 1; decide a commit; rounds 1",
        Seen("a"),
        Seen(refused="TransactionDecidedError"),
    ),
    Case(
        "commit-rollback",
        [23],
        "half a commit; visible 1; decide a rollback; rounds 1",
        Seen("a"),
        Seen("a", refused="TransactionDecidedError"),
    ),
    Case(
        "check-commit-commit",
        [24],
        "checks a commit; half a unknown; visible 1; decide a commit; rounds 1",
        Seen("a a"),
        Seen("a"),
    ),
    Case(
        "check-rollback-commit",
        [25],
        "checks a rollback; half a unknown; asked a 1; rounds 2; decide a commit; rounds 1",
        Seen("a"),
        Seen(refused="TransactionDecidedError"),
    ),
    Case(  # RocketMQ goes on to check the copy of the half that its first check has made
        "slow-local-transaction",
        [27],
        "half a commit-after-check-1; visible 1; rounds 3; rounds 1",
        Seen("a", parked="a", asked={"a": 3}),
        Seen("a", asked={"a": range(1, 3)}),
    ),
    Case(
        "slow-local-transaction-with-an-honest-listener",
        [27, 44],
        "checks a unknown,commit; half a commit-after-check-1; visible 1; rounds 3",
        Seen("a a", asked={"a": 2}),
        Seen("a", asked={"a": range(1, 3)}),
    ),
    Case(
        "slow-local-transaction-after-rollback",
        [28],
        "checks a rollback; half a commit-after-check-1; rounds 2",
        Seen("a", asked={"a": range(1, 3)}),
        Seen(asked={"a": 1}),
    ),
    Case(
        "order-of-decisions",
        [29],
        "half a unknown; half b unknown; plain p; decide b commit; visible 2; decide a commit; visible 3",
        Seen("p b a"),
        in_order=True,
    ),
    Case(
        "undecided-holds-nothing-back", [30], "half a unknown; plain p; half b commit; visible 2", Seen("b p")
    ),
    Case(
        "immunity-longer-than-all-rounds",
        [38],
        "half a unknown 20; parked a",
        Seen(parked="a", asked={"a": 0}),
        Seen(parked="a", asked={"a": 3}),
    ),
]
# with a broker that writes late which messages are finished
LATE_MARKS: Final = [
    Case(
        "commit-is-checked",
        [44],
        "checks a commit,unknown; half a commit; visible 1; rounds 2",
        Seen("a a"),
        Seen("a", asked={"a": 0}),
    ),
    Case(  # RocketMQ parks it in the round of the last check, or in the next one if it has no mark yet
        "last-check-commits",
        [10, 11],
        "checks a unknown,unknown,commit; half a unknown; visible 1; rounds 2",
        Seen("a", parked="a", asked={"a": 3}),
        Seen("a", asked={"a": 3}),
    ),
]
CRASH: Final = Case(
    "broker-killed-after-decisions",
    [43],
    "checks a commit; checks b commit; checks r rollback; checks u commit;"
    "half a commit; half b commit; half r rollback; half u unknown; visible 2; crash; visible 3; rounds 2",
    Seen("a a b b u", asked={"a": 1, "b": 1, "r": 1, "u": 1}),
    Seen("a b u", asked={"a": 0, "b": 0, "r": 0, "u": 1}),
)
RESUMED: Final = Case(
    "resume",
    [13],
    "checks a unknown,unknown,unknown,commit; half a unknown; parked a; decide a commit; rounds 1;"
    "resume a; rounds 3",
    Seen("a", parked="a", asked={"a": 3}),
    Seen("a", asked={"a": 4}, refused="TransactionParkedError"),
)
CASES: Final = [*ORDINARY, *LATE_MARKS, CRASH, RESUMED]


def commands(script: str) -> list[list[str]]:
    """The words of each command."""
    return [command.split() for command in script.split(";")]

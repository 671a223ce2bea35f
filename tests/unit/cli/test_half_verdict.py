"""The explanation of a half, for each verdict: its reason, its evidence, and its command."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from txnkafka.checkback import CheckBackConfig, HalfMessage
from txnkafka.cli.half_verdict import Circumstances, HalfVerdict, explained, verdict_of

BORN = 1_800_000_000_000
RUNNING = Circumstances(BORN + 60_000, 1, 1, "--bootstrap a:1")
SETTINGS = CheckBackConfig()


def half(state: str = "prepared", **facts: Any) -> HalfMessage:
    fields: dict[str, Any] = {
        "transaction_id": "order 1", "producer_group": "shop", "state": state, "partition": 0, "offset": 0,
        "born_timestamp": BORN, "asks": 0, "last_asked_timestamp": None, "outcome": None, "decided_by": None,
        "reason": None,
    }  # fmt: skip
    return HalfMessage(**{**fields, **facts})


ASKED = half(asks=2, last_asked_timestamp=BORN + 50_000)
LAST = half(asks=15, last_asked_timestamp=BORN + 50_000)
DECIDED = half("decided", outcome="commit", decided_by="check")
PARKED = half("parked", born_timestamp=None, outcome="park", decided_by="policy", reason="undecided", asks=15)
DECIDE = "txnkafka halves decide --bootstrap a:1 'order 1' commit"
CASES = [
    (half(), RUNNING._replace(now_ms=BORN), "WAITS_FOR_DECISION", "check 1 of 15 is due at", DECIDE),
    (half(check_immunity_ms=90_000, check_max=2), RUNNING, "WAITS_FOR_DECISION", "check 1 of 2", DECIDE),
    (half(), RUNNING, "WAITS_FOR_ANSWER", "sent at 2027-01-15T08:00:00.000Z, 1 min ago", DECIDE),
    (ASKED, RUNNING, "WAITS_FOR_ANSWER", "check 3 of 15 is due at 2027-01-15T08:01:20.000Z", DECIDE),
    (LAST, RUNNING, "WAITS_FOR_ANSWER", "the answer to check 15 counts until", DECIDE),
    (half(), RUNNING._replace(listeners=0), "WAITS_FOR_LISTENER", "1 resolver, 0 processes of", DECIDE),
    (half(), RUNNING._replace(resolvers=0), "WAITS_FOR_RESOLVER", "0 resolvers, 1 process of", DECIDE),
    (DECIDED, RUNNING._replace(resolvers=0), "WAITS_FOR_RESOLVER", "commit, decided by: check", "resolve"),
    (DECIDED, RUNNING, "WAITS_FOR_MOVE", "commit, decided by: check", None),
    (PARKED, RUNNING, "PARKED", "decided by: policy: undecided", "halves resume --bootstrap a:1 'order 1'"),
]


@pytest.mark.parametrize(("found", "facts", "verdict", "evidence", "command"), CASES)
def test_each_verdict_has_its_evidence_and_command(
    found: HalfMessage, facts: Circumstances, verdict: str, evidence: str, command: str | None
) -> None:
    assert verdict_of(found, facts, SETTINGS) == verdict
    lines = explained(found, facts, SETTINGS)
    assert lines[0].kind == "verdict"
    assert lines[0].text.startswith(f"order 1: {verdict}: ")
    assert any(evidence in line.text for line in lines if line.kind == "evidence")
    commands = [line.text for line in lines if line.kind == "command"]
    assert commands == [] if command is None else any(command in each for each in commands)


def test_every_verdict_has_a_case() -> None:
    assert {verdict for _, _, verdict, *_ in CASES} == set(HalfVerdict)


def test_a_directory_has_no_processes() -> None:
    lines = explained(half(), RUNNING._replace(resolvers=None, listeners=None, options="--data d"), SETTINGS)
    texts = [line.text for line in lines]
    assert "resolvers and listeners are not running: this is a data directory" in texts
    assert "txnkafka serve --resolve --data d" in texts


def test_an_id_that_looks_like_an_option_stays_an_argument() -> None:
    lines = explained(half(transaction_id="-x y"), RUNNING, SETTINGS)
    assert shlex.split(lines[-1].text)[-3:] == ["--", "-x y", "commit"]

"""All states x all events x versions of ``transition``, as a table to read, and the diagram of the states."""

from __future__ import annotations

from pathlib import Path

from tests.expected_text import same_block, same_text
from tests.unit.coordinator.transition_cases import (
    ALL_EPOCHS,
    LEVELS,
    ORDINARY,
    REFUSED_ANYHOW,
    Case,
    Epochs,
    asked,
    cases,
    shown,
    state_of,
)
from txnkafka.coordinator.txn.txn_events import Transition
from txnkafka.coordinator.txn.txn_image import VALID_PREVIOUS_STATES
from txnkafka.wire.records import TransactionMetadata, TransactionState

TABLE = Path(__file__).with_name("transition_table.txt")
PAGE = Path(__file__).parents[3] / "docs" / "transactions.md"
HEAD = """\
What transition() makes of each event in each state, by txnkafka/coordinator/txn/txn_state.py.
"0 1 2" are the levels of transaction.version; the number behind EndTxn is the client's transaction version.
Only what changes is shown; the time of the last update is "now" in every record. Producer 8 is a new one.
"""


def starts(epochs: Epochs) -> list[tuple[str, TransactionMetadata | None]]:
    found: list[tuple[str, TransactionMetadata | None]] = [("unknown", None)] if epochs is ORDINARY else []
    return found + [(state.label, state_of(state, epochs)) for state in epochs.states]


def lines(epochs: Epochs, case: Case) -> list[str]:
    """States and levels with the same outcome on one line."""
    outcomes: dict[str, dict[str, list[str]]] = {}
    for name, metadata in starts(epochs):
        for level in LEVELS:
            outcome = shown(metadata, case, level)
            outcomes.setdefault(outcome, {}).setdefault(name, []).append(str(level))
    found = []
    for outcome, by_state in outcomes.items():
        by_levels: dict[str, list[str]] = {}
        for state, levels in by_state.items():
            by_levels.setdefault(" ".join(levels), []).append(state)
        for levels, states in by_levels.items():
            found.append(f"  [{levels}] {', '.join(states)}\n        {outcome}")
    return found


def table() -> str:
    parts = [HEAD, "\n== requests that are refused in every state ==\n"]
    for case in REFUSED_ANYHOW:
        (outcome,) = {shown(metadata, case, level) for _, metadata in starts(ORDINARY) for level in LEVELS}
        parts.append(f"{type(case.event).__name__}, {case.title}: {outcome}\n")
    for epochs in ALL_EPOCHS:
        parts.append(f"\n== {epochs.title} ==\n")
        for case in cases(epochs):
            parts.append("\n".join(["", case.title, *lines(epochs, case), ""]))
    return "".join(parts)


def edges() -> dict[tuple[str, str], list[str]]:
    """(state before, state behind) and what leads from one to the other."""
    found: dict[tuple[str, str], list[str]] = {}
    for epochs in ALL_EPOCHS:
        for case in cases(epochs):
            for _, metadata in starts(epochs):
                for level in LEVELS:
                    result, _ = asked(metadata, case, level)
                    if isinstance(result, Transition) and result.record is not None:
                        ends = (_node(metadata), _node(result.metadata))
                        label = _label(case)
                        if label not in found.setdefault(ends, []):
                            found[ends].append(label)
    return found


def _node(metadata: TransactionMetadata | None) -> str:
    return "[*]" if metadata is None else metadata.state.label


def _label(case: Case) -> str:
    kind = type(case.event).__name__
    if kind == "EndTxn":
        return case.title.split(",")[1].strip()
    return {"Timeout": "timeout", "MarkersWritten": "markers written", "Expire": "expired"}.get(kind, kind)


def diagram() -> str:
    rows = [f"    {before} --> {after}: {', '.join(labels)}" for (before, after), labels in edges().items()]
    return "\n".join(["stateDiagram-v2", *sorted(rows), ""])


def test_the_table_is_the_one_that_was_reviewed() -> None:
    same_text(TABLE, table())


def test_the_diagram_of_the_page_is_what_the_function_does() -> None:
    same_block(PAGE, "states of a transactional id", diagram())


def test_epochs_rise_by_one_or_begin_again_with_a_new_producer() -> None:
    for epochs in ALL_EPOCHS:
        for case in cases(epochs):
            for _, before in starts(epochs):
                for level in LEVELS:
                    result, took_id = asked(before, case, level)
                    if before is None or not isinstance(result, Transition) or result.metadata is None:
                        continue
                    after = result.metadata
                    if after.producer_id != before.producer_id:
                        assert after.producer_epoch == max(before.next_producer_epoch, 0)
                        assert took_id or before.next_producer_id != -1
                    elif before.next_producer_epoch != -1:
                        assert after.producer_epoch - before.next_producer_epoch in (0, 1)
                    else:
                        assert after.producer_epoch - before.producer_epoch in (0, 1)
                    assert 0 <= after.producer_epoch <= 32767


def test_every_step_is_one_of_the_valid_previous_states_and_all_of_these_are_taken() -> None:
    taken = {(before, after) for before, after in edges() if "[*]" not in (before, after)}
    valid = {
        (before.label, after.label)
        for after, befores in VALID_PREVIOUS_STATES.items()
        if after not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
        for before in befores
    }
    assert taken == valid


def test_a_producer_id_changes_only_when_nothing_is_open() -> None:
    idle = {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
    changed = set()
    for epochs in ALL_EPOCHS:
        for case in cases(epochs):
            for _, before in starts(epochs):
                for level in LEVELS:
                    result, _ = asked(before, case, level)
                    after = result.metadata if isinstance(result, Transition) else None
                    if before is None or after is None or after.producer_id == before.producer_id:
                        continue
                    assert after.state in idle
                    assert before.state in idle or before.next_producer_id == after.producer_id
                    changed.add((before.state, after.state))
    assert {after for _, after in changed} == idle

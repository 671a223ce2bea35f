"""The text of a prepared transaction's state, as Java's ``PreparedTxnState`` reads and writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka import PreparedTxnState


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1))
def test_text_and_back(producer_id: int, epoch: int) -> None:
    state = PreparedTxnState(producer_id, epoch)
    assert str(state) == f"{producer_id}:{epoch}"
    assert PreparedTxnState.parse(str(state)) == state
    assert state.has_transaction


def test_no_transaction_is_an_empty_text() -> None:
    assert str(PreparedTxnState()) == ""
    assert PreparedTxnState.parse("") == PreparedTxnState()
    assert not PreparedTxnState().has_transaction


@pytest.mark.parametrize(
    "text", ["7", "7:", ":7", "7:8:9", "-1:-1", "-1:0", "7:-1", " 7:8", "7:8\n", "a:b", "7:32768",
             "\u0667:\u0668", f"{2**63}:0", "+7:8", "1_0:8", "7" * 10_000 + ":1"],
)  # fmt: skip
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"prepared transaction|does not exist"):
        PreparedTxnState.parse(text)


@given(st.text(max_size=12))
def test_each_text_is_parsed_to_itself_or_refused(text: str) -> None:
    try:
        state = PreparedTxnState.parse(text)
    except ValueError:
        return
    assert PreparedTxnState.parse(str(state)) == state

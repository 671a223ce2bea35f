"""Ids of members that the coordinator makes."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group_clients import Member, Node
from txnkafka.error_codes import ErrorCode as E

LONGEST = 32_767  # bytes of a text in an answer


@pytest.mark.parametrize("name", ["i" * LONGEST, "i" * (LONGEST - 36), "\u00fc" * (LONGEST // 2)])
def test_an_id_fits_into_an_answer_whatever_the_name(name: str) -> None:
    node = Node()
    member = Member(node, instance=name).join()
    node.wait(5_000)
    assert member.joined[-1].error == E.NONE
    assert member.member_id.startswith(name[:16_000])
    assert len(member.member_id.encode()) <= LONGEST

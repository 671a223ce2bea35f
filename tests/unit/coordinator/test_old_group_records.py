"""Records of groups that old brokers have written."""

from __future__ import annotations

from txnkafka.coordinator.group.group_partition import group_of
from txnkafka.wire.records.group_log import decode_group, encode_group_key


def test_a_member_in_a_record_of_version_0_has_its_session_to_rebalance() -> None:
    """The record of a broker before 0.10.1 has one timeout."""
    words = [b"m", b"client", b"/127.0.0.1"]
    texts = b"".join(len(each).to_bytes(2, "big") + each for each in words)
    member = texts + (45_000).to_bytes(4, "big") + (0).to_bytes(8, "big")
    head = b"\0\0" + b"\0\x08consumer" + (1).to_bytes(4, "big") + b"\0\x05range" + b"\0\1m"
    found = decode_group(encode_group_key("g"), head + (1).to_bytes(4, "big") + member)
    assert found is not None
    assert found[1] is not None
    (loaded,) = group_of("g", found[1]).members.values()
    assert (loaded.session_timeout_ms, loaded.rebalance_timeout_ms) == (45_000, 45_000)

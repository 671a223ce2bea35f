"""Records of ``__consumer_offsets``: bytes seen on real brokers, all key types, what nobody should trust."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.wire.records import GroupOffset, LogRecord, decode_group_log
from txnkafka.wire.records.consumer_protocol import decode_assignment, decode_subscription

KEY = bytes.fromhex("0001 0009 672d636c6173736963 0002 696e 00000000")
VALUE = bytes.fromhex("0004 0000000000000003 ffffffff 01 000001a1fd5a85ea 00")
COMMITTED_AT = 0x1A1FD5A85EA

GROUP_KEY = b"\0\x02\0\x01g"
SUBSCRIPTION = bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 ffffffff ffff")
ASSIGNMENT = bytes.fromhex("0003 00000001 0001 74 00000002 00000000 00000001 ffffffff")


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def group(protocol_type: bytes, subscription: bytes, assignment: bytes) -> bytes:
    """Group metadata of version 3 with one member."""
    head = b"\0\x03" + len(protocol_type).to_bytes(2, "big") + protocol_type
    head += bytes.fromhex("00000005 0005 72616e6765 0001 6d 000001a1fd5a85ea 00000001")
    member = bytes.fromhex("0001 6d ffff 0001 63 0002 2f68 000493e0 0000afc8")
    return head + member + sized(subscription) + sized(assignment)


def member_of(record: LogRecord) -> dict[str, object]:
    assert record.error is None
    assert record.value is not None
    (member,) = record.value["members"]
    assert isinstance(member, dict)
    return member


def test_the_observed_transactional_commit() -> None:
    record = decode_group_log(KEY, VALUE)
    assert (record.type, record.key_version, record.value_version, record.error) == (
        "offset_commit",
        1,
        4,
        None,
    )
    assert GroupOffset.of(record) == GroupOffset(
        group="g-classic",
        topic="in",
        partition=0,
        offset=3,
        leader_epoch=-1,
        metadata="",
        commit_timestamp=COMMITTED_AT,
        expire_timestamp=-1,
        topic_id=None,
    )


@pytest.mark.parametrize(
    ("value", "leader_epoch", "expire_timestamp", "topic_id"),
    [
        ("0000 0000000000000003 0001 6d 000001a1fd5a85ea", -1, -1, None),
        ("0001 0000000000000003 0001 6d 000001a1fd5a85ea 00000000000000ff", -1, 255, None),
        ("0002 0000000000000003 0001 6d 000001a1fd5a85ea", -1, -1, None),
        ("0003 0000000000000003 00000007 0001 6d 000001a1fd5a85ea", 7, -1, None),
        ("0004 0000000000000003 00000007 02 6d 000001a1fd5a85ea 00", 7, -1, None),
        (
            "0004 0000000000000003 00000007 02 6d 000001a1fd5a85ea 01 00 10" + "fb" * 16,
            7,
            -1,
            "-_v7" * 5 + "-w",
        ),
    ],
)
def test_every_version_of_an_offset(
    value: str, leader_epoch: int, expire_timestamp: int, topic_id: str | None
) -> None:
    committed = GroupOffset.of(decode_group_log(KEY, bytes.fromhex(value)))
    assert committed is not None
    assert (committed.offset, committed.metadata, committed.commit_timestamp) == (3, "m", COMMITTED_AT)
    assert committed.leader_epoch == leader_epoch
    assert (committed.expire_timestamp, committed.topic_id) == (expire_timestamp, topic_id)


def test_the_oldest_key_has_the_oldest_value() -> None:
    key, value = b"\0\0" + KEY[2:], bytes.fromhex("0000 0000000000000003 0001 6d 000001a1fd5a85ea")
    record = decode_group_log(key, value)
    assert (record.type, record.key_version) == ("offset_commit", 0)
    committed = GroupOffset.of(record)
    assert committed is not None
    assert (committed.group, committed.offset) == ("g-classic", 3)
    later = decode_group_log(key, VALUE)
    assert later.error == "value: offset_commit version 4 is not known (known: 0) (byte 0)"
    assert GroupOffset.of(later) is None


def test_a_tombstone_and_other_types_are_no_offsets() -> None:
    tombstone = decode_group_log(KEY, None)
    assert tombstone.is_tombstone
    assert tombstone.error is None
    assert GroupOffset.of(tombstone) is None
    assert GroupOffset.of(decode_group_log(GROUP_KEY, group(b"consumer", b"", b""))) is None


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("0002 0001 67", "group_metadata"),
        ("0003 0001 67", "consumer_group_metadata"),
        ("0004 0001 67", "consumer_group_partition_metadata"),
        ("0005 0001 67 0001 6d", "consumer_group_member_metadata"),
        ("0006 0001 67", "consumer_group_target_assignment_metadata"),
        ("0007 0001 67 0001 6d", "consumer_group_target_assignment_member"),
        ("0008 0001 67 0001 6d", "consumer_group_current_member_assignment"),
        ("0010 0001 67 0001 6d", "consumer_group_regular_expression"),
    ],
)
def test_key_types(key: str, name: str) -> None:
    record = decode_group_log(bytes.fromhex(key), None)
    assert (record.type, record.key_version, record.error) == (name, int(key[:4], 16), None)
    assert record.is_tombstone
    assert set((record.key or {}).values()) <= {"g", "m"}


@pytest.mark.parametrize("key_type", [9, 10, 11, 12, 13, 14, 15, 17, 21, 300, -1])
def test_types_of_share_and_streams_groups_are_shown_in_hex(key_type: int) -> None:
    key = key_type.to_bytes(2, "big", signed=True) + b"\0\x01g"
    record = decode_group_log(key, b"\0\x02abc")
    assert record.as_dict() == {
        "type": "unknown",
        "key_version": key_type,
        "key": None,
        "value_version": 2,
        "value": None,
        "error": f"key type {key_type} is not known",
        "raw_key": key.hex(),
        "raw_value": "0002616263",
    }


def test_members_of_consumer_groups_are_shown_with_what_they_told() -> None:
    member = member_of(decode_group_log(GROUP_KEY, group(b"consumer", SUBSCRIPTION, ASSIGNMENT)))
    assert member["subscription"] == {
        "topics": ["t"],
        "user_data": None,
        "owned_partitions": [],
        "generation_id": -1,
        "rack_id": None,
    }
    assert member["assignment"] == {
        "assigned_partitions": [{"topic": "t", "partitions": [0, 1]}],
        "user_data": None,
    }


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "assignment"),
    [
        (b"connect", SUBSCRIPTION, ASSIGNMENT),
        (b"consumer", SUBSCRIPTION[:-1], ASSIGNMENT[:-1]),
        (b"consumer", b"\x80\x04" + SUBSCRIPTION[2:], b"\xff\xff" + ASSIGNMENT[2:]),
        (b"consumer", b"", b"\0"),
    ],
)
def test_what_members_told_stays_bytes_where_it_is_something_else(
    protocol_type: bytes, subscription: bytes, assignment: bytes
) -> None:
    record = decode_group_log(GROUP_KEY, group(protocol_type, subscription, assignment))
    member = member_of(record)
    assert (member["subscription"], member["assignment"]) == (subscription, assignment)
    shown = record.as_dict()["value"]["members"][0]
    assert shown["subscription"] == b64encode(subscription).decode()


@pytest.mark.parametrize("value", [VALUE[:end] for end in range(len(VALUE))])
def test_a_value_that_is_cut_off_is_kept_as_it_is(value: bytes) -> None:
    record = decode_group_log(KEY, value)
    assert (record.type, record.value, record.raw_value) == ("offset_commit", None, value)
    assert record.error is not None
    assert GroupOffset.of(record) is None


@given(
    st.one_of(st.none(), st.tuples(st.integers(0, 17), st.binary(max_size=20))),
    st.one_of(st.none(), st.tuples(st.integers(0, 5), st.binary(max_size=80))),
)
def test_no_bytes_raise(key: tuple[int, bytes] | None, value: tuple[int, bytes] | None) -> None:
    record = decode_group_log(*(part and bytes([0, part[0]]) + part[1] for part in (key, value)))
    GroupOffset.of(record)
    json.dumps(record.as_dict(), allow_nan=False)
    understood = record.key is not None and (value is None or record.value is not None)
    assert understood or record.error is not None


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_groups_raise_nothing(damage: list[tuple[int, int]]) -> None:
    value = bytearray(group(b"consumer", SUBSCRIPTION, ASSIGNMENT))
    for position, byte in damage:
        value[position % len(value)] = byte
    record = decode_group_log(GROUP_KEY, bytes(value))
    json.dumps(record.as_dict(), allow_nan=False)
    assert record.value is not None or record.error is not None


def test_a_consumer_protocol_of_another_version_is_read_as_the_highest_known() -> None:
    """What is behind the known fields is ignored, as in ``ConsumerProtocol``; nothing is read of a negative
    version, nor of bytes that end too early."""
    later = b"\0\x04" + SUBSCRIPTION[2:] + b"new"
    found = decode_subscription(later)
    assert found == decode_subscription(SUBSCRIPTION)
    assert found is not None
    assert decode_assignment(b"\0\x07" + ASSIGNMENT[2:] + b"?") == decode_assignment(ASSIGNMENT)
    without_owned = b"\0\1" + SUBSCRIPTION[2:13]
    assert decode_subscription(without_owned) is None
    assert decode_subscription(without_owned, version=0) == {"topics": found["topics"], "user_data": None}
    for data in (b"", b"\0", b"\xff\xff" + SUBSCRIPTION[2:], SUBSCRIPTION[:-1]):
        assert decode_subscription(data) is None

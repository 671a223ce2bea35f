"""Messages of a half: encoded in batches, and decoded for a listener."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.checkback import Message, MessageExt
from txnkafka.checkback.half_content import batches_of, messages_of
from txnkafka.checkback.message import TXN_ID
from txnkafka.errors import CorruptRecordError
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.wire.records.half_records import HalfBatch

NOW_MS = 1_700_000_000_000
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(lambda name: name != "TAGS")
headers = st.lists(st.tuples(names.filter(lambda name: name != TXN_ID), st.none() | st.binary(max_size=9)))
messages = st.builds(
    Message,
    st.sampled_from(["orders", "bills"]),
    st.none() | st.binary(max_size=50),
    tags=st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
    keys=st.none() | st.binary(max_size=9),
    headers=headers,
    partition=st.integers(0, 2),
    timestamp=st.none() | st.integers(0, 1 << 50),
)


@given(st.lists(messages, min_size=1, max_size=9), st.sampled_from(["none", "gzip", "lz4", "zstd"]))
def test_messages_come_back_as_they_were(sent: list[Message], codec: str) -> None:
    placed = [(each, each.partition or 0) for each in sent]
    batches = batches_of(placed, "order-1", RecordBatchBuilder(codec), NOW_MS)
    places = [(each.topic, each.partition) for each in batches]
    assert len(places) == len(set(places))
    found = messages_of(batches)
    for place in places:
        before = [each for each in sent if (each.topic, each.partition) == place]
        after = [each for each in found if (each.topic, each.partition) == place]
        assert [_facts(each) for each in after] == [_facts(each) for each in before]
    assert len(found) == len(sent)


def _facts(message: Message) -> tuple[object, ...]:
    timestamp = NOW_MS if message.timestamp is None else message.timestamp
    return message.body, message.keys, message.tags, message.headers, timestamp


def test_text_and_properties_become_bytes_and_headers() -> None:
    message = Message("orders", "ä", keys="ö", tags="A", properties={"color": "grün"}, partition=0)
    (batch,) = batches_of([(message, 0)], "order-1", RecordBatchBuilder(), NOW_MS)
    (found,) = messages_of([batch])
    assert (found.body, found.keys, found.tags) == ("ä".encode(), "ö".encode(), "A")
    assert found.headers == (("color", "grün".encode()),)


@pytest.mark.parametrize("records", [b"", b"no batch", bytes(100)])
def test_other_bytes_are_damage(records: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="orders-1"):
        messages_of([HalfBatch("orders", 1, records)])


@given(st.integers(0), st.integers(0, 7))
def test_a_flipped_bit_is_damage_or_a_message(place: int, bit: int) -> None:
    """The checksum does not cover the fields before it."""
    (batch,) = batches_of([(Message("orders", b"a book"), 0)], "order-1", RecordBatchBuilder(), NOW_MS)
    changed = bytearray(batch.records)
    changed[place % len(changed)] ^= 1 << bit
    try:
        (found,) = messages_of([batch._replace(records=bytes(changed))])
    except CorruptRecordError:
        return
    assert found.body == b"a book"
    assert place % len(changed) < 17


def test_two_batches_in_one_place_are_damage() -> None:
    (batch,) = batches_of([(Message("orders", b"a book"), 0)], "order-1", RecordBatchBuilder(), NOW_MS)
    with pytest.raises(CorruptRecordError, match="2 batches instead of one"):
        messages_of([batch._replace(records=2 * batch.records)])


def test_a_message_for_a_listener_has_the_facts_of_its_half() -> None:
    message = Message("orders", b"a book", keys="anna", headers=[("a", b"1")])
    found = MessageExt.of(
        message, transaction_id="order-1", producer_group="shop", born_timestamp=5, check_times=2
    )
    assert (found.topic, found.body, found.keys, found.headers) == (
        "orders",
        b"a book",
        "anna",
        (("a", b"1"),),
    )
    assert (found.msg_id, found.producer_group, found.born_timestamp, found.check_times) == (
        "order-1", "shop", 5, 2,
    )  # fmt: skip


@pytest.mark.parametrize("topic", ["", None, 5])
def test_a_message_needs_a_topic(topic: object) -> None:
    with pytest.raises(TypeError, match="the topic of a message is a name"):
        Message(topic)  # type: ignore[arg-type]

"""What is written reads as it was, in every version of every message, and cut or damaged it is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES, LONG, sampled
from tests.unit.wire.messages.frames import frame_of, header_size, message_of
from tests.unit.wire.messages.kafka_apis import MESSAGES, Message
from tests.unit.wire.messages.values import messages_of, random_message
from txnkafka.errors import InvalidRequestError

EACH_MESSAGE = pytest.mark.parametrize("message", MESSAGES, ids=str)
SOME_MESSAGES = pytest.mark.parametrize("message", sampled(MESSAGES, every=5), ids=str)
UNKNOWN_TAG = b"\x01\xcd\x7f\x03abc"


@EACH_MESSAGE
@settings(max_examples=EXAMPLES // 8 if LONG else 4)
@given(data=st.data())
def test_what_is_written_reads_as_it_was(message: Message, data: st.DataObject) -> None:
    value = data.draw(messages_of(message))
    frame = frame_of(message, value)
    assert message_of(message, frame) == value
    assert message_of(message, frame + b"left over") == value


@EACH_MESSAGE
def test_defaults_read_as_they_were(message: Message) -> None:
    value = message.cls()
    assert message_of(message, frame_of(message, value)) == value


@SOME_MESSAGES
def test_every_truncation_is_refused(message: Message) -> None:
    frame = frame_of(message, random_message(message))
    for end in range(len(frame)):
        with pytest.raises(InvalidRequestError) as caught:
            message_of(message, frame[:end])
        assert caught.value.position <= end


@SOME_MESSAGES
@pytest.mark.parametrize("flipped", [0x80, 0xFF])
def test_every_changed_byte_is_read_or_refused(message: Message, flipped: int) -> None:
    frame = bytearray(frame_of(message, random_message(message)))
    for at in range(header_size(message), len(frame)):
        frame[at] ^= flipped
        position = refused_at(message, bytes(frame))
        assert position is None or header_size(message) <= position <= len(frame)
        frame[at] ^= flipped


def refused_at(message: Message, frame: bytes) -> int | None:
    try:
        message_of(message, frame)
    except InvalidRequestError as error:
        return error.position
    return None


@pytest.mark.parametrize("message", [message for message in MESSAGES if message.flexible], ids=str)
def test_an_unknown_tagged_field_is_skipped(message: Message) -> None:
    value = random_message(message, 0)
    frame = frame_of(message, value)
    assert frame[-1] == 0
    assert message_of(message, frame[:-1] + UNKNOWN_TAG) == value
    with pytest.raises(InvalidRequestError, match="needs 3 bytes, 2 are left"):
        message_of(message, frame[:-1] + UNKNOWN_TAG[:-1])


def test_random_messages_reach_every_kind_of_value() -> None:
    shown = "".join(repr(random_message(message, number)) for message in MESSAGES for number in (0, 4))
    assert [part for part in ("None", "()", "True", "-1", "b'", "\u2603") if part not in shown] == []

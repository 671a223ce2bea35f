"""Classes of messages: built from keywords, frozen, compared by their fields."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tests.unit.wire.messages.kafka_apis import MESSAGES
from tests.unit.wire.messages.values import random_message
from txnkafka._core.message_class import message_class
from txnkafka.wire.fields import fields_of, int32, is_message, message, replaced, string


@message
class Row:
    """A row."""

    number: int = int32()
    name: str = string(default="a")
    secret: str = string(shown=False)


def test_fields_have_their_values_or_defaults() -> None:
    assert (Row().number, Row().name, Row().secret) == (0, "a", "")
    row = Row(name="b", number=3)
    assert (row.number, row.name, row.secret) == (3, "b", "")
    assert is_message(row)
    assert not is_message(3)
    assert Row.__doc__ == "A row."


def test_none_is_a_value() -> None:
    make: Any = Row
    assert make(name=None).name is None
    assert replaced(Row(), name=None) == make(name=None)


def test_unknown_and_positional_values_are_refused() -> None:
    make: Any = Row
    with pytest.raises(TypeError, match="Row has no field colour, size"):
        make(number=1, size=2, colour=3)
    with pytest.raises(TypeError):
        make(1)


def test_a_message_does_not_change() -> None:
    row: Any = Row(number=1)
    for name in ("number", "other"):
        with pytest.raises(AttributeError, match=f"Row.{name} cannot be set"):
            setattr(row, name, 2)
    with pytest.raises(AttributeError, match=r"Row\.number cannot be deleted"):
        del row.number
    assert row == Row(number=1)
    assert not hasattr(row, "__dict__")


def test_equal_fields_are_equal_messages_of_one_class() -> None:
    @message
    class Other:
        number: int = int32()
        name: str = string(default="a")
        secret: str = string()

    assert Row(number=1) == Row(number=1, name="a")
    assert hash(Row(number=1)) == hash(Row(number=1))
    assert Row(number=1) != Row(number=2)
    assert Row(secret="x") != Row()
    assert Row() != Other()
    assert Row() != (0, "a", "")


def test_a_secret_is_not_shown() -> None:
    assert repr(Row(secret="x")) == "Row(number=0, name='a')"


def test_a_copy_has_changes_and_everything_else() -> None:
    assert replaced(Row(number=1, secret="x"), name="c") == Row(number=1, name="c", secret="x")
    with pytest.raises(TypeError, match="no field size"):
        replaced(Row(), size=1)


@pytest.mark.parametrize("each", MESSAGES[::5], ids=str)
def test_every_message_is_copied_and_compared(each: Any) -> None:
    value = random_message(each, 1)
    given = {field.name: getattr(value, field.name) for field in fields_of(type(value))}
    made = type(value)(**given)
    assert made == value
    assert copy.copy(value) == value
    if not any(isinstance(one, memoryview) for one in given.values()):
        assert pickle.loads(pickle.dumps(value)) == value
    for name in given:
        assert replaced(value, **{name: object()}) != value


def test_other_classes_are_refused() -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    class Own:
        def __repr__(self) -> str:
            return ""

    with pytest.raises(TypeError, match="has a base class"):
        message_class(Derived, (), (), [])
    with pytest.raises(TypeError, match="is the same for all messages"):
        message_class(Own, (), (), [])
    with pytest.raises(ValueError, match="1 defaults for 0 fields"):
        message_class(Base, (), (1,), [])
    with pytest.raises(TypeError, match="is no message class"):
        Row.__init__(object())  # type: ignore[arg-type]

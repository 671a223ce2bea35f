"""Text that is no predicate is refused with its position and an example; the other tests are in
tests/property."""

from __future__ import annotations

import re

import pytest

from txnkafka.record.predicate_text import MAX_DEPTH, MAX_LENGTH, parse_predicate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "length(…), header(…) is expected, not 'the end', at position 1"),
        ("ofset > 1", "is expected, not 'ofset', at position 1"),
        ("offset > 'a'", "offset must be compared with a whole number of 64 bits, not \"'a'\", at"),
        ("offset > 9223372036854775808", "whole number of 64 bits"),
        ("offset like 'a%'", "offset is expected (=, <, in, between, is null, …), not 'like', at position 8"),
        ("key = 5", "key must be compared with text in quotes or bytes such as x'00ff', not '5'"),
        ("key = x'0'", "bytes must be pairs of hexadecimal digits such as x'00ff'"),
        ("topic = x'00'", "topic must be compared with text in quotes, not"),
        ("length(topic) > 1", "length takes key or value, not 'topic', at position 8"),
        ("length(offset) > 1", "length takes key or value, not 'offset', at position 8"),
        ("length(" * 5000, "length takes key or value, not 'length', at position 8"),
        ("header(trace) = 'a'", "header takes a name in quotes"),
        ("header('\udcff') = 'a'", "text is UTF-8 here, and bytes are written as in x'00ff', not"),
        ("key = '\udcff'", "text is UTF-8 here, and bytes are written as in x'00ff', not"),
        ("timestamp > 'soon'", "a time such as '2026-01-31T12:00:00Z' is expected"),
        ("timestamp > '2026-01-31T12:00:00.0001Z'", "whole milliseconds"),
        ("(offset > 1", ") is expected, not 'the end', at position 12"),
        ("offset > 1 2", "and, or, or the end is expected, not '2', at position 12"),
        ("offset between 1 or 2", "and is expected, not 'or'"),
        ("key is 5", "null is expected, not '5'"),
        ("offset @ 1", "'@ 1' at position 7 of 'offset @ 1' is not understood"),
        ("key = 'x", 'the quote at position 7 of "key = \'x" is not closed'),
        ("offset > 1 and  key = x'00", "the quote at position 24 of"),
        ("not " * MAX_DEPTH + "true", f"at most {MAX_DEPTH} parentheses and nots may be nested"),
        ("true" + " " * MAX_LENGTH, f"a predicate may have {MAX_LENGTH} characters"),
    ],
)
def test_what_is_no_predicate(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("offset >> 5", "> must be followed by a value, not '>', at position 9 of 'offset >> 5'"),
        ("offset => 5", "= must be followed by a value, not '>', at position 9 of 'offset => 5'"),
        ("ofset > 5", "is expected, not 'ofset', at position 1 of 'ofset > 5': did you mean offset?"),
        ("key = 'a' and vlaue = 'b'", "at position 15 of \"key = 'a' and vlaue = 'b'\": did you mean value?"),
        ("9 > offset", "is expected, not '9', at position 1 of '9 > offset'"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        parse_predicate(text)
    assert str(caught.value).endswith(message)

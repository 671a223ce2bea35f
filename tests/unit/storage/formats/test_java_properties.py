"""Java's properties format; tests/conformance/test_java_properties.py has Java as judge."""

from __future__ import annotations

import pytest

from txnkafka.storage.formats.java_properties import parse_properties


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        (b"# a\n! b\n\na=1\n", [(4, "a", "1")]),
        (b"a=1\\\n  2\nb=3", [(1, "a", "12"), (3, "b", "3")]),
        (b"a=1\\\n\nb=2", [(1, "a", "1"), (3, "b", "2")]),
        (b"\\\n\\\n\na=1", [(4, "a", "1")]),
        (b"\\\n#a=1\nb=2", [(3, "b", "2")]),
        (b"a\\ b : c\\u0041\\\\\n", [(1, "a b", "cA\\")]),
        (b"a=1\na=2\n", [(1, "a", "1"), (2, "a", "2")]),
        (b"a", [(1, "a", "")]),
    ],
)
def test_entries_and_the_lines_they_begin_in(content: bytes, entries: list[tuple[int, str, str]]) -> None:
    assert list(parse_properties(content)) == entries

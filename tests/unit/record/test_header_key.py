"""Header names in Python are those of the JSON lines, which have Java's replacement characters."""

from __future__ import annotations

from itertools import product

from tests.conftest import LONG
from tests.models.text import utf8_as_java
from txnkafka.record.batch import header_key


def test_every_name_of_a_few_bytes() -> None:
    """Each kind of byte that UTF-8 has, and the limits of surrogates."""
    kinds = b"A\x80\x9f\xa0\xbf\xc3\xe2\xed\xef\xf0\xf4\xf8"
    for length in range(1, 5 if LONG else 4):
        for name in map(bytes, product(kinds, repeat=length)):
            assert header_key(name) == utf8_as_java(name), name

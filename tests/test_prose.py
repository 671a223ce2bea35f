"""Limits the habits of hard English in each room; see ``tests/prose.py``."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

import pytest

from tests.prose import habits, words
from tests.test_tidy import texts

# habits of hard English for 1,000 words; a figure may fall, and then its limit does
PROSE_LIMITS = {
    "txnkafka/broker": 1,
    "txnkafka/coordinator": 1,
    "txnkafka/server": 1,
    "txnkafka": 1,
    "bench": 2,
    "tests": 13,
    "docs": 1,
    "": 1,  # the pages at the top
}


def prose_room(path: PurePath) -> str | None:
    """Return the entry of ``PROSE_LIMITS`` for a page or module; None for other files."""
    rooms = [room for room in PROSE_LIMITS if room and path.is_relative_to(room)]
    if path.suffix not in (".md", ".py") or (not rooms and len(path.parts) > 1):
        return None
    return rooms[0] if rooms else ""


@pytest.mark.parametrize("room", PROSE_LIMITS, ids=lambda room: room or "top")
def test_prose_is_as_plain_as_it_was(room: str) -> None:
    files = [(path, text) for path, text in texts().items() if prose_room(path) == room]
    hits = Counter(habit for path, text in files for habit in habits(path, text))
    limit = PROSE_LIMITS[room] * sum(words(path, text) for path, text in files) / 1000
    assert files
    assert hits.total() <= limit, hits.most_common()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "Tickets are those of a log."),
        ("a.md", "Nobody waits."),
        ("a.md", "This shows what is left."),
        ("a.py", "# there is no log\n"),
        ("a.py", "# the host is told\n"),
        ("a.py", '"""Records behind it are lost."""\n'),
        ("a.py", '"""It is flushed, too."""\n'),
        ("a.py", 'def f():\n    """Whether it is."""\n'),
    ],
)
def test_a_habit_is_counted(path: str, text: str) -> None:
    assert len(list(habits(PurePath(path), text))) == 1


def test_code_is_no_prose() -> None:
    page = "`who is` it\n\n    nobody\n\n```\nthere is\n```\n"
    assert list(habits(PurePath("a.md"), page)) == []
    assert list(habits(PurePath("a.py"), "nobody = 'there is, too.'\n")) == []

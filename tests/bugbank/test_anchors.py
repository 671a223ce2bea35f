"""A patch finds its code by the name of a definition and by tokens, wherever the code is and however it is
formatted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bugbank.anchors import definitions, places
from tests.bugbank.patches import Change, PatchError

SOURCE = '''
LIMIT = 3


class Queue:
    """Parked requests.

def take(self): not code
    """

    @property
    @cached(
        size=3,
    )
    def size(self) -> int:
        return len(self.queue)  # not the deadline

    def take(
        self,
        now_ms: int,
    ) -> str:
        def due(each: str) -> bool:
            return each < now_ms

        if self.queue:
            first = self.queue.popleft()
            return first
        return ""


cdef inline int64_t measure(const char* data,
                            int size) noexcept nogil:
    return size + 1
'''


def written(top: Path, text: str = SOURCE, name: str = "a.pyx") -> Path:
    path = top / "txnkafka" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def code_of(scope: str) -> list[str]:
    return [SOURCE[start:end].strip() for start, end in definitions(SOURCE)[scope]]


def test_definitions_have_qualified_names() -> None:
    names = ["LIMIT", "Queue.size", "Queue.take.due", "Queue.take", "Queue", "measure"]
    assert [*definitions(SOURCE)] == names
    assert code_of("LIMIT") == ["LIMIT = 3"]
    assert code_of("Queue.size")[0].startswith("@property\n    @cached(")
    assert code_of("Queue.take.due") == ["def due(each: str) -> bool:\n            return each < now_ms"]
    assert code_of("Queue.take")[0].endswith('return ""')
    assert code_of("measure")[0].endswith("return size + 1")


@pytest.mark.parametrize(
    ("scope", "old", "new", "expected"),
    [
        ("Queue.take", "popleft()", "pop()", ("self.queue.popleft()", "self.queue.pop()")),
        ("measure", "return size+1", "return size", ("    return size + 1", "    return size")),
        ("Queue.take", "return first\n", "", ("            return first\n", "")),
        ("Queue.take.due", "each < now_ms", "True", ("each < now_ms", "True")),
        ("LIMIT", "3", "4", ("LIMIT = 3", "LIMIT = 4")),
        (
            "Queue.take",
            "if self.queue:\n    first = self.queue.popleft()\n",
            "while self.queue:\n    first = self.queue.popleft()\n    check(first)\n",
            (
                "        if self.queue:\n            first = self.queue.popleft()\n",
                "        while self.queue:\n"
                "            first = self.queue.popleft()\n"
                "            check(first)\n",
            ),
        ),
        (
            "Queue.take",
            "    return first\nreturn ''\n".replace("''", '""'),
            "return first\n",
            ('            return first\n        return ""\n', "        return first\n"),
        ),
    ],
)
def test_a_change_of_a_definition(
    scope: str, old: str, new: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    path = written(tmp_path)
    assert Change(scope, old, new).apply(tmp_path) == path
    assert path.read_text() == SOURCE.replace(*expected)
    assert path.read_text() != SOURCE


def test_code_that_moved_and_was_formatted_again_is_found(tmp_path: Path) -> None:
    written(tmp_path, "def g():\n    return a(b, c)\n", "a.py")
    moved = "x = 1\n\n\ndef f():\n    return a(  # why\n        b,\n        c)\n"
    path = written(tmp_path, moved, "b.py")
    Change("f", "return a(b, c)", "return a(b)").apply(tmp_path)
    assert path.read_text() == "x = 1\n\n\ndef f():\n    return a(b)\n"


@pytest.mark.parametrize(
    ("scope", "old", "count"),
    [
        ("Queue.take", "return", 3),
        ("Queue.take", "requeue()", 0),
        ("Queue.take", "# a comment", 0),
        ("Queue.take", "", 0),
        ("take", "popleft()", 0),
        ("Queue", "self.queue.popleft()", 1),
        ("txnkafka/a.pyx", "self.queue.popleft()", 1),
        ("txnkafka/b.pyx", "self.queue.popleft()", 0),
    ],
)
def test_code_must_occur_once(scope: str, old: str, count: int, tmp_path: Path) -> None:
    written(tmp_path)
    assert len(places(tmp_path / "txnkafka", scope, old)) == count
    if count != 1:
        with pytest.raises(PatchError, match=rf"this code occurs {count} times in {scope}:"):
            Change(scope, old, "x").apply(tmp_path)


def test_comments_of_c_are_skipped(tmp_path: Path) -> None:
    path = written(tmp_path, "#define SIZE 3\nint f() { return /* three */ SIZE; } // SIZE;\n", "a.h")
    Change("txnkafka/a.h", "return SIZE;", "return 4;").apply(tmp_path)
    assert path.read_text() == "#define SIZE 3\nint f() { return 4; } // SIZE;\n"

"""Patterns for transactional ids and topics: the syntax of RE2, matched in a time that no pattern blows up.

Kafka uses RE2/J. Here the same patterns become an automaton (Thompson, 1968), whose states after each
character are computed together and remembered, so that a match takes time in proportion to the length of the
text; there is no going back. The size of a pattern and the steps of all its matches are limited.
"""

from __future__ import annotations

from typing import Final

from txnkafka.coordinator.character_class import CharacterClass
from txnkafka.coordinator.pattern_syntax import Edge, Node, Parser, PatternError, Repeat, Sequence

__all__ = ["IdPattern", "PatternError"]

MOST_STATES: Final = 1_000
MOST_PARTS: Final = 20_000  # with those that need no state of their own, such as ((){9}){9}
MOST_STEPS: Final = 2_000_000  # of all matches of one pattern
_MOST_CHARACTERS: Final = 1_000
_MOST_REMEMBERED: Final = 10_000


class IdPattern:
    """A pattern. Raises PatternError."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise PatternError(f"a pattern has at most {_MOST_CHARACTERS} characters")
        # what leads on from each state: (class, next), or where to go without a character
        self._characters: list[tuple[CharacterClass, int] | None] = [None]
        self._jumps: list[tuple[int, ...]] = [()]
        self._edges: dict[int, str] = {}
        self._steps = self._parts = 0
        self._known: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
        self._start = self._compile(Parser(text).parsed(), 0)

    @property
    def cost(self) -> int:
        """Steps so far, and what it took to compile the pattern."""
        return self._steps + self._parts

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches the whole text. Raises PatternError when that takes too long."""
        states = self._reached({self._start}, "", _kind(text[:1]))
        for i, character in enumerate(text):
            key = states, character, _kind(text[i + 1 : i + 2])
            following = self._known.get(key)
            self._count(1)
            if following is None:
                if len(self._known) >= _MOST_REMEMBERED:
                    self._known.clear()
                following = self._known[key] = self._after(*key)
            states = following
        return 0 in states

    def _after(self, states: frozenset[int], character: str, following: str) -> frozenset[int]:
        code, found = ord(character), set[int]()
        for state in states:
            edge = self._characters[state]
            if edge is not None:
                self._count(edge[0].steps)
                if edge[0].has(code):
                    found.add(edge[1])
        return self._reached(found, _kind(character), following)

    def _reached(self, states: set[int], before: str, behind: str) -> frozenset[int]:
        """What is reached from the states without a character; the kinds of those around are given."""
        found, left = set(states), list(states)
        while left:
            state = left.pop()
            self._count(1)
            if state in self._edges and not _is_at(self._edges[state], before, behind):
                continue
            for each in self._jumps[state]:
                if each not in found:
                    found.add(each)
                    left.append(each)
        return frozenset(found)

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise PatternError("matching takes too long")

    def _state(self, characters: tuple[CharacterClass, int] | None, jumps: tuple[int, ...]) -> int:
        if len(self._jumps) >= MOST_STATES:
            raise PatternError("the pattern is too large")
        self._characters.append(characters)
        self._jumps.append(jumps)
        return len(self._jumps) - 1

    def _compile(self, node: Node, then: int) -> int:
        """Return the state in which ``node`` begins, and behind which ``then`` follows."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise PatternError("the pattern is too large")
        if isinstance(node, CharacterClass):
            return self._state((node, then), ())
        if isinstance(node, Edge):
            state = self._state(None, (then,))
            self._edges[state] = node.kind
            return state
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Repeat):
            return self._compile_repeat(node, then)
        return self._state(None, tuple(self._compile(part, then) for part in node.parts))

    def _compile_repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self._state(None, (then,))
            self._jumps[loop] = self._compile(node.part, loop), then
            then = loop
        else:
            end = then
            for _ in range(node.most - node.least):
                then = self._state(None, (self._compile(node.part, then), end))
        for _ in range(node.least):
            then = self._compile(node.part, then)
        return then


def _kind(character: str) -> str:
    """What edges know of a character: whether there is one, and whether it ends a line or is in a word."""
    if character in ("", "\n"):
        return character
    return "w" if character.isascii() and (character.isalnum() or character == "_") else "-"


def _is_at(kind: str, before: str, behind: str) -> bool:
    if kind == "text_begin":
        return not before
    if kind == "text_end":
        return not behind
    if kind == "line_begin":
        return before in ("", "\n")
    if kind == "line_end":
        return behind in ("", "\n")
    return ((before == "w") != (behind == "w")) == (kind == "word")

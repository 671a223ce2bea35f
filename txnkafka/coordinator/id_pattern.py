"""Patterns for transactional ids: the syntax of RE2, matched in a time that a pattern cannot blow up.

Kafka uses RE2/J. Here the same patterns become an automaton (Thompson, 1968), whose states after each
character are computed together and remembered. What RE2 has not (back references, looking around) is refused,
and so is what ids need not (flags, Unicode classes, quotes, word boundaries). The steps of all matches of a
pattern are counted.

Source: ``com.google.re2j.Pattern``, https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["IdPattern", "PatternError"]

MOST_STATES: Final = 1_000
MOST_STEPS: Final = 2_000_000  # of all matches of one pattern
MOST_REPEATS: Final = 1_000  # as in RE2
_MOST_CHARACTERS: Final = 1_000
_DEEPEST: Final = 50  # groups in groups
_MOST_REMEMBERED: Final = 10_000
_LAST: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGIT: Final[Ranges] = ((48, 57),)
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_CLASSES: Final = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_NAMED: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "digit": _DIGIT,
    "lower": ((97, 122),),
    "upper": ((65, 90),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ANY: Final[Ranges] = ((0, 9), (11, _LAST))


class PatternError(ValueError):
    """A pattern that is none, or whose matches take too long."""


class Characters(NamedTuple):
    """One character of these ranges."""

    ranges: Ranges


class Edge(NamedTuple):
    """The beginning or the end of the text."""

    is_end: bool


class Sequence(NamedTuple):
    """One part after the other."""

    parts: tuple[Node, ...]


class Choice(NamedTuple):
    """One of them."""

    parts: tuple[Node, ...]


class Repeat(NamedTuple):
    """A part, ``least`` to ``most`` times; without an end where ``most`` is None."""

    part: Node
    least: int
    most: int | None


Node = Characters | Edge | Sequence | Choice | Repeat


class IdPattern:
    """A pattern. Raises PatternError."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise PatternError(f"a pattern has at most {_MOST_CHARACTERS} characters")
        # what leads on from each state: (ranges, next), or where to go without a character
        self._characters: list[tuple[Ranges, int] | None] = [None]
        self._jumps: list[tuple[int, ...]] = [()]
        self._edges: dict[int, bool] = {}
        self._steps = 0
        self._known: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}
        self._start = self._compile(Parser(text).parsed(), 0)

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches the whole text. Raises PatternError when that takes too long."""
        states = self._reached({self._start}, is_begin=True, is_end=not text)
        last = len(text) - 1
        for i, character in enumerate(text):
            key = states, character, i == last
            following = self._known.get(key)
            self._count(1)
            if following is None:
                if len(self._known) >= _MOST_REMEMBERED:
                    self._known.clear()
                following = self._known[key] = self._after(*key)
            states = following
        return 0 in states

    def _after(self, states: frozenset[int], character: str, is_end: bool) -> frozenset[int]:
        code, found = ord(character), set[int]()
        for state in states:
            edge = self._characters[state]
            if edge is not None:
                self._count(len(edge[0]))
                if any(low <= code <= high for low, high in edge[0]):
                    found.add(edge[1])
        return self._reached(found, is_begin=False, is_end=is_end)

    def _reached(self, states: set[int], *, is_begin: bool, is_end: bool) -> frozenset[int]:
        found, left = set(states), list(states)
        while left:
            state = left.pop()
            self._count(1)
            if state in self._edges and not (is_end if self._edges[state] else is_begin):
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

    def _state(self, characters: tuple[Ranges, int] | None, jumps: tuple[int, ...]) -> int:
        if len(self._jumps) >= MOST_STATES:
            raise PatternError("the pattern is too large")
        self._characters.append(characters)
        self._jumps.append(jumps)
        return len(self._jumps) - 1

    def _compile(self, node: Node, then: int) -> int:
        """Return the state in which ``node`` begins, and behind which ``then`` follows."""
        if isinstance(node, Characters):
            return self._state((node.ranges, then), ())
        if isinstance(node, Edge):
            state = self._state(None, (then,))
            self._edges[state] = node.is_end
            return state
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Choice):
            return self._state(None, tuple(self._compile(part, then) for part in node.parts))
        return self._compile_repeat(node, then)

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


class Parser:
    """Reads a pattern once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parsed(self) -> Node:
        """The whole pattern. Raises PatternError."""
        node = self._choice()
        if self._at < len(self._text):
            raise PatternError(f"unexpected {self._text[self._at]!r} at {self._at}")
        return node

    @property
    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _takes(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._next not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _repeated(self, node: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return node
        self._takes("?")  # what is matched is the same
        if self._next in ("*", "+", "?") or (self._next == "{" and self._bounds() is not None):
            raise PatternError(f"invalid nested repetition at {self._at}")
        return Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._next in simple:
            return simple[self._take()]
        end = self._text.find("}", self._at)
        if self._next != "{" or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not _is_number(least) or not (most == "" or _is_number(most)):
            return None  # a brace is a character then, as in RE2
        self._at = end + 1
        low, high = int(least), int(most) if most else None if comma else int(least)
        if max(low, high or 0) > MOST_REPEATS or (high is not None and high < low):
            raise PatternError(f"invalid repeat count before {self._at}")
        return low, high

    def _atom(self) -> Node:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return Characters(self._set())
        if character == ".":
            return Characters(_ANY)
        if character in "^$":
            return Edge(character == "$")
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise PatternError(f"nothing to repeat at {self._at - 1}")
        return _one(ord(character))

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError("groups are nested too deeply")
        if self._takes("?") and not self._takes(":"):
            if not (self._takes("P<") or self._takes("<")) or self._next in ("=", "!", ">"):
                raise PatternError(f"this kind of group is not supported at {self._at}")
            while (character := self._take()) != ">":
                if not (character.isalnum() or character == "_"):
                    raise PatternError(f"invalid group name at {self._at}")
        node = self._choice()
        if not self._takes(")"):
            raise PatternError("a group is not closed")
        self._depth -= 1
        return node

    def _escape(self) -> Node:
        if self._takes("A"):
            return Edge(is_end=False)
        if self._takes("z"):
            return Edge(is_end=True)
        return Characters(self._escaped())

    def _escaped(self) -> Ranges:
        """What an escape stands for, here and in a set."""
        character = self._take()
        lower = character.lower()
        if lower in _CLASSES:
            return _CLASSES[lower] if character == lower else _inverted(_CLASSES[lower])
        if character in _ESCAPES:
            return _one(_ESCAPES[character]).ranges
        if character == "x":
            return _one(self._hex()).ranges
        if character.isalnum():
            raise PatternError(f"the escape \\{character} is not supported")
        return _one(ord(character)).ranges

    def _hex(self) -> int:
        if self._takes("{"):
            end = self._text.find("}", self._at)
            digits, self._at = self._text[self._at : end], end + 1
        else:
            digits, self._at = self._text[self._at : self._at + 2], self._at + 2
            digits = digits if len(digits) == 2 else ""
        if not digits or digits.strip("0123456789abcdefABCDEF") or int(digits, 16) > _LAST:
            raise PatternError("invalid escape \\x")
        return int(digits, 16)

    def _set(self) -> Ranges:
        is_inverted = self._takes("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._takes("]"):
            low = self._member()
            if self._next == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][1] < low[0][0]:
                    raise PatternError(f"invalid character range before {self._at}")
                low = ((low[0][0], high[0][1]),)
            ranges += low
            is_first = False
        return _inverted(tuple(ranges)) if is_inverted else tuple(ranges)

    def _member(self) -> Ranges:
        if self._takes("[:"):
            end = self._text.find(":]", self._at)
            name = self._text[self._at : max(end, self._at)]
            named = _NAMED.get(name.removeprefix("^"))
            if named is None:
                raise PatternError(f"there is no character class [:{name}:]")
            self._at = end + 2
            return _inverted(named) if name.startswith("^") else named
        character = self._take()
        return self._escaped() if character == "\\" else _one(ord(character)).ranges


def _one(code: int) -> Characters:
    return Characters(((code, code),))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _inverted(ranges: Ranges) -> Ranges:
    found, low = list[tuple[int, int]](), 0
    for begin, end in sorted(ranges):
        if begin > low:
            found.append((low, begin - 1))
        low = max(low, end + 1)
    return (*found, (low, _LAST)) if low <= _LAST else tuple(found)

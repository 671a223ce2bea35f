"""The syntax of RE2: a pattern as a tree. Source: ``com.google.re2j.Parser``,
https://github.com/google/re2/wiki/Syntax.

What RE2 has not (back references, looking around) is refused, and so are Unicode scripts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txnkafka.coordinator.character_class import CATEGORIES, LAST, CharacterClass, ClassItem, Ranges

__all__ = [
    "Choice", "Edge", "Node", "Parser", "PatternError", "Repeat", "Sequence"
]  # fmt: skip

MOST_REPEATS: Final = 1_000  # as in RE2
_DEEPEST: Final = 50  # groups in groups

_DIGIT: Final[Ranges] = ((48, 57),)
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_CLASSES: Final = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_NAMED: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_OCTAL: Final = "01234567"
_ANY_BUT_NEWLINE: Final[Ranges] = ((0, 9), (11, LAST))
_ANY: Final[Ranges] = ((0, LAST),)


class PatternError(ValueError):
    """A pattern that is none, or whose matches take too long."""


class Edge(NamedTuple):
    """A place between two characters: ``kind`` is text_begin, text_end, line_begin, line_end, word or
    not_word."""

    kind: str


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


Node = CharacterClass | Edge | Sequence | Choice | Repeat


class Flags(NamedTuple):
    """What ``(?ims)`` switches on: case does not matter, ``^`` and ``$`` are those of lines, ``.`` is any
    character. ``U`` changes nothing about what matches as a whole."""

    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


class Parser:
    """Reads a pattern once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._flags = Flags()
        self._names: set[str] = set()

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
        is_repeat = False
        while self._next not in ("", "|", ")"):
            at, bounds = self._at, self._bounds()
            if bounds is None:
                is_repeat = self._next == "{"  # RE2/J refuses to repeat a brace that is a character
                parts += self._atoms()
            elif is_repeat or not parts:
                raise PatternError(f"nothing to repeat at {at}")
            else:
                is_repeat = True
                self._takes("?")  # what is matched is the same
                parts[-1] = Repeat(parts[-1], *bounds)
        return Sequence(tuple(parts))

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
        low, high = _number(least), _number(most) if most else None if comma else _number(least)
        if max(low, high or 0) > MOST_REPEATS or (high is not None and high < low):
            raise PatternError(f"invalid repeat count before {self._at}")
        return low, high

    def _atoms(self) -> list[Node]:
        """The next part: none for flags, several for a quote."""
        if self._takes("\\Q"):
            return self._quoted()
        if self._takes("("):
            return self._group()
        return [self._atom()]

    def _atom(self) -> Node:
        character = self._take()
        if character == "[":
            return self._set()
        if character == ".":
            return self._class(ClassItem(_ANY if self._flags.s else _ANY_BUT_NEWLINE))
        if character == "^":
            return Edge("line_begin" if self._flags.m else "text_begin")
        if character == "$":
            return Edge("line_end" if self._flags.m else "text_end")
        if character == "\\":
            return self._escape()
        return self._class(_one(ord(character)))

    def _class(self, *items: ClassItem, is_inverted: bool = False) -> CharacterClass:
        return CharacterClass(items, is_inverted, self._flags.i)

    def _quoted(self) -> list[Node]:
        end = self._text.find("\\E", self._at)
        text = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        return [self._class(_one(ord(character))) for character in text]

    def _group(self) -> list[Node]:
        """What follows a parenthesis; nothing if that are flags for the rest of the group around it."""
        before = self._flags
        if self._takes("?") and not self._begins_group():
            return []
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError("groups are nested too deeply")
        node = self._choice()
        if not self._takes(")"):
            raise PatternError("a group is not closed")
        self._depth -= 1
        self._flags = before
        return [node]

    def _begins_group(self) -> bool:
        """Behind ``(?``: take a name, or flags; whether the group goes on."""
        if self._takes("P<") or self._takes("<"):
            end = self._text.find(">", self._at)
            name = self._text[self._at : max(end, self._at)]
            if not name.replace("_", "a").isalnum() or not name.isascii() or name in self._names:
                raise PatternError(f"invalid group name at {self._at}")
            self._names.add(name)
            self._at = end + 1
            return True
        begin, is_on, changes = self._at, True, dict[str, bool]()
        while (character := self._take()) not in ":)":
            if character == "-" and is_on:
                is_on = False
            elif character in Flags._fields:
                changes[character] = is_on
            else:
                raise PatternError(f"this kind of group is not supported at {begin}")
        if not is_on and self._text[self._at - 2] == "-":
            raise PatternError(f"flags are missing at {begin}")
        self._flags = self._flags._replace(**changes)
        return character == ":"

    def _escape(self) -> Node:
        for text, kind in (("A", "text_begin"), ("z", "text_end"), ("b", "word"), ("B", "not_word")):
            if self._takes(text):
                return Edge(kind)
        return self._class(self._escaped_class() or _one(self._escaped_character()))

    def _escaped_class(self) -> ClassItem | None:
        """What ``\\d``, ``\\pL`` and their like stand for."""
        letter = self._next
        lower = letter.lower()
        if lower in _CLASSES:
            self._at += 1
            return ClassItem(_CLASSES[lower], is_negated=letter != lower)
        if letter not in ("p", "P"):
            return None
        self._at += 1
        name = self._take()
        if name == "{":
            end = self._text.find("}", self._at)
            name, self._at = self._text[self._at : max(end, self._at)], end + 1
        is_negated = (letter == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name not in CATEGORIES:
            raise PatternError(f"the Unicode class {name!r} is not supported")
        return ClassItem((), name, is_negated)

    def _escaped_character(self) -> int:
        character = self._take()
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            return self._hex()
        if character == "0" or (character in _OCTAL and self._next in tuple(_OCTAL)):
            return self._octal(character)
        if character.isascii() and character.isalnum():
            raise PatternError(f"the escape \\{character} is not supported")
        return ord(character)

    def _octal(self, digits: str) -> int:
        while len(digits) < 3 and self._next in tuple(_OCTAL):
            digits += self._take()
        return int(digits, 8)

    def _hex(self) -> int:
        if self._takes("{"):
            end = self._text.find("}", self._at)
            digits, self._at = self._text[self._at : end], end + 1
        else:
            digits, self._at = self._text[self._at : self._at + 2], self._at + 2
            digits = digits if len(digits) == 2 else ""
        if not digits or digits.strip("0123456789abcdefABCDEF") or int(digits, 16) > LAST:
            raise PatternError("invalid escape \\x")
        return int(digits, 16)

    def _set(self) -> CharacterClass:
        is_inverted = self._takes("^")
        items: list[ClassItem] = []
        while not items or not self._takes("]"):
            items.append(self._named_class() or self._member())
        return self._class(*items, is_inverted=is_inverted)

    def _named_class(self) -> ClassItem | None:
        end = self._text.find(":]", self._at)
        if end < 0 or not self._takes("[:"):
            return None
        name = self._text[self._at : max(end, self._at)]
        named = _NAMED.get(name.removeprefix("^"))
        if named is None:
            raise PatternError(f"there is no character class [:{name}:]")
        self._at = end + 2
        return ClassItem(named, is_negated=name.startswith("^"))

    def _member(self) -> ClassItem:
        """A class, a character, or a range of characters."""
        if self._takes("\\"):
            found = self._escaped_class()
            if found is not None:
                return found
            low = self._escaped_character()
        else:
            low = ord(self._take())
        high = low
        if self._next == "-" and self._text[self._at + 1 : self._at + 2] != "]":
            self._at += 1
            high = self._escaped_character() if self._takes("\\") else ord(self._take())
            if high < low:
                raise PatternError(f"invalid character range before {self._at}")
        return ClassItem(((low, high),))


def _one(code: int) -> ClassItem:
    return ClassItem(((code, code),))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


def _number(text: str) -> int:
    return int(text) if len(text) < 9 else MOST_REPEATS + 1

"""Parses predicates in the syntax of SQL:

    offset >= 100 and length(value) > 1024
    topic in ('orders', 'refunds') and not (key is null or key like 'test-%')
    timestamp between '2026-01-31' and '2026-02-01T12:00:00Z' or header('trace') = x'00ff'

Columns are topic, partition, offset, timestamp, timestampType, key and value; ``length(key)``,
``length(value)`` and ``header('name')`` (the last header of that name) are allowed as well. A timestamp is
milliseconds or ISO 8601 text, UTC unless it says otherwise; text stands for its UTF-8 bytes where bytes are
compared.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from txnkafka.record.predicate import (
    ANY,
    NOTHING,
    And,
    Comparison,
    Literal,
    Operand,
    Or,
    Predicate,
    negated,
)
from txnkafka.shown import nearest

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value")
MAX_LENGTH: Final = 64 << 10  # of the text
MAX_DEPTH: Final = 64  # of parentheses and NOTs
INT64: Final = 1 << 63
NO_UTF8: Final = "text is UTF-8 here, and bytes are written as in x'00ff'"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<bytes>[xX]'[^']*') | (?P<text>'(?:[^']|'')*') | (?P<number>-?\d+(?![\w.])) |
        (?P<word>[A-Za-z_]\w*) | (?P<sign><>|!=|<=|>=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}


def parse_predicate(text: str) -> Predicate:
    """Return the predicate in ``text``. Raises ValueError with the position of a syntax error."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a predicate may have {MAX_LENGTH} characters, not {len(text)}")
    return _Parser(text).whole()


class _Parser:
    """A recursive descent parser; ``at`` is the number of the next token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> Predicate:
        found = self.alternatives()
        if self.tokens[self.at][0] != "end":
            raise self.wrong("and, or, or the end is expected")
        return found

    def wrong(self, what: str) -> ValueError:
        _, token, position = self.tokens[self.at]
        return ValueError(f"{what}, not {token or 'the end'!r}, at position {position + 1} of {self.text!r}")

    def alternatives(self) -> Predicate:
        choices = [self.conjunction()]
        while self.word("or"):
            choices.append(self.conjunction())
        return choices[0] if len(choices) == 1 else Or(tuple(choices))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self.word("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negation(self) -> Predicate:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong(f"at most {MAX_DEPTH} parentheses and nots may be nested")
        if self.word("not"):
            found = negated(self.negation())
        elif self.sign("("):
            found = self.alternatives()
            self.expect(")")
        elif self.word("true"):
            found = ANY
        elif self.word("false"):
            found = NOTHING
        else:
            found = self.test()
        self.depth -= 1
        return found

    def test(self) -> Predicate:
        operand = self.operand()
        kind, token, _ = self.tokens[self.at]
        if kind == "sign" and token in _COMPARISONS:
            self.at += 1
            if self.tokens[self.at][0] == "sign" and self.tokens[self.at][1] in _COMPARISONS:
                raise self.wrong(f"{token} must be followed by a value")
            return Comparison(operand, _COMPARISONS[token], (self.literal(operand),))
        if self.word("is"):
            negative = self.word("not")
            if not self.word("null"):
                raise self.wrong("null is expected")
            return Comparison(operand, "is not null" if negative else "is null")
        negative = self.word("not")
        found = self.worded(operand)
        return negated(found) if negative else found

    def worded(self, operand: Operand) -> Predicate:
        """Parse IN, BETWEEN and LIKE, which may follow NOT."""
        if self.word("in"):
            self.expect("(")
            values = [self.literal(operand)]
            while self.sign(","):
                values.append(self.literal(operand))
            self.expect(")")
            return Comparison(operand, "in", tuple(values))
        if self.word("between"):
            low = self.literal(operand)
            if not self.word("and"):
                raise self.wrong("and is expected")
            return And(
                (Comparison(operand, ">=", (low,)), Comparison(operand, "<=", (self.literal(operand),)))
            )
        if operand.kind is not int and self.word("like"):
            return Comparison(operand, "like", (self.literal(operand),))
        like = "" if operand.kind is int else "like, "
        raise self.wrong(f"a comparison of {operand} is expected (=, <, in, between, {like}is null, …)")

    def operand(self) -> Operand:
        kind, token, _ = self.tokens[self.at]
        if kind == "word":
            self.at += 1
            name = next((column for column in COLUMNS if column.lower() == token.lower()), None)
            if name is not None:
                return Operand(name)
            if token.lower() == "length":
                return self.length()
            if token.lower() == "header":
                return self.header()
            self.at -= 1
        error = self.wrong(f"one of {', '.join(COLUMNS)}, length(…), header(…) is expected")
        hint = nearest(token, COLUMNS)
        raise ValueError(f"{error}: {hint}") if hint.endswith("?") else error

    def length(self) -> Operand:
        self.expect("(")
        column = next((column for column in ("key", "value") if self.word(column)), None)
        if column is None:
            raise self.wrong("length takes key or value")
        self.expect(")")
        return Operand(column, length=True)

    def header(self) -> Operand:
        self.expect("(")
        kind, token, _ = self.tokens[self.at]
        if kind != "text":
            raise self.wrong("header takes a name in quotes, header('trace')")
        name = _unquoted(token)
        if not _is_utf8(name):
            raise self.wrong(NO_UTF8)
        self.at += 1
        self.expect(")")
        return Operand("headers", header=name)

    def literal(self, operand: Operand) -> Literal:
        kind, token, _ = self.tokens[self.at]
        try:
            value = _literal(kind, token, operand)
        except ValueError as error:
            raise self.wrong(str(error)) from None
        self.at += 1
        return value

    def word(self, word: str) -> bool:
        kind, token, _ = self.tokens[self.at]
        found = kind == "word" and token.lower() == word
        self.at += found
        return found

    def sign(self, sign: str) -> bool:
        found = self.tokens[self.at][:2] == ("sign", sign)
        self.at += found
        return found

    def expect(self, sign: str) -> None:
        if not self.sign(sign):
            raise self.wrong(f"{sign} is expected")


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """Return (kind, token, position) of each token; the last has the kind ``end``."""
    found, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _not_understood(text, at)
        found.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*found, ("end", "", end)]


def _not_understood(text: str, at: int) -> ValueError:
    rest = text[at:].lstrip()
    if rest.startswith("'"):
        return ValueError(f"the quote at position {len(text) - len(rest) + 1} of {text!r} is not closed")
    return ValueError(f"{rest.rstrip()[:20]!r} at position {at + 1} of {text!r} is not understood")


def _unquoted(token: str) -> str:
    return token[1:-1].replace("''", "'")


def _is_utf8(text: str) -> bool:
    """Return False for the surrogates by which Python represents other bytes of a command line."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _literal(kind: str, token: str, operand: Operand) -> Literal:
    if operand.kind is int:
        if kind == "text" and operand.column == "timestamp":
            return _milliseconds(_unquoted(token))
        if kind == "number" and -INT64 <= int(token) < INT64:
            return int(token)
        also = " or a time such as '2026-01-31T12:00:00Z'" if operand.column == "timestamp" else ""
        raise ValueError(f"{operand} must be compared with a whole number of 64 bits{also}")
    if kind == "text":
        text = _unquoted(token)
        if operand.kind is str:
            return text
        if not _is_utf8(text):
            raise ValueError(NO_UTF8)
        return text.encode()
    if kind == "bytes" and operand.kind is bytes:
        if re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", token[2:-1]) is None:
            raise ValueError("bytes must be pairs of hexadecimal digits such as x'00ff'")
        return bytes.fromhex(token[2:-1])
    bytes_too = " or bytes such as x'00ff'" if operand.kind is bytes else ""
    raise ValueError(f"{operand} must be compared with text in quotes{bytes_too}")


def _milliseconds(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a time such as '2026-01-31T12:00:00Z' is expected") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    milliseconds, rest = divmod(time - EPOCH, timedelta(milliseconds=1))
    if rest:
        raise ValueError("a time must be in whole milliseconds")
    return milliseconds

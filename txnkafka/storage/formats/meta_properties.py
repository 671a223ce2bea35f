"""Parses and formats ``meta.properties``, which names the cluster and the broker of a log directory.

A Java properties file. Version 1 (KRaft) has ``cluster.id`` and ``node.id``, and since 3.7 ``directory.id``;
version 0 (ZooKeeper, also a file without ``version``) has ``broker.id`` and perhaps ``cluster.id``. A file
without the id of a node is damaged, such as one that is empty: Kafka does not start with it.

Source: ``org.apache.kafka.metadata.properties.MetaProperties``, ``KafkaRaftServer.initializeLogDirs``,
``java.util.Properties``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.topic_id import parse_topic_id

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MetaProperties", "format_meta_properties", "parse_meta_properties"]

_NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The key, up to the first separator that is not escaped; the separator; the value, up to a \\u that is bad.
# One after the other: as one expression they would be tried in every division of the line when it is bad.
_KEY = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\[^u]|[^\\=: \t\f])*+")
_SEPARATOR = re.compile(r"[ \t\f]*+[=:]?+[ \t\f]*+")
_VALUE = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\[^u]|[^\\])*+")


class MetaProperties(NamedTuple):
    """The owner of a log directory; fields that the version does not have are None."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


class _Property(NamedTuple):
    line_number: int
    value: str


def parse_meta_properties(data: bytes) -> MetaProperties:
    """Parse version, cluster, node and directory of ``meta.properties``. Raises CorruptFileError."""
    properties = {key: _Property(line_number, value) for line_number, key, value in _properties(data)}
    version = _number(properties, "version")
    cluster_id = _text(properties, "cluster.id")
    if version in (None, 0):
        if version is None and "broker.id" not in properties:
            raise CorruptFileError("it has neither 'version' nor 'broker.id'")
        _require(properties, 0, "broker.id")
        return MetaProperties(0, cluster_id, _number(properties, "broker.id"), None)
    if version != 1:
        where = _where(properties, "version")
        raise CorruptFileError(f"{where}: version {version} is not known, only 0 and 1 are")
    _require(properties, 1, "cluster.id", "node.id")
    return MetaProperties(1, cluster_id, _number(properties, "node.id"), _directory_id(properties))


def _require(properties: dict[str, _Property], version: int, *names: str) -> None:
    for name in names:
        if name not in properties:
            raise CorruptFileError(f"{name!r} is missing, which version {version} requires")


def _properties(data: bytes) -> Iterator[tuple[int, str, str]]:
    lines = enumerate(data.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
    for line_number, raw in lines:
        parts = [raw.lstrip(" \t\f")]
        if not parts[0] or parts[0][0] in "#!":
            continue
        while _continues(parts[-1]):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, (0, ""))[1].lstrip(" \t\f"))
        found = _divided("".join(parts))
        if found is None:
            raise CorruptFileError(f"line {line_number}: cannot read {raw[:80]!r}")
        yield line_number, _unescape(found[0]), _unescape(found[1])


def _divided(text: str) -> tuple[str, str] | None:
    """Return key and value, still escaped; None for a line with a bad escape."""
    key_end = _end(_KEY, text, 0)
    value_begin = _end(_SEPARATOR, text, key_end)
    if _end(_VALUE, text, value_begin) < len(text):
        return None
    return text[:key_end], text[value_begin:]


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    match = pattern.match(text, begin)
    assert match is not None  # each matches nothing, too
    return match.end()


def _continues(text: str) -> bool:
    """Whether an odd number of backslashes at the end escapes the line's end."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text)


def _text(properties: dict[str, _Property], name: str) -> str | None:
    return properties[name].value if name in properties else None


def _number(properties: dict[str, _Property], name: str) -> int | None:
    if name not in properties:
        return None
    value = properties[name].value
    if not _NODE_ID.fullmatch(value) or not -(2**31) <= int(value) < 2**31:
        raise CorruptFileError(f"{_where(properties, name)}: {name!r} must be a number, not {value[:40]!r}")
    return int(value)


def _directory_id(properties: dict[str, _Property]) -> str | None:
    if "directory.id" not in properties:
        return None
    try:
        return parse_topic_id(properties["directory.id"].value)
    except ValueError as error:
        raise CorruptFileError(f"{_where(properties, 'directory.id')}: {error}") from None


def _where(properties: dict[str, _Property], name: str) -> str:
    return f"line {properties[name].line_number}"


def format_meta_properties(properties: MetaProperties) -> bytes:
    """Format the content of ``meta.properties``, version 1."""
    lines = [
        "version=1",
        f"cluster.id={properties.cluster_id}",
        f"directory.id={properties.directory_id}",
        f"node.id={properties.node_id}",
    ]
    return "".join(f"{line}\n" for line in lines).encode("ascii")

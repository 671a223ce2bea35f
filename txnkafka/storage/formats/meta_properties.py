"""Parses and formats ``meta.properties``, which names the cluster and the broker of a log directory.

A Java properties file. Version 1 (KRaft) has ``cluster.id`` and ``node.id``, and since 3.7 ``directory.id``;
version 0 (ZooKeeper, also a file without ``version``) has ``broker.id`` and perhaps ``cluster.id``. A file
without a node id, such as an empty one, is damaged: Kafka does not start with it.

Source: ``org.apache.kafka.metadata.properties.MetaProperties``, ``KafkaRaftServer.initializeLogDirs``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError
from txnkafka.storage.formats.java_properties import parse_properties
from txnkafka.storage.formats.topic_id import parse_topic_id

if TYPE_CHECKING:
    from txnkafka.storage.formats.java_properties import Property

_NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")


class MetaProperties(NamedTuple):
    """The owner of a log directory; fields that the version lacks are None."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def parse_meta_properties(data: bytes) -> MetaProperties:
    """Parse version, cluster, node and directory of ``meta.properties``. Raises CorruptFileError."""
    properties = {each.key: each for each in parse_properties(data)}
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


def _require(properties: dict[str, Property], version: int, *names: str) -> None:
    for name in names:
        if name not in properties:
            raise CorruptFileError(f"{name!r} is missing, which version {version} requires")


def _text(properties: dict[str, Property], name: str) -> str | None:
    return properties[name].value if name in properties else None


def _number(properties: dict[str, Property], name: str) -> int | None:
    if name not in properties:
        return None
    value = properties[name].value
    if not _NODE_ID.fullmatch(value) or not -(2**31) <= int(value) < 2**31:
        raise CorruptFileError(f"{_where(properties, name)}: {name!r} must be a number, not {value[:40]!r}")
    return int(value)


def _directory_id(properties: dict[str, Property]) -> str | None:
    if "directory.id" not in properties:
        return None
    try:
        return parse_topic_id(properties["directory.id"].value)
    except ValueError as error:
        raise CorruptFileError(f"{_where(properties, 'directory.id')}: {error}") from None


def _where(properties: dict[str, Property], name: str) -> str:
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

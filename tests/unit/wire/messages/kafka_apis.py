"""What Apache Kafka's own definitions say of its messages (kafka_apis.json), by version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from txnkafka.wire.fields import ArrayOf, MessageField, fields_of
from txnkafka.wire.messages import APIS, Api
from txnkafka.wire.schema import Scalar

__all__ = ["KAFKA_APIS", "MESSAGES", "Fact", "Message", "kafka_facts", "our_facts", "snake"]

KAFKA_APIS: dict[int, dict[str, Any]] = {
    api["key"]: api
    for api in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["apis"]
}


class Message(NamedTuple):
    """One message in one version."""

    api: Api
    kind: str
    version: int

    @property
    def cls(self) -> type[Any]:
        return self.api.request if self.kind == "Request" else self.api.response

    @property
    def name(self) -> str:
        return self.api.name + self.kind

    @property
    def flexible(self) -> bool:
        return self.api.is_flexible(self.version)

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


MESSAGES = [
    Message(api, kind, version)
    for api in APIS.values()
    for kind in ("Request", "Response")
    for version in range(api.min_version, api.max_version + 1)
]


class Fact(NamedTuple):
    """A field in one version. What a version does not have has no type and is only ``ignorable`` or not."""

    path: str
    type: str
    nullable: bool = False
    tag: int | None = None
    default: object = None
    ignorable: bool = False


def snake(name: str) -> str:
    """``TransactionalId`` to ``transactional_id``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def kafka_facts(message: Message) -> list[Fact]:
    """What Kafka's definitions say of each field, depth first."""
    fields = KAFKA_APIS[message.api.key][message.kind.lower()]
    return list(_kafka(fields, message.version, ""))


def _kafka(fields: list[dict[str, Any]], version: int, inside: str) -> Iterator[Fact]:
    for field in fields:
        path, ignorable = inside + snake(field["n"]), field.get("ign", False)
        if not _in(field["v"], version):
            yield Fact(path, "", ignorable=ignorable)
            continue
        nullable = field.get("null", False)
        nullable = nullable if isinstance(nullable, bool) else _in(nullable, version)
        yield Fact(path, field["t"], nullable, field.get("tag"), _default(field), ignorable)
        yield from _kafka(field.get("f", []), version, path + ".")


def _default(field: dict[str, Any]) -> object:
    kind, default = field["t"], field.get("d", "zero")
    if default == "zero" and kind == "records":
        return None
    if default == "zero" and (kind.startswith("[") or kind == "struct"):
        return "zero"
    if default == "zero":
        return {"bool": False, "string": "", "bytes": b"", "uuid": "A" * 22, "float64": 0.0}.get(kind, 0)
    if default == "null":
        return None
    if kind == "bool":
        return default in (True, "true")
    return default if kind == "string" else int(str(default), 0)


def _in(versions: str, version: int) -> bool:
    lowest, highest = map(int, versions.split("-"))
    return lowest <= version <= highest


def our_facts(message: Message) -> list[Fact]:
    """The same of our class."""
    return list(_ours(message.cls, message.version, ""))


def _ours(cls: type, version: int, inside: str) -> Iterator[Fact]:
    for field in fields_of(cls):
        path, schema = inside + field.name, field.schema
        if not field.is_in(version):
            yield Fact(path, "", ignorable=schema.ignorable)
            continue
        default = _zero_or(field)
        nullable = field.is_nullable(version)
        yield Fact(path, type_name(field), nullable, schema.tag, default, schema.ignorable)
        element = schema.type.element if isinstance(schema.type, ArrayOf) else schema.type
        if not isinstance(element, Scalar):
            yield from _ours(element, version, path + ".")


def _zero_or(field: MessageField) -> object:
    kind, default = field.schema.type, field.default
    zero = () if isinstance(kind, ArrayOf) else None if isinstance(kind, Scalar) else kind()
    return "zero" if zero is not None and default == zero else default


def type_name(field: MessageField) -> str:
    """The type in Kafka's words: ``int32``, ``[string]``, ``[struct]``."""
    kind = field.schema.type
    if isinstance(kind, ArrayOf):
        return f"[{kind.element.name if isinstance(kind.element, Scalar) else 'struct'}]"
    return kind.name if isinstance(kind, Scalar) else "struct"

"""Apache Kafka's message definitions (``common/message/*.json`` in the jar of its clients), in the form of
``tests/unit/wire/messages/kafka_apis.json``: fields by name instead of in their order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

__all__ = ["ZERO", "Versions", "by_name", "definitions"]

COMMENT = re.compile(r'^\s*//.*$|(?<=[\]},"\d])\s+//.*$', re.MULTILINE)
ZERO = ("0", "false", "")  # defaults that are the same as none


class Versions(NamedTuple):
    """The first and the last version, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def part(self, text: str | None) -> Versions | None:
        """Return the versions that ``3``, ``3+`` or ``3-5`` selects; None if it selects none."""
        if text in (None, "none"):
            return None
        first, is_range, last = text.partition("-")
        end = self.last if text.endswith("+") else int(last if is_range else first)
        found = Versions(max(int(first.rstrip("+")), self.first), min(end, self.last))
        return found if found.first <= found.last else None


def definitions(clients: Path) -> dict[str, dict[str, Any]]:
    """The definitions in the jar, by the name of the message."""
    with ZipFile(clients) as jar:
        names = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+\.json", name)]
        found = [json.loads(COMMENT.sub("", jar.read(name).decode())) for name in names]
    return {each["name"]: each for each in found}


def by_name(definition: Mapping[str, Any], versions: Versions) -> dict[tuple[str, str], dict[str, Any]]:
    """The fields of a definition in these versions, by name and versions."""
    structs = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    return _fields(definition["fields"], structs, versions)


def _fields(
    fields: Iterable[Mapping[str, Any]], structs: Mapping[str, Any], versions: Versions
) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for field in fields:
        part = versions.part(field["versions"])
        if part is not None:
            found[field["name"], str(part)] = _field(field, structs, part)
    return found


def _field(field: Mapping[str, Any], structs: Mapping[str, Any], versions: Versions) -> dict[str, Any]:
    kind = field["type"].removeprefix("[]")
    inner = field.get("fields") or structs.get(kind)
    kind = kind if inner is None else "struct"
    found = {"t": f"[{kind}]" if field["type"].startswith("[]") else kind}
    nullable = versions.part(field.get("nullableVersions"))
    found |= {} if nullable is None else {"null": nullable == versions or str(nullable)}
    found |= {"tag": field["tag"]} if "tag" in field else {}
    default = field.get("default", "")
    default = default if isinstance(default, str) else json.dumps(default)
    found |= {} if default in ZERO else {"d": default}
    found |= {"ign": True} if field.get("ignorable") else {}
    return found if inner is None else {**found, "f": _fields(inner, structs, versions)}

"""Joins schemas of several parts, and bounds the cost of decoding untrusted bytes with a schema.

With a recursive schema, a datum may have as many levels as bytes. An array of empty items may have any number
of items in a few bytes, and a record of two records of two records … more fields than memory can hold. In all
other data, each level, item or field takes at least a byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Names = Mapping[str, Any]
NAMED = ("record", "error", "enum", "fixed")
MAX_FREE_VALUES = 64  # per record


def whole(schema: Any, names: Names, defined: set[str]) -> Any:
    """Return a parsed schema that defines each named type at its first use. ``defined`` are the names defined
    before."""
    if isinstance(schema, list):
        return [whole(each, names, defined) for each in schema]
    if isinstance(schema, str):
        return whole(names[schema], names, defined) if schema in names and schema not in defined else schema
    if "name" in schema and schema["type"] in NAMED:
        defined.add(schema["name"])
    found = {key: value for key, value in schema.items() if not key.startswith("__")}
    for part in ("type", "items", "values"):
        if isinstance(found.get(part), dict | list) or (part in found and found[part] in names):
            found[part] = whole(found[part], names, defined)
    if "fields" in found:
        found["fields"] = [
            {**field, "type": whole(field["type"], names, defined)} for field in found["fields"]
        ]
    return found


def is_recursive(schema: Any, names: Names) -> bool:
    """Return True if a type contains itself."""
    return _contains_itself(schema, names, (), set())


def _contains_itself(schema: Any, names: Names, within: tuple[str, ...], done: set[str]) -> bool:
    name = _name(schema, names)
    if name in within:
        return True
    if name in done:
        return False
    inner = (*within, name) if name else within
    found = any(_contains_itself(each, names, inner, done) for each in _parts(_resolved(schema, names)))
    done.update((name,) if name else ())
    return found


def free_values(schema: Any, names: Names) -> str:
    """Return the part of a schema whose number of values is not limited by the bytes; empty if none."""
    seen: set[str] = set()
    known: dict[str, int] = {}

    def search(schema: Any) -> str:
        name = _name(schema, names)
        if name in seen:
            return ""
        seen.update((name,) if name else ())
        found = _resolved(schema, names)
        if isinstance(found, dict) and found["type"] == "array" and _free(found["items"], names, (), known):
            return "an array of items without content"
        parts = list(_parts(found))
        if isinstance(found, dict) and sum(_free(each, names, (), known) for each in parts) > MAX_FREE_VALUES:
            return f"a record with more than {MAX_FREE_VALUES} values without content"
        return next(filter(None, map(search, parts)), "")

    return search(schema)


def _free(schema: Any, names: Names, within: tuple[str, ...], known: dict[str, int]) -> int:
    """Return the number of values in a datum that takes no bytes; 0 if it takes any. ``known`` caches the
    numbers of named types, which may occur very often in nested records."""
    name, found = _name(schema, names), _resolved(schema, names)
    if name in within or isinstance(found, list):
        return 0
    if not name:
        return _free_of(found, names, within, known)
    if name not in known:
        known[name] = _free_of(found, names, (*within, name), known)
    return known[name]


def _free_of(found: Any, names: Names, within: tuple[str, ...], known: dict[str, int]) -> int:
    kind = found["type"] if isinstance(found, dict) else found
    if kind == "fixed":
        return int(found["size"] == 0)
    if kind in ("record", "error"):
        counts = [_free(field["type"], names, within, known) for field in found["fields"]]
        return 1 + sum(counts) if all(counts) else 0
    return _free(kind, names, within, known) if isinstance(kind, dict | list) else int(kind == "null")


def _name(schema: Any, names: Names) -> str:
    """Return the full name of a named type; empty for others."""
    if isinstance(schema, str):
        return schema if schema in names else ""
    return str(schema.get("name", "")) if isinstance(schema, dict) else ""


def _resolved(schema: Any, names: Names) -> Any:
    return names.get(schema, schema) if isinstance(schema, str) else schema


def _parts(schema: Any) -> Iterator[Any]:
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        yield from (field["type"] for field in schema.get("fields", ()))
        yield from (schema[part] for part in ("items", "values") if part in schema)
        if isinstance(schema["type"], dict | list):
            yield schema["type"]

"""The table of Apache Kafka's messages agrees with the message definitions of the fetched release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.conformance.definitions import ZERO, Versions, by_name, definitions
from tests.conformance.maven import kafka_jars
from tests.unit.wire.messages.kafka_apis import KAFKA_APIS


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    (clients,) = kafka_jars().glob("kafka-clients-*.jar")
    return definitions(clients)


@pytest.mark.parametrize("kind", ["Request", "Response"])
@pytest.mark.parametrize("api", KAFKA_APIS.values(), ids=lambda api: str(api["name"]))
def test_fields(found: dict[str, dict[str, Any]], api: dict[str, Any], kind: str) -> None:
    request = found[api["name"] + "Request"]
    versions = Versions(api["min"], api.get("unstable", api["max"]))
    assert versions.part(request["validVersions"]) == versions.part("0+") == versions
    flexible = versions.part(request["flexibleVersions"])
    assert (None if flexible is None else flexible.first) == api["flex"]
    assert _by_name(api[kind.lower()], versions) == by_name(found[api["name"] + kind], versions)


def _by_name(
    fields: Iterable[Mapping[str, Any]], versions: Versions
) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for field in fields:
        inner = versions.part(field["v"])
        assert inner is not None
        kept = {name: field[name] for name in ("t", "null", "tag", "ign") if name in field}
        default = field.get("d", "")
        default = default if isinstance(default, str) else json.dumps(default)
        kept |= {} if default in ZERO else {"d": default}
        found[field["n"], str(inner)] = {**kept, "f": _by_name(field["f"], inner)} if "f" in field else kept
    return found

"""Settings that change, topics that are created again, deleted records, snapshots of the metadata log, limits
of fetches, and flushes of each append: a run without a bug finds nothing, and each planted bug is found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.seeds import findings
from tests.simulation.test_simulation import ORDINARY
from txnkafka.broker.config import config_alteration
from txnkafka.broker.durability import Durability
from txnkafka.broker.records import fetch, records_deletion
from txnkafka.broker.registry import metadata_snapshots
from txnkafka.coordinator.registry import cluster_image
from txnkafka.error_codes import ErrorCode
from txnkafka.storage.log import log_read, truncation
from txnkafka.testing.simulation.simulation import Report, simulate
from txnkafka.testing.simulation.swarm import Swarm

BUSY = {"think_us": 500, "fault_every": 60, "small_fetches": 0.5}
REGISTRY = replace(
    ORDINARY, **BUSY, faults=("power cut", "stop", "topic deletion"), deletes_records=True,
    alters_settings=True, metadata_snapshot_bytes=200,
)  # fmt: skip
DELETIONS = replace(ORDINARY, **BUSY, faults=("power cut",), deletes_records=True)
FETCHES = replace(ORDINARY, small_fetches=0.5)
EACH = replace(
    ORDINARY, faults=("power cut", "kill"), durability="page_cache", flushes_each=True, segment_bytes=16_000,
    think_us=500, fault_every=60, sync_us=5_000,
)  # fmt: skip
SWARMS = {"registry": REGISTRY, "deletions": DELETIONS, "fetches": FETCHES, "each append": EACH}
SEEDS = range(2)


@cache
def run(name: str, seed: int) -> Report:
    return simulate(seed, 2_500, SWARMS[name])


@pytest.mark.parametrize("name", SWARMS)
def test_a_run_finds_nothing(name: str) -> None:
    for seed in SEEDS:
        report = run(name, seed)
        assert report.findings == [], f"seed {seed}: {report.findings}"


def test_all_of_it_happens() -> None:
    counts = Counter[str]()
    for seed in SEEDS:
        counts += run("registry", seed).counts
    wanted = ("settings changed", "records deleted", "small fetch", "metadata snapshot", "topic created")
    assert [name for name in wanted if not counts[name]] == []


# Bugs that are put into the engine


def without_settings(image: Any) -> Any:
    """A snapshot has no settings."""
    return (each for each in ORIGINAL["image_records"](image) if each.type != "config_record")


def not_written(broker: Any, partition: Any, offset: int) -> None:
    """The new log start is in memory only."""
    if partition in broker.logs:
        truncation.delete_records(broker.logs[partition], offset)


def without_a_limit(log: Any, offset: int, **named: Any) -> Any:
    """A fetch gets the whole segment."""
    return log_read.read(log, offset, **{**named, "max_bytes": 1 << 20})


def at_once(found: Any, is_final: bool = True) -> Any:
    """A fetch waits for nothing."""
    return ORIGINAL["Answer"](found, is_final=True)


def registered_at_once(broker: Any, records: Any, then: Any) -> None:
    """A change counts before it is durable."""
    broker.metadata.append(records, broker.now_ms)
    broker.metadata.apply(records)
    broker.durability.soon(lambda: then(ErrorCode.NONE, None))


def settings_stay(image: Any, value: Any) -> None:
    """A deleted topic leaves its settings to the next one of its name."""
    kept = dict(image.configs)
    cluster_image.ClusterImage._remove_topic(image, value)
    image.configs.update(kept)


def without_flush_messages(self: Durability, log: Any, _: int) -> bool:
    """The page cache ignores flush.messages."""
    return ORIGINAL["_is_durable_enough"](self, log, 0)


ORIGINAL: dict[str, Any] = {
    "image_records": metadata_snapshots.image_records,
    "Answer": fetch.Answer,
    "_is_durable_enough": Durability._is_durable_enough,
}
PLANTED: dict[str, tuple[Any, str, Callable[..., Any], Swarm, str]] = {
    "snapshots without settings": (
        metadata_snapshots, "image_records", without_settings, REGISTRY, "settings",
    ),
    "deletions that are not durable": (
        records_deletion, "_begin", not_written, DELETIONS, "wrong-deletion: the records of k-0 below",
    ),
    "fetches without a limit": (fetch, "read", without_a_limit, FETCHES, "bytes of .* are the most"),
    "fetches that do not wait": (fetch, "Answer", at_once, FETCHES, "are to be waited for"),
    "settings that are not durable": (
        config_alteration, "register", registered_at_once, REGISTRY, "settings",
    ),
    "page cache without flush.messages": (
        Durability, "_is_durable_enough", without_flush_messages, EACH, "lost-write|torn|G1a|inconsistent",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(PLANTED, every=4))
def test_a_bug_of_the_engine_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, swarm, text = PLANTED[name]
    monkeypatch.setattr(where, what, instead)
    assert re.search(text, findings(swarm, events=2_500))


def test_settings_of_a_deleted_topic_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cluster_image._CHANGES, "remove_topic_record", settings_stay)
    assert "wrong-settings: " in findings(replace(REGISTRY, faults=("topic deletion",)), events=2_500)

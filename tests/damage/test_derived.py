"""Damage to a derived file does not change what is read from the log.

Indexes, snapshots and checkpoints only save time. The one exception is a ``.txnindex`` with valid entries
that contradict the log: the transactions in it are hidden, as a broker would hide them, and the contradiction
is reported.
"""

from __future__ import annotations

import pytest

from tests.damage.image import PARTITION, ROOT, image
from tests.damage.memory import MemoryFileSystem
from tests.damage.mutations import SPARSER, mutations
from tests.damage.observation import Observation, observe
from txnkafka import LogDir

SAMPLE = 17 * SPARSER
MODES = ("clean", "killed", "copied")
SHOWN = 25
KINDS = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata")
ABOVE = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "meta.properties")
TIMES = (0, 25_500, 41_000, 10**9)


def _names(mode: str, kind: str) -> list[str]:
    return [name for name in image(mode) if name.endswith(kind)]


def _faults(seen: Observation, whole: Observation, kind: str) -> list[str]:
    if (seen.last_stable_offset, seen.log_end_offset) != (whole.last_stable_offset, whole.log_end_offset):
        return [f"ends at {seen.last_stable_offset} and {seen.log_end_offset}"]
    if seen.records == whole.records:
        return []
    contradicted = kind == ".txnindex" and any(each not in whole.reports for each in seen.reports)
    if contradicted and seen.records["read_uncommitted"] == whole.records["read_uncommitted"]:
        committed = set(map(repr, whole.records["read_committed"]))
        return [repr(record) for record in seen.records["read_committed"] if repr(record) not in committed]
    return ["other records"]


@pytest.mark.parametrize("kind", [*KINDS, *ABOVE])
@pytest.mark.parametrize("mode", MODES)
def test_no_bit_and_no_length_changes_an_answer(mode: str, kind: str) -> None:
    files = image(mode)
    whole = observe(files, "stop")
    wrong = []
    names = _names(mode, kind)
    assert bool(names) == (kind not in ABOVE or mode != "copied")
    for name in names:
        for mutation in mutations(files[name], SAMPLE, len(wrong)):
            seen = observe(files | {name: mutation.of(files[name])}, "stop")
            wrong += [f"{name} {mutation}: {fault}" for fault in _faults(seen, whole, kind)]
    if wrong:
        pytest.fail("\n".join([f"{len(wrong)}:", *wrong[:SHOWN]]), pytrace=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_derived_file_may_be_missing(mode: str) -> None:
    files = image(mode)
    whole = observe(files, "stop")
    for kind in (*KINDS, *ABOVE):
        for name in _names(mode, kind):
            seen = observe({each: content for each, content in files.items() if each != name}, "stop")
            assert _faults(seen, whole, kind) == [], name


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_offsets_by_time_do_not_depend_on_indexes(kind: str) -> None:
    files = image("clean")

    def answers(changed: dict[str, bytes]) -> list[object]:
        view = LogDir(ROOT, file_system=MemoryFileSystem(changed)).partition("t", 0)
        return [view.offset_for_timestamp(time, "read_uncommitted") for time in TIMES]

    expected = answers(files)
    assert [None if each is None else each.offset for each in expected] == [3, 26, 41, None]
    for name in _names("clean", kind):
        for mutation in mutations(files[name], SAMPLE):
            assert answers(files | {name: mutation.of(files[name])}) == expected, (name, mutation)


def test_there_is_something_to_damage() -> None:
    sizes = {kind: sum(len(image("clean")[name]) for name in _names("clean", kind)) for kind in KINDS}
    assert min(sizes.values()) > 8, sizes
    assert all(name.startswith(PARTITION) for kind in KINDS for name in _names("clean", kind))

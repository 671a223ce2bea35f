"""The archives: complete, reproducible, and unpacked without changes."""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

import pytest

from tests.golden import cases as golden
from tests.golden.cases import ARCHIVES, ISOLATION_LEVELS, Case, cases, unpacked
from tests.golden.pack import packed


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_packing_the_unpacked_cases_gives_the_same_tar(archive: Path) -> None:
    with tarfile.open(archive, "r:xz") as members:
        names = {member.name.partition("/")[0] for member in members}
    assert packed(unpacked(), names) == lzma.decompress(archive.read_bytes())


@pytest.mark.slow
def test_unpacking_again_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "CACHE", tmp_path)
    first = unpacked.__wrapped__()
    golden._unpack(first)
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_there_are_all_the_cases() -> None:
    assert len(cases()) == 77
    assert sum(len(each.partitions()) for each in cases()) == 226


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_is_complete(case: Case) -> None:
    assert case.meta["case"] == case.name
    assert case.logs.is_dir()
    assert (case.recovered is not None) == (case.startup is not None)
    assert case.refused == (not case.partitions())
    for partition in case.partitions():
        consumer = case.facts(partition)["consumer"]
        assert {level: consumer[level]["records"] for level in ISOLATION_LEVELS} == {
            level: len(case.expected_records(partition, level)) for level in ISOLATION_LEVELS
        }

"""The archive itself: complete, reproducible, and unpacked without changes."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.golden import cases as golden
from tests.golden.cases import ARCHIVES, ISOLATION_LEVELS, Case, cases, unpacked
from tests.golden.pack import packed


def test_packing_the_unpacked_cases_gives_the_same_tar() -> None:
    for folder, archive in zip(unpacked(), ARCHIVES, strict=True):
        assert packed(folder) == lzma.decompress(archive.read_bytes())


def test_unpacking_again_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "CACHE", tmp_path)
    folders = unpacked.__wrapped__()
    for archive, folder in zip(ARCHIVES, folders, strict=True):
        golden._unpack(archive, folder)
    assert {path.name for path in tmp_path.iterdir()} == {folder.name for folder in folders}


def test_there_are_all_the_cases() -> None:
    assert len(cases()) == 74
    assert sum(len(each.partitions()) for each in cases()) == 204


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

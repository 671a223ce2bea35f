"""Every bug of the bank is noticed by the tests that it names; ``make test`` takes some of them,
``make long`` all. Every patch must fit the package in both."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bugbank.patches import read_patch
from tests.bugbank.runner import ROOT, Outcome, limit_of, run
from tests.conftest import LONG

HERE = Path(__file__).parent
BANK = {path.stem: path for path in sorted(HERE.glob("*.patch"))}
FOUND_ELSEWHERE = {*range(1, 83)}
OUR_OWN = 101
AT_ONCE = 2
QUICK = [
    "001-kafka-14402",
    "002-kafka-17754",
    "003-kafka-14884",
    "005-kafka-14920",
    "006-kafka-18575",
    "008-kafka-20090",
    "018-kafka-10080",
    "021-kafka-9749",
    "030-redpanda-1a30165",
    "031-redpanda-e312dd1",
    "037-kafka-9807",
    "044-kafka-3968",
    "045-kafka-16541",
    "049-kafka-12964",
    "065-redpanda-3039",
    "073-kafka-13727",
    "105-full-disk-leaves-bytes",
    "106-cut-under-a-flush",
    "107-append-without-sync",  # one that is compiled
    "121-crc-not-looked-at",
]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Future[Outcome]]]:
    with ThreadPoolExecutor(AT_ONCE) as executor:
        names = BANK if LONG else QUICK
        yield {name: executor.submit(run, read_patch(BANK[name])) for name in names}
        executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", BANK if LONG else QUICK)
def test_a_bug_is_noticed(name: str, outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes[name].result()
    print(f"{outcome.seconds:.1f} s: {outcome.text}")
    assert outcome.is_caught, outcome.text
    assert outcome.seconds < max(limit_of(each) for each in read_patch(BANK[name]).caught_by)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("top")
    sources = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    shutil.copytree(ROOT / "txnkafka", top / "txnkafka", ignore=sources)
    return top


@pytest.mark.parametrize("name", BANK)
def test_a_patch_fits_the_package(name: str, package: Path) -> None:
    patch = read_patch(BANK[name])
    assert patch.changes
    for path in patch.apply(package):
        shutil.copy(ROOT / path.relative_to(package), path)
    for witness in patch.caught_by:
        assert (ROOT / witness.arguments.split(" ")[0].partition("::")[0]).is_file(), witness.arguments
        if LONG:
            assert witness.says is not None, "python -m tests.bugbank --record writes its Says lines"


def test_every_bug_is_here_or_has_a_reason_why_it_cannot_be() -> None:
    rows = re.findall(r"^\| *(\d+) *\| *([^|]+?) *\| *([^|]+?) *\|$", (HERE / "README.md").read_text(), re.M)
    reasons = {int(number): reason for number, _, reason in rows}
    assert all(len(reason.split()) > 5 for reason in reasons.values())
    patches = [int(name.partition("-")[0]) for name in BANK]
    assert len(set(patches)) == len(patches)
    assert not reasons.keys() & set(patches)
    assert {*reasons, *(number for number in patches if number < OUR_OWN)} == FOUND_ELSEWHERE

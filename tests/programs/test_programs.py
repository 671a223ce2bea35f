"""Each program copies its input exactly once while it and `txnkafka serve` are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client_suites.suite import NotFetchedError
from tests.conformance.card.page import PAGE, REWRITES, cells_of, rendered
from tests.programs.program import Program
from tests.programs.table import AT_LEAST_ONCE, PROGRAMS
from tests.programs.trial import KILLED, RECORDS, differences, run

SEED = 1
FOUND: list[str] = []
"""One line for each program, for the summary of the run."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_is_exactly_once(program: Program, tmp_path: Path) -> None:
    try:
        program.prepare()
    except NotFetchedError as error:
        FOUND.append(f"left out: {program.name} {program.version}: {error}")
        return
    trial = run(program, tmp_path, SEED)
    found = differences(trial)
    if program.repeats:
        assert found
        assert all("repeated" in each for each in found), found
    else:
        assert found == []
    times = "more than once" if program.repeats else "exactly once"
    FOUND.append(
        f"{program.name} {program.version}: {RECORDS} records {times}, {KILLED} killed, {trial.starts} "
        f"starts, {trial.undone} records in aborted transactions"
    )
    compare_with_the_page(program)


def compare_with_the_page(program: Program) -> None:
    """TXNKAFKA_REWRITE=1 writes the row of the program anew."""
    row = [
        program.version,
        program.about,
        KILLED,
        str(RECORDS),
        program.repeats or "exactly once",
        f"`ci/programs {program.name}`",
    ]
    page = cells_of(PAGE.read_text(encoding="utf-8"))
    if REWRITES:
        rows = {**page.programs, program.name: row}
        programs = {each.name: rows[each.name] for each in PROGRAMS if each.name in rows}
        PAGE.write_text(rendered(page._replace(programs=programs)), encoding="utf-8")
    else:
        assert page.programs[program.name] == row


def test_the_page_has_each_program() -> None:
    assert list(cells_of(PAGE.read_text(encoding="utf-8")).programs) == [each.name for each in PROGRAMS]


def test_at_least_once_is_noticed(tmp_path: Path) -> None:
    """The same trial finds the repetitions of a program that promises less."""
    AT_LEAST_ONCE.prepare()
    found = differences(run(AT_LEAST_ONCE, tmp_path, SEED))
    assert any("repeated" in each for each in found), found
    assert not any("lost" in each for each in found), found

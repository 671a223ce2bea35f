"""The compatibility card: each job by each client on both brokers, and that docs/compatibility.md says what
came of it. TXNKAFKA_REWRITE=1 writes the page; what was found is in build/reports/compatibility.json."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.conformance.card.card_clients import COLUMNS, LEFT_OUT, version_of
from tests.conformance.card.explained import DIFFERENT_TOOLS
from tests.conformance.card.jobs import JOBS
from tests.conformance.card.page import (
    PAGE,
    REWRITES,
    Page,
    cells_of,
    rendered,
    tool_verdict,
    unused,
    verdict,
)
from tests.conformance.card.run import Found, jobs_on_both
from tests.conformance.card.run_tools import tools_on_both
from tests.conformance.card.tool_jobs import KCAT_LEFT_OUT, TOOL_JOBS
from tests.conformance.maven import BUILD

CLIENTS = [name for name in COLUMNS if name not in LEFT_OUT]
Printed = tuple[list[str], ...]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Found]]:
    return jobs_on_both(CLIENTS, tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Printed]:
    return tools_on_both(tmp_path_factory.mktemp("tools"))


def test_every_job_is_green_or_explained(found: Mapping[str, Mapping[str, Found]]) -> None:
    verdicts = [verdict(client, job, found[job.name][client]) for job in JOBS for client in CLIENTS]
    problems = [each.problem for each in verdicts if each.problem]
    assert not problems, "\n".join(problems)
    assert not (stale := list(unused(found))), f"take these explanations away: {stale}"


def test_every_tool_is_green_or_explained(printed: Mapping[str, Printed]) -> None:
    problems = [each.problem for job in TOOL_JOBS if (each := tool_verdict(job, printed[job.name])).problem]
    assert not problems, "\n".join(problems)
    assert not DIFFERENT_TOOLS.keys() - {job.name for job in TOOL_JOBS}


def test_the_page_is_what_was_found(
    found: Mapping[str, Mapping[str, Found]],
    printed: Mapping[str, Printed],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Columns that were left out here are not compared, nor are versions: those are said when they differ."""
    checked_in = cells_of(PAGE.read_text(encoding="utf-8"))
    page = Page(
        versions={name: version_of(name) for name in CLIENTS},
        cells={
            job.name: {name: verdict(name, job, found[job.name][name]).cell for name in CLIENTS}
            for job in JOBS
        },
        tools={job.name: tool_verdict(job, printed[job.name]).cell for job in TOOL_JOBS},
        programs=checked_in.programs,  # tests/programs compares these
    )
    _report(page, found, printed)
    if REWRITES:
        assert not LEFT_OUT, f"the page needs every client: {LEFT_OUT}"
        assert not KCAT_LEFT_OUT, KCAT_LEFT_OUT
        PAGE.write_text(rendered(page), encoding="utf-8")
        checked_in = page
    with capsys.disabled():
        for name, version in page.versions.items():
            if checked_in.versions[name] != version:
                print(f"\n{name} {version} here, {checked_in.versions[name]} on the page", end="")
    assert {
        job: {name: cells[name] for name in CLIENTS} for job, cells in checked_in.cells.items()
    } == page.cells
    tools = {name: cell for name, cell in checked_in.tools.items() if name in page.tools}
    assert tools == page.tools


def _report(page: Page, found: Mapping[str, Mapping[str, Found]], printed: Mapping[str, Printed]) -> None:
    jobs = {
        job: {name: {"lines": each.lines, "detail": each.detail} for name, each in results.items()}
        for job, results in found.items()
    }
    content = {"versions": page.versions, "cells": page.cells, "jobs": jobs, "tools": printed}
    report = BUILD / "reports" / "compatibility.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(content, indent=1, default=list), encoding="utf-8")

"""docs/compatibility.md: the tables of the card and of the programs, and the page as it is checked in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conformance.card.explained import DIFFERENT, DIFFERENT_TOOLS, MISSING, SAME
from tests.conformance.card.jobs import Job
from tests.conformance.card.run import Found
from tests.conformance.card.tool_jobs import ToolJob

__all__ = [
    "GREEN", "PAGE", "PROGRAM_HEAD", "REWRITES", "Page", "Verdict", "cells_of", "rendered", "tool_verdict",
    "unused", "verdict",
]  # fmt: skip

PAGE = Path(__file__).resolve().parents[3] / "docs" / "compatibility.md"
REWRITES = os.environ.get("TXNKAFKA_REWRITE", "0") not in ("", "0")
GREEN = "✓"
HEAD = """\
# Compatibility

Look up here whether your client works with `txnkafka serve`. `make conformance` makes this page: every
client runs the same jobs ([the programmes](../tests/conformance/card/jobs.py)) on txnkafka and on Apache
Kafka 4.4.0. A cell is green when both runs gave the expected result, or the expected error by name. Every
other cell gives the reason. A run whose cells differ from this page fails; other versions are only printed,
and clients that could not be run are not compared. `TXNKAFKA_REWRITE=1` rewrites the page.
"""
ABOUT_TOOLS = """\
Apache Kafka's own command line tools, version 4.4.0, and kcat: a row is green when the tool prints the same
on both brokers, except for times and ids.
"""
ABOUT_PROGRAMS = """\
Each program copies records to a topic of `txnkafka serve`; some also count the records of each key in
their state, which is stored in the broker. Broker and program are killed with SIGKILL, alone and together,
each time while records are under way, and started again. *Exactly once* means that at the end a
read_committed consumer reads each committed input exactly once, every count in its order, and no other
record, and that `txnkafka verify` finds no fault. The same trial finds repeated records when Kafka Streams
runs with `at_least_once`. `make long` runs Kafka Streams, Connect and Flink; the
[programs](../tests/programs/table.py) contain their settings.
"""
PROGRAM_HEAD = ("program", "version", "how", "killed", "records", "result", "repeat with")


class Verdict(NamedTuple):
    """A cell; ``problem`` is set when nothing explains it."""

    cell: str
    problem: str = ""


class Page(NamedTuple):
    """The cells by row and column, and the version of each column. A row of ``programs``, by the name of the
    program, has the columns of PROGRAM_HEAD after the first."""

    versions: Mapping[str, str]
    cells: Mapping[str, Mapping[str, str]]
    tools: Mapping[str, str]
    programs: Mapping[str, Sequence[str]]


def verdict(client: str, job: Job, found: Found) -> Verdict:
    """What a job's results come to."""
    ours, theirs = found.lines
    where = client, job.name
    if found.is_lacking:
        reason = MISSING.get(client, {}).get(job.name)
        return Verdict(
            f"no: {reason}", "" if reason else f"{where} has no call, and no reason: {found.detail}"
        )
    if ours != theirs:
        reason = DIFFERENT.get(job.name)
        return Verdict(
            f"not yet: {reason}", "" if reason else f"{where}: {ours}, on Kafka {theirs}: {found.detail}"
        )
    if [line.partition(":")[0] if line.startswith("refused") else line for line in ours] != job.meant:
        reason = SAME.get(where)
        told = f"{where}: both brokers gave {ours}, meant is {job.meant}: {found.detail}"
        return Verdict(f"as on Kafka: {reason}", "" if reason else told)
    is_explained = where in SAME or job.name in MISSING.get(client, {})
    return Verdict(GREEN, f"{where} is green now: take its explanation away" if is_explained else "")


def unused(found: Mapping[str, Mapping[str, Found]]) -> Iterator[str]:
    """Jobs whose difference is explained, and which is not there any more."""
    for job in DIFFERENT:
        if all(each.lines[0] == each.lines[1] for each in found[job].values()):
            yield job


def tool_verdict(job: ToolJob, printed: tuple[list[str], ...]) -> Verdict:
    """What comes of a tool."""
    ours, theirs = printed
    reason = DIFFERENT_TOOLS.get(job.name)
    if not any(job.holds in line for line in theirs):
        return Verdict("", f"{job.name}: Kafka prints nothing like {job.holds!r}: {theirs}")
    if ours != theirs:
        return Verdict(f"not yet: {reason}", "" if reason else f"{job.name}: {ours}, on Kafka {theirs}")
    return Verdict(GREEN, f"{job.name} is green now: take its explanation away" if reason else "")


def rendered(page: Page) -> str:
    """The page as Markdown."""
    names = list(page.versions)
    head = ["job", *(f"{name}" for name in names)]
    rows = [[job, *(cells[name] for name in names)] for job, cells in page.cells.items()]
    versions = [[name, version] for name, version in page.versions.items()]
    tools = [list(row) for row in page.tools.items()]
    lines = [HEAD, *_table(["client", "version"], versions), "", "## Jobs", "", *_table(head, rows)]
    lines += ["", "## Tools", "", ABOUT_TOOLS, *_table(["what", "same"], tools)]
    programs = [[name, *cells] for name, cells in page.programs.items()]
    return "\n".join([*lines, "", "## Programs", "", ABOUT_PROGRAMS, *_table(PROGRAM_HEAD, programs), ""])


def cells_of(text: str) -> Page:
    """The page that a text is."""
    versions, jobs, tools, programs = (_rows(part) for part in re.split(r"\n## \w+\n", text))
    names = jobs[0][1:]
    cells = {row[0]: dict(zip(names, row[1:], strict=True)) for row in jobs[1:]}
    return Page(
        {row[0]: row[1] for row in versions[1:]},
        cells,
        {row[0]: row[1] for row in tools[1:]},
        {row[0]: row[1:] for row in programs[1:]},
    )


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|--")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]

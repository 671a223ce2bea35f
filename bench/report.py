"""Outcomes as text for the terminal, as Markdown for RESULTS.md, as JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence

from bench.harness import Comparison, Outcome, SideResult

__all__ = ["as_json", "as_markdown", "as_text"]

RATIO_HEAD = ("work", "side", "against", "ratio", "min to max", "goal", "")
SIDE_HEAD = ("work", "side", "median", "min to max", "unit", "by wall clock", "peak memory, and more")


# What is shown of the CPU time of a contest's unit, and the factor; of others, million units a CPU-s.
SECONDS = {"command": "CPU-s a run", "start": "CPU-s a start", "plan": "CPU-s a plan"}
PER_UNIT = {
    "batches": ("ns a batch", 1e9),
    "lookups": ("µs a lookup", 1e6),
    "transactions": ("CPU-ms a transaction", 1e3),
    "rebalances": ("CPU-ms a rebalance", 1e3),
}
THOUSANDS = {
    "appends": "k appends a CPU-s",
    "heartbeats": "k heartbeats a CPU-s",
    "ids": "k ids a CPU-s",
    "requests": "k requests a CPU-s",
}


def _rate(outcome: Outcome, cpu: float) -> float:
    """Return the CPU seconds in the unit of the contest; see ``_unit``."""
    unit = outcome.contest.unit
    if unit in SECONDS:
        return cpu
    if unit in PER_UNIT:
        return cpu / outcome.units * PER_UNIT[unit][1]
    return outcome.units / cpu / (1e3 if unit in THOUSANDS else 1e6)


def _unit(outcome: Outcome, cpu: float) -> str:
    unit = outcome.contest.unit
    name = PER_UNIT[unit][0] if unit in PER_UNIT else {**SECONDS, **THOUSANDS}.get(unit)
    name = name or f"M {unit} a CPU-s"
    if outcome.contest.unit_bytes is None:
        return name
    return f"{name}, {outcome.units * outcome.contest.unit_bytes() / cpu / 1e6:.0f} MB"


def _wall(outcome: Outcome, side: SideResult) -> str:
    """The wall clock in the unit of the contest; as a rate, and with latencies, where somebody waits."""
    median = statistics.median(side.wall)
    if outcome.contest.unit == "transactions":
        percentiles = ", ".join(f"p{percent} {side.percentile(percent) * 1e3:.2f} ms" for percent in (50, 99))
        return f"{_short(outcome.units / median)} a second" + (f", {percentiles}" if side.latencies else "")
    shown = _short(_rate(outcome, median))
    if outcome.contest.unit_bytes is None:
        return shown
    return f"{shown}, {outcome.units * outcome.contest.unit_bytes() / median / 1e6:.0f} MB"


def _verdict(met: bool | None) -> str:
    return {None: "", True: "met", False: "MISSED"}[met]


def _ratio_rows(outcome: Outcome) -> Iterable[tuple[str, ...]]:
    name = outcome.contest.name
    for compared in outcome.contest.comparisons:
        ratios = outcome.ratios(compared)
        goal = "" if compared.goal is None else f"≥ {compared.goal:g}"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        median = f"{statistics.median(ratios):.2f}x"
        measure = f"p{compared.percentile:g}" if compared.percentile is not None else "wall clock"
        is_cpu = not compared.by_wall and compared.percentile is None
        against = compared.against if is_cpu else f"{compared.against}, {measure}"
        yield name, compared.subject, against, median, spread, goal, _verdict(outcome.met(compared))
    for limit in outcome.contest.limits:
        figures, unit = outcome.figures(limit), limit.quantity
        spread = f"{_short(min(figures))} to {_short(max(figures))}" if len(figures) > 1 else ""
        median, goal = f"{_short(statistics.median(figures))} {unit}", f"≤ {limit.most:g} {unit}"
        yield name, limit.side, "", median, spread, goal, _verdict(outcome.within(limit))
    for side, reason in outcome.missing:
        yield name, side, "", "left out", reason, "", ""


def _side_rows(outcome: Outcome) -> Iterable[tuple[str, ...]]:
    for side in outcome.sides.values():
        rates = sorted(_rate(outcome, cpu) for cpu in side.cpu)
        spread = f"{_short(rates[0])} to {_short(rates[-1])}"
        median = _short(statistics.median(rates))
        wall = _wall(outcome, side)
        peak = f"{side.peak_bytes / 1e6:.0f} MB" if side.peak_bytes else ""
        peak = "; ".join(filter(None, (peak, side.detail)))
        unit = _unit(outcome, statistics.median(side.cpu))
        name = side.name if side.is_compared else f"{side.name} (data not compared)"
        yield outcome.contest.name, name, median, spread, unit, wall, peak


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _columns(rows: Sequence[Sequence[str]], left: str, between: str, right: str) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        left + between.join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + right
        for row in rows
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = _columns([head, *rows], "| ", " | ", " |")
    rule = "".join("|" if character == "|" else "-" for character in lines[0])
    return [lines[0], rule, *lines[1:]]


def as_text(outcome: Outcome) -> str:
    """Format one contest for the terminal."""
    rows = [*_side_rows(outcome)]
    lines = [f"{outcome.contest.name} ({outcome.contest.rounds} rounds)"]
    lines += _columns(
        [
            (side, median, unit, spread, f"wall {wall}", peak)
            for _, side, median, spread, unit, wall, peak in rows
        ],
        "  ",
        "  ",
        "",
    )
    ratios = [(f"{row[1]} / {row[2]}" if row[2] else row[1], *row[3:]) for row in _ratio_rows(outcome)]
    lines += _columns(ratios, "  ", "  ", "") if ratios else []
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(outcomes: Sequence[Outcome], machine: dict[str, str], command: str) -> str:
    """Format the whole run."""
    lines = [
        "# Benchmark results",
        "",
        f"Written by `{command}`. Ratios are CPU time of the other side divided by ours on the same bytes,",
        "taken within each round (sides take turns); the median of the rounds comes first. A run whose",
        "sides disagree on the data fails; data that only one side reads is not compared. CPU time of Java",
        "is that of the reading thread alone: its compiler and collector threads are not counted.",
        "",
        *_table(("machine", ""), list(machine.items())),
        "",
        "## Ratios and goals",
        "",
        *_table(RATIO_HEAD, [row for outcome in outcomes for row in _ratio_rows(outcome)]),
        "",
        "## All sides",
        "",
        *_table(SIDE_HEAD, [row for outcome in outcomes for row in _side_rows(outcome)]),
        "",
    ]
    notes = dict.fromkeys(outcome.contest.note for outcome in outcomes if outcome.contest.note)
    lines += ["## Notes", "", *(f"- {note}" for note in notes), ""] if notes else []
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome], machine: dict[str, str]) -> str:
    """Format every round of every side."""
    contests = [
        {
            "name": outcome.contest.name,
            "unit": outcome.contest.unit,
            "units": outcome.units,
            "digests": outcome.digests,
            "missing": dict(outcome.missing),
            "sides": [_side_json(side) for side in outcome.sides.values()],
            "comparisons": [_comparison_json(outcome, compared) for compared in outcome.contest.comparisons],
        }
        for outcome in outcomes
    ]
    return json.dumps({"machine": machine, "contests": contests}, indent=1)


def _side_json(side: SideResult) -> dict[str, object]:
    return {
        "name": side.name,
        "cpu_seconds": side.cpu,
        "wall_seconds": side.wall,
        "peak_bytes": side.peak_bytes,
        "detail": side.detail,
        "latencies": side.latencies,
    }


def _comparison_json(outcome: Outcome, each: Comparison) -> dict[str, object]:
    ratios = outcome.ratios(each)
    return {
        "subject": each.subject,
        "against": each.against,
        "by_wall": each.by_wall,
        "percentile": each.percentile,
        "goal": each.goal,
        "ratios": ratios,
        "median": statistics.median(ratios),
    }

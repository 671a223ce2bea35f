"""``txnkafka simulate`` runs the broker, its clients, its network and its disk on one thread from a seed, and
checks the clients' observations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from txnkafka.cli.command import Command

if TYPE_CHECKING:
    from txnkafka.testing.simulation.simulation import Report


@click.command(cls=Command, short_help="Run the broker and clients under faults, from a seed.")
@click.option("--seed", type=click.IntRange(0), required=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many seeds.")
@click.option(
    "--events",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Minimum number of events per seed.",
)
@click.option(
    "--processes", type=click.IntRange(1), default=1, show_default=True, help="Seeds run in parallel."
)
def simulate(seed: int, seeds: int, events: int, processes: int) -> int:
    """Run a broker with transactional clients under network, disk and clock faults, all derived from the
    seed, and check the clients' observations and the files on disk.

    Exit status: 0 nothing found, 1 findings, or a fault or an action never happened in a long run."""
    from txnkafka.testing.simulation.ledger import missing
    from txnkafka.testing.simulation.runs import run_seeds

    counts: Counter[str] = Counter()
    total = failed = 0
    for report in run_seeds(range(seed, seed + seeds), events, processes):
        counts += report.counts
        total += report.events
        if seeds == 1 or report.findings:
            _print(report, events)
        failed += bool(report.findings)
    for name, count in sorted(counts.items()):
        click.echo(f"{count:>10}  {name}")
    never = missing(counts, total)
    for name in never:
        click.echo(f"never happened: {name}")
    click.echo(f"{total} events of {seeds} seeds, {failed} with findings")
    return int(bool(failed or never))


def _print(report: Report, events: int) -> None:
    """Print a run: its findings, the events that led to them, and the command that repeats it."""
    click.echo(f"seed {report.seed}: {report.events} events, trace {report.trace_hash}")
    if not report.findings:
        return
    for line in report.last:
        click.echo(f"    {line[:200]}")
    click.echo(f"    {report.swarm}")
    for finding in report.findings:
        click.echo(f"  {finding}")
    click.echo(f"  to repeat it: txnkafka simulate --seed {report.seed} --events {events}")

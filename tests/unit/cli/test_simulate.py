"""``txnkafka simulate`` says what it did, and how to repeat what it has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from click.testing import CliRunner

from txnkafka.cli.main import cli
from txnkafka.testing.simulation import ledger, runs
from txnkafka.testing.simulation.simulation import Report
from txnkafka.testing.simulation.swarm import Swarm


def simulated(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["simulate", *arguments], standalone_mode=False)
    assert result.exception is None
    return result.return_value, result.output


def test_a_run() -> None:
    status, output = simulated("--seed", "3", "--events", "300")
    assert status == 0
    assert output.startswith("seed 3: ")
    assert "Produce\n" in output
    assert output.splitlines()[-1].endswith("events of 1 seeds, 0 with findings")


def test_findings_are_shown_with_what_repeats_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(seeds: range, events: int, processes: int) -> Iterator[Report]:
        for seed in seeds:
            texts = ["G1a: it was aborted"] if seed == 6 else []
            swarm = Swarm.draw(Random(seed))
            yield Report(seed, events, "ab", Counter(kill=1), texts, swarm, ["1 fault kill"])

    monkeypatch.setattr(runs, "run_seeds", found)
    status, output = simulated("--seed", "5", "--seeds", "3", "--events", "500000")
    assert status == 1
    assert "G1a: it was aborted" in output
    assert "1 fault kill" in output
    assert "to repeat it: txnkafka simulate --seed 6 --events 500000" in output
    assert "never happened: power cut" in output.splitlines()
    assert "never happened: kill" not in output.splitlines()
    assert output.splitlines()[-1] == "1500000 events of 3 seeds, 1 with findings"
    monkeypatch.setattr(ledger, "COMPLETE_EVENTS", 2_000_000)
    assert "never happened" not in simulated("--seed", "5", "--seeds", "3", "--events", "500000")[1]

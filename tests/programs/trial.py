"""Runs a program on `txnkafka serve`, kills both several times, and compares the committed records."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.programs.copied import distinct, wrong
from tests.programs.feeder import Feeder, lines, records, transactions
from tests.programs.program import Place, Program
from tests.programs.supervised import Supervised
from tests.server.killed_server import KilledServer
from tests.server.kills import findings
from tests.server.transaction_load import Reader
from txnkafka import LogDir

__all__ = ["KILLED", "RECORDS", "Trial", "differences", "run"]

EVENTS = (("program",), ("broker",), ("program", "broker")) * 2
KILLED = ", ".join(f"{each} {sum(each in event for event in EVENTS)} times" for each in ("broker", "program"))
PORTION = 500  # records from one event to the next
RECORDS = PORTION * (len(EVENTS) + 1)
PARTITIONS = 2
AWAY = (0.0, 3.0)  # seconds that a killed broker is away
PATIENCE = 240.0
Records = Mapping[int, Sequence[tuple[int, str]]]
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class Trial(NamedTuple):
    """``committed`` are the values in the program's topic that a read_committed consumer gets; ``undone`` is
    how many records of aborted transactions lie between them."""

    committed: list[str]
    undone: int
    starts: int


def differences(trial: Trial) -> list[str]:
    """Return the differences from exactly once; an empty list means none."""
    return list(wrong(range(RECORDS), trial.committed))


def run(program: Program, directory: Path, seed: int) -> Trial:
    """Let the program copy RECORDS records through the EVENTS. Raises AssertionError when it does not get on,
    when the broker logs an error, or when its directory is not sound."""
    rng = random.Random(f"{program.name} {seed}")
    place = Place("", "in", program.target, directory / "program")
    place.directory.mkdir()
    options = [word for pair in SETTINGS.items() for word in ("--config", "=".join(pair))]
    topics = (place.source, place.target)
    options += [word for topic in topics for word in ("--create-topic", f"{topic}:{PARTITIONS}")]
    server = KilledServer(directory / "data", rng, *options)
    try:
        server.start()
        place = place._replace(server=server.address)
        app = Supervised(program.command(place), directory / "program.log")
        reader = Reader(server.address, place.target, PARTITIONS)
        try:
            reader.start()
            _disturb(rng, server, app, reader, _feeder(program, place))
        finally:
            app.close()
            reader.close()
        assert server.stop() == 0
        assert not re.search(r"\berror\b|Traceback", server.log()), server.log()[-4000:]
    finally:
        server.close()
    assert not reader.failures, reader.failures
    return _compared(directory / "data", place.target, reader, app.starts)


def _feeder(program: Program, place: Place) -> Feeder:
    if program.input == "lines":
        return Feeder(lines(place.lines), RECORDS)
    written = transactions if program.input == "transactions" else records
    return Feeder(written(place.server, place.source), RECORDS)


def _disturb(
    rng: random.Random, server: KilledServer, app: Supervised, reader: Reader, feeder: Feeder
) -> None:
    """Kill at each event, when a random part of its portion is copied and the rest is under way. The last
    portion shows that the program goes on after all of them."""

    def copied(count: int) -> None:
        _wait(lambda: distinct(_values(reader.records)) >= count, app, feeder)

    feeder.start()
    for number, event in enumerate(EVENTS):
        feeder.allow((number + 1) * PORTION)
        copied(int((number + rng.uniform(0.05, 0.6)) * PORTION))
        time.sleep(rng.uniform(0, 0.3))
        if "program" in event:
            app.kill()
        if "broker" in event:
            server.kill()
            time.sleep(rng.uniform(*AWAY))
            server.start()
    feeder.allow(RECORDS)
    copied(RECORDS)


def _wait(is_reached: Callable[[], bool], app: Supervised, feeder: Feeder) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_reached():
        if feeder.failure is not None:
            raise feeder.failure
        assert time.monotonic() < deadline, f"the program does not get on:\n{app.end_of_log()}"
        app.keep()
        time.sleep(0.05)


def _values(found: Records) -> list[str]:
    return [value for each in found.values() for _, value in list(each)]


def _compared(data: Path, topic: str, reader: Reader, starts: int) -> Trial:
    assert not (faults := findings(data)), faults
    log_dir = LogDir(str(data))
    levels = {
        level: {
            number: [
                (record.offset, (record.value or b"").decode())
                for record in log_dir.partition(topic, number).records(isolation_level=level)
            ]
            for number in range(PARTITIONS)
        }
        for level in ("read_committed", "read_uncommitted")
    }
    committed, everything = levels.values()
    for number, seen in reader.records.items():
        assert seen == committed[number][: len(seen)], f"the consumer has seen another log of {number}"
    values = _values(committed)
    undone = sum(map(len, everything.values())) - len(values)
    return Trial(values, undone, starts)

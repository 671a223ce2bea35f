"""What passes of a client's own integration tests on Apache Kafka 4.3.1 passes on `txnkafka serve`.

A sample of each suite runs in `make conformance`; all of it with TXNKAFKA_LONG=1 (`ci/client-suites`, a step
of `make long`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client_suites import franz_go, kafka_python, librdkafka
from tests.client_suites.suite import BUILD, HERE, NotFetchedError, Outcomes, Suite
from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving

IS_LONG = bool(os.environ.get("TXNKAFKA_LONG"))
SUITES = (kafka_python.SUITE, franz_go.SUITE, librdkafka.SUITE)
COUNTS: list[str] = []
"""What each suite found, for the summary of the run."""


def reasons_in(file: str, suite: str) -> dict[str, str]:
    """Reasons by the names of tests: ``left_out.txt`` for those that fail on one broker of Apache Kafka,
    ``differences.txt`` for those that pass there and fail here."""
    reasons = {}
    for line in (HERE / file).read_text().splitlines():
        if line.startswith(f"{suite} "):
            name, reason = line.removeprefix(f"{suite} ").split(": ", 1)
            reasons[name] = reason
    return reasons


@contextmanager
def kafka(directory: Path, configs: Mapping[str, str]) -> Iterator[str]:
    with KafkaBroker(directory, configs) as broker:
        yield broker.bootstrap_servers


@contextmanager
def ours(directory: Path, configs: Mapping[str, str]) -> Iterator[str]:
    directory.mkdir()
    given = {"group.initial.rebalance.delay.ms": "0", **configs}
    options = [word for pair in given.items() for word in ("--config", "=".join(pair))]
    with Serving(directory / "data", *options) as broker:
        yield broker.address
        assert broker.stop() == 0


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_client_suite(suite: Suite, tmp_path: Path) -> None:
    if not IS_LONG and not suite.sample:
        COUNTS.append(f"left out: {suite.name} takes longer than a sample should; ci/client-suites runs it")
        return
    if suite.missing:
        COUNTS.append(f"left out: {suite.name} needs {', '.join(suite.missing)}")
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        suite.prepare()
    except NotFetchedError as error:
        COUNTS.append(f"left out: {suite.name} could not be fetched: {error}")
        return
    chosen = () if IS_LONG else suite.sample
    with kafka(tmp_path / "kafka", suite.configs) as server:
        on_kafka = outcomes(suite, server, chosen, tmp_path / "kafka.log")
    with ours(tmp_path / "ours", suite.configs) as server:
        on_ours = outcomes(suite, server, chosen, tmp_path / "ours.log")
    (BUILD / f"{suite.name}.kafka.log").write_bytes((tmp_path / "kafka.log").read_bytes())
    (BUILD / f"{suite.name}.ours.log").write_bytes((tmp_path / "ours.log").read_bytes())
    counts = Counter(on_kafka.values())
    COUNTS.append(
        f"{suite.name}, its own tests on Apache Kafka: "
        + ", ".join(f"{n} {each}" for each, n in counts.items())
    )
    check(suite.name, on_kafka, on_ours)


def outcomes(suite: Suite, server: str, chosen: Sequence[str], log: Path) -> Outcomes:
    """Run tests. Those that fail are run a second time: they wait for seconds only, for which a busy machine
    may be too slow. The log has both."""
    found = dict(suite.run(server, chosen, log))
    failed = {name for name, outcome in found.items() if outcome == "failed"}
    failed -= reasons_in("left_out.txt", suite.name).keys()
    if failed:
        second = log.with_name(f"second-{log.name}")
        found = {name: outcome for name, outcome in found.items() if name not in failed}
        found |= suite.run(server, sorted(set(map(suite.name_of, failed))), second)
        COUNTS.append(f"{suite.name}, run a second time on {log.stem}: {', '.join(sorted(failed))}")
        log.write_bytes(log.read_bytes() + b"\nThose that failed, a second time:\n" + second.read_bytes())
    return found


def check(suite: str, on_kafka: Outcomes, on_ours: Outcomes) -> None:
    """Every test that passes on Kafka passes on ours; those that fail there are known by name."""
    passed, skipped = (
        {name for name, outcome in on_kafka.items() if outcome == word} for word in ("passed", "skipped")
    )
    failed = on_kafka.keys() - passed - skipped
    assert passed, f"no test of {suite} passed on Apache Kafka"
    wrong = {name: on_ours.get(name, "did not run") for name in passed if on_ours.get(name) != "passed"}
    meant = reasons_in("differences.txt", suite).keys() & passed
    assert wrong.keys() == meant, f"they fail, or pass in spite of differences.txt: {wrong}"
    known = reasons_in("left_out.txt", suite).keys()
    assert failed - known == set(), "they fail on Apache Kafka, and are not in left_out.txt"


def test_a_test_that_fails_is_run_a_second_time(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    def run(server: str, tests: Sequence[str], log: Path) -> Outcomes:
        log.write_text(f"run {len(asked)}")
        asked.append(tests)
        first = {"a/1": "passed", "b/1": "failed", "b/2": "failed", "c/1": "failed"}
        return {"b/1": "passed", "c/1": "failed"} if tests else first

    suite = Suite("none", lambda: None, run, [], name_of=lambda test: test[0])
    log = tmp_path / "kafka.log"
    assert outcomes(suite, "", (), log) == {"a/1": "passed", "b/1": "passed", "c/1": "failed"}
    assert asked == [(), ["b", "c"]]
    assert log.read_text() == "run 0\nThose that failed, a second time:\nrun 1"
    assert COUNTS.pop() == "none, run a second time on kafka: b/1, b/2, c/1"


def test_a_test_that_fails_on_ours_is_found() -> None:
    with pytest.raises(AssertionError, match="one"):
        check("none", {"one": "passed", "two": "passed"}, {"one": "failed", "two": "passed"})
    with pytest.raises(AssertionError, match="did not run"):
        check("none", {"one": "passed"}, {})
    with pytest.raises(AssertionError, match=r"left_out\.txt"):
        check("none", {"one": "passed", "two": "failed"}, {"one": "passed"})

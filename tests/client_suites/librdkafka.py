"""librdkafka's tests: its own test program, in C, with the source in a package of npm."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.archives import unpack
from tests.client_suites.suite import BUILD, Outcomes, Suite, fetch, run_tests

__all__ = ["SUITE"]

PACKAGE: Final = "node-rdkafka@3.6.1"
SECONDS: Final = 240  # for one test

HOME: Final = BUILD / "librdkafka" / "package" / "deps" / "librdkafka"


def _prepare() -> None:
    tests = HOME / "tests"
    if (tests / "test-runner").exists():
        return
    archive_name = fetch(["npm", "pack", "--silent", PACKAGE]).split()[-1]
    with tarfile.open(BUILD / archive_name) as archive:
        unpack(archive, BUILD / "librdkafka")
    (HOME / "configure").chmod(0o755)
    source = (tests / "test.c").read_text()
    for_one_broker = source.replace(
        "(topicname, partition_cnt, replication_factor,", "(topicname, partition_cnt, -1,"
    )
    assert for_one_broker != source
    (tests / "test.c").write_text(for_one_broker)
    without = [f"--disable-{name}" for name in ("ssl", "gssapi", "curl", "sasl")]
    with (BUILD / "librdkafka.log").open("wb") as log:
        for command in (["./configure", *without], ["make", "libs"], ["make", "-C", "tests", "build"]):
            subprocess.run(command, cwd=HOME, check=True, stdout=log, stderr=subprocess.STDOUT)


def _run(server: str, tests: Sequence[str], log: Path) -> Outcomes:
    settings, report = log.with_suffix(".conf"), log.with_suffix(".json")
    settings.write_text(f"bootstrap.servers={server}\n")
    environment = {
        **os.environ, "LD_LIBRARY_PATH": f"{HOME}/src:{HOME}/src-cpp", "CI": "true",
        "RDKAFKA_TEST_CONF": str(settings), "TEST_REPORT": str(report), "TEST_KAFKA_VERSION": "4.3.1",
    }  # fmt: skip
    outcomes: dict[str, str] = {}
    for test in tests or _numbers():  # one process each: a test that fails ends it
        report.unlink(missing_ok=True)
        output = log.with_name(f"{log.stem}-{test}.log")
        try:
            run_tests(
                ["./test-runner", "-p1", "-Q", "-L"], output, SECONDS,
                cwd=HOME / "tests", env={**environment, "TESTS": test},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            outcomes[test] = "failed"
        with log.open("ab") as all_output:
            all_output.write(output.read_bytes())
        found = json.loads(report.read_text())["tests"] if report.exists() else {test: {"state": "FAILED"}}
        outcomes |= {name: each["state"].lower() for name, each in found.items() if name.startswith(test)}
    return outcomes


def _numbers() -> list[str]:
    """Numbers of all tests; those above 999 are run by hand, and mocks need no broker."""
    names = sorted(path.name for path in (HOME / "tests").glob("0[0-9][0-9][0-9]-*.c*"))
    return sorted({name[:4] for name in names if "mock" not in name})


SUITE: Final = Suite(
    "librdkafka",
    _prepare,
    _run,
    sample=[],  # to build it and to start a process for each test takes minutes
    configs={"num.partitions": "4"},
    needs=["npm", "make", "gcc", "g++"],
    name_of=lambda test: test[:4],
)

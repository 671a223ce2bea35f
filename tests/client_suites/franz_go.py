"""franz-go's tests of the package kgo: a test program of Go, in the module."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.client_suites.suite import BUILD, HERE, SECONDS, Outcomes, Suite, fetch, run_tests

__all__ = ["SUITE"]

GO_MODULE: Final = HERE.parent / "conformance" / "go"

KGO: Final = BUILD / "kgo.test"


def _prepare() -> None:
    package = "github.com/twmb/franz-go/pkg/kgo"
    fetch(["go", "mod", "download"], cwd=GO_MODULE)
    subprocess.run(["go", "test", "-c", "-o", str(KGO), package], cwd=GO_MODULE, check=True)


def _run(server: str, tests: Sequence[str], log: Path) -> Outcomes:
    directory = ["go", "list", "-f", "{{.Dir}}", "github.com/twmb/franz-go/pkg/kgo"]
    package = subprocess.run(directory, cwd=GO_MODULE, check=True, capture_output=True, text=True)
    environment = {
        **os.environ, "KGO_SEEDS": server, "KGO_TEST_RF": "1", "KGO_LOG_LEVEL": "none",
        "KGO_TEST_RECORDS": "5000" if tests else "50000",
    }  # fmt: skip
    chosen = ["-test.run", f"^({'|'.join(tests)})$"] if tests else []
    command = [str(KGO), "-test.v", f"-test.timeout={SECONDS}s", *chosen]
    run_tests(command, log, SECONDS, cwd=package.stdout.strip(), env=environment)
    found = re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", log.read_text(errors="replace"), re.M)
    words = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
    return {name: words[word] for word, name in found}


SUITE: Final = Suite(
    "franz-go",
    _prepare,
    _run,
    sample=["TestTxnEtl", "TestGroupETL", "TestGroupSimple", "TestAddRemovePartitions", "TestIssue865"],
    needs=["go"],
    name_of=lambda test: test.split("/")[0],
)

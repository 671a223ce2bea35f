"""kafka-python's integration tests: pytest, in the source distribution."""

from __future__ import annotations

import os
import re
import sys
import tarfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.archives import unpack
from tests.client_suites.suite import BUILD, SECONDS, Outcomes, Suite, fetch, run_tests

__all__ = ["SUITE"]

HOME: Final = BUILD / f"kafka_python-{version('kafka-python')}"
SERVICE: Final = '''"""Stands in for a module that the source distribution lacks: the broker runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    pass
'''


def _prepare() -> None:
    if not (HOME / "test" / "service.py").exists():
        package = f"kafka-python=={version('kafka-python')}"
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        fetch([*download, "--dest", str(BUILD), package])
        with tarfile.open(f"{HOME}.tar.gz") as archive:
            unpack(archive, BUILD)
        (HOME / "test" / "__init__.py").touch()  # or Python's own package of that name is found
        (HOME / "test" / "service.py").write_text(SERVICE)
        (HOME / "servers" / "4.3.1" / "kafka-bin").mkdir(parents=True)  # looked for, and not used
        (HOME / "pytest.ini").write_text("[pytest]\n")  # its own asks for plugins


def _run(server: str, tests: Sequence[str], log: Path) -> Outcomes:
    environment = {
        **os.environ, "PYTHONPATH": str(HOME), "PYTHONDONTWRITEBYTECODE": "1",
        "KAFKA_URI": f"PLAINTEXT://{server}", "KAFKA_VERSION": "4.3.1",
    }  # fmt: skip
    pytest = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-p", "no:cacheprovider", "-W", "ignore"]
    chosen = [f"test/integration/{test}" for test in tests] or ["test/integration"]
    run_tests([*pytest, "-v", "--tb=short", *chosen], log, SECONDS, cwd=HOME, env=environment)
    found = re.findall(r"^test/integration/(\S+::\S+) (PASSED|FAILED|SKIPPED|ERROR)", log.read_text(), re.M)
    return {name: "failed" if word == "ERROR" else word.lower() for name, word in found}


SUITE: Final = Suite(
    "kafka-python",
    _prepare,
    _run,
    sample=["test_consumer_integration.py", "test_producer_integration.py", "test_admin_integration.py"],
    configs={"num.partitions": "4", "group.min.session.timeout.ms": "500"},
)

"""The example of docs/testing.md: a service and its tests run as the page shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pages import examples


def test_the_service_and_its_tests(tmp_path: Path) -> None:
    for example in examples("docs/testing.md"):
        name = example.source.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(example.source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "3 passed" in done.stdout, done.stdout + done.stderr

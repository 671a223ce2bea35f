"""Every command on every kind of hostile directory: it ends soon, in little memory, with a documented exit
status, without a traceback, and changes nothing outside of the directory; read-only commands change nothing
inside of it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import sampled
from tests.hostile.directories import KINDS, build

ROOT = Path(__file__).parents[2]
PEAK_BYTES = (256 + 110) << 20  # allowed for the input, and for the interpreter with its libraries
SECONDS = 15  # of CPU


def snapshot(top: Path) -> dict[str, object]:
    """Return names, kinds and contents below a directory; links are not followed."""
    found: dict[str, object] = {}
    for parent, directories, names in os.walk(top):
        for name in (*directories, *names):
            path = Path(parent, name)
            status = path.lstat()
            content: object = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(path.read_bytes()).digest() if status.st_blocks else status.st_size
            found[str(path)] = stat.S_IFMT(status.st_mode), content
    return found


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    """A directory that is removed after the test: pytest fails at trees deeper than the recursion limit, at
    the end of a later run."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


@pytest.mark.parametrize("kind", sampled(KINDS, every=5))
def test_every_command_survives(top: Path, kind: str) -> None:
    directory = build(kind, top)
    outside = snapshot(top / "outside")
    command = [sys.executable, "-m", "tests.hostile.run_commands", str(directory), str(top / "exported")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [
        f"{row['command']}: status {row['status']}, {row['seconds']} s, {row['bytes'] >> 20} MiB: "
        f"{row['stderr'][-3000:]}"
        for row in rows
        if row["status"] not in (0, 1, 2)
        or row["seconds"] > SECONDS
        or row["bytes"] > PEAK_BYTES
        or "Traceback" in row["stderr"]
    ]
    assert not wrong, "\n".join(wrong)
    assert snapshot(top / "outside") == outside

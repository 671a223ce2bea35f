"""Puts a bug into a copy of the package and lets the tests look at it that must notice it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.bugbank.patches import Patch, PatchError
from tests.bugbank.witness import REPORT

__all__ = ["LIMIT_SECONDS", "Outcome", "run"]

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "bugbank"
LIMIT_SECONDS = 60
COMPILED = (".pyx", ".pxd", ".h")
PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "tests.bugbank.witness")


class Outcome(NamedTuple):
    """Whether the bug was noticed, by what or why not, and how long that took."""

    is_caught: bool
    text: str
    seconds: float = 0.0


def run(patch: Patch, *, limit_seconds: float = LIMIT_SECONDS) -> Outcome:
    """The first test that must notice the bug and does not, or the last that does."""
    with tempfile.TemporaryDirectory(prefix="txnkafka-bug-") as directory:
        top = Path(directory)
        shutil.copytree(ROOT / "txnkafka", top / "txnkafka", copy_function=shutil.copy2)
        try:
            patch.apply(top)
            _build(patch, top)
        except PatchError as error:
            return Outcome(False, f"the patch does not apply: {error}")
        seconds = 0.0
        outcome = Outcome(False, "no test is named")
        for arguments in patch.caught_by:
            outcome = _test(top, arguments, limit_seconds)
            seconds += outcome.seconds
            if not outcome.is_caught:
                break
        return outcome._replace(seconds=seconds)


# Testing


def _test(top: Path, arguments: str, limit_seconds: float) -> Outcome:
    report, output = top / "report.json", top / "output"
    report.unlink(missing_ok=True)
    command = [sys.executable, *PYTEST, f"--override-ini=pythonpath={top}", *shlex.split(arguments)]
    began = time.monotonic()
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(top, report), stdout=out, stderr=out, start_new_session=True
        )
        try:
            process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Outcome(False, f"{arguments}: nothing was noticed in {limit_seconds} s", limit_seconds)
    seconds = time.monotonic() - began
    is_caught, text = _judge(top, report)
    if not is_caught:
        text += "\n" + output.read_text(encoding="utf-8", errors="replace")[-2000:]
    return Outcome(is_caught, f"{arguments}: {text}", seconds)


def _environment(top: Path, report: Path) -> dict[str, str]:
    """The patched package first; as much work as in ``make test``."""
    environment = {key: value for key, value in os.environ.items() if key != "TXNKAFKA_LONG"}
    path = os.pathsep.join([str(top), str(ROOT)])
    return environment | {"PYTHONPATH": path, REPORT: str(report), "HYPOTHESIS_STORAGE_DIRECTORY": str(top)}


def _judge(top: Path, report: Path) -> tuple[bool, str]:
    if not report.exists():
        return False, "the tests did not run"
    found = json.loads(report.read_text(encoding="utf-8"))
    if not Path(found["package"]).is_relative_to(top):
        return False, f"{found['package']} was tested, not the patched package"
    for test, error, is_notice in found["failures"]:
        return (
            is_notice,
            f"{test}: {error}" if is_notice else f"{test} has broken: {error}",
        )
    return False, f"{found['passed']} tests passed, the bug was not noticed"


# Building


def _build(patch: Patch, top: Path) -> None:
    """Make the compiled modules anew that the patch names. Raises PatchError."""
    touched = [hunk.file for hunk in patch.hunks if hunk.file.endswith(COMPILED)]
    if touched and not patch.builds:
        raise PatchError(f"{touched[0]} is compiled, but no line says 'Builds: ...'")
    if not patch.builds:
        return
    core = top / "txnkafka" / "_core"
    made = BUILT / _key(patch, core)
    if not made.is_dir():
        _compile(patch, top, core)
        fresh = Path(tempfile.mkdtemp(dir=_parent(made)))
        for name in patch.builds:
            shutil.copy2(_library(core, name), fresh)
        fresh.rename(made)
    for library in made.iterdir():
        shutil.copy2(library, core)


def _key(patch: Patch, core: Path) -> str:
    """What the result depends on."""
    digest = hashlib.sha256(" ".join([sys.version, *patch.builds]).encode())
    for path in [ROOT / "setup.py", *sorted(core.iterdir())]:
        if path.suffix in (".py", *COMPILED):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def _compile(patch: Patch, top: Path, core: Path) -> None:
    for source in core.glob("*.pyx"):
        if source.stem not in patch.builds:
            source.unlink()
    for name in patch.builds:
        _library(core, name).unlink()
    shutil.copy2(ROOT / "setup.py", top)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PatchError(f"it cannot be compiled: {(done.stdout + done.stderr)[-2000:]}")


def _library(core: Path, name: str) -> Path:
    found = list(core.glob(f"{name}.*.so"))
    if len(found) != 1:
        raise PatchError(f"there is no compiled module {name}")
    return found[0]


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.parent

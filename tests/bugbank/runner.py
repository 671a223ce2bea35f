"""Applies a bug to a copy of the checkout, and runs the tests that must notice it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.bugbank.patches import Patch, PatchError, Witness
from tests.bugbank.witness import REPORT

__all__ = [
    "LIMIT_SECONDS",
    "ROOT",
    "Failure",
    "Outcome",
    "first_failure",
    "limit_of",
    "prepared",
    "run",
    "wrong_package",
]

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "bugbank"
LIMIT_SECONDS = 60
SPARK_LIMIT_SECONDS = 180  # starting a session and its workers takes time
COMPILED = (".pyx", ".pxd", ".h")
PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "tests.bugbank.witness")
COPIED = ("txnkafka", "tests")  # tests find the checkout, and pass it to Spark's workers, by their own path
NOTES = "TXNKAFKA_BUGBANK_NOTES"
SIZES = {f"TXNKAFKA_{name}" for name in ("LONG", "BRIEF", "EXAMPLES", "CRASH_STATES", "KILLS")}
# runs at the start of every process that has the copy on its path
SITECUSTOMIZE = f"""
import os, sys
from importlib.machinery import PathFinder

class Noter:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "txnkafka":
            with open(os.environ["{NOTES}"], "a") as notes:
                notes.write(f"{{os.getpid()}} {{PathFinder.find_spec(name).origin}}\\n")

sys.meta_path.insert(0, Noter)
"""


class Outcome(NamedTuple):
    """Whether the bug was noticed, the failure or the reason, and the time it took."""

    is_caught: bool
    text: str
    seconds: float = 0.0


class Failure(NamedTuple):
    """The first failure of a run of pytest: the test, and for each of its errors the message and whether the
    program seems to be broken. Without a test, ``reason`` says why there is none."""

    test: str
    errors: list[tuple[str, bool]]
    seconds: float
    reason: str = ""


def limit_of(witness: Witness) -> float:
    """Return the seconds within which a test must notice its bug."""
    return SPARK_LIMIT_SECONDS if witness.arguments.startswith("tests/spark/") else LIMIT_SECONDS


def run(patch: Patch, *, limit_seconds: float | None = None) -> Outcome:
    """Run the tests; returns the outcome of the first one that does not notice the bug, or of the last
    one."""
    seconds = 0.0
    outcome = Outcome(False, "no test is named")
    try:
        with prepared(patch) as top:
            for witness in patch.caught_by:
                failure = first_failure(top, witness.arguments, limit_seconds or limit_of(witness))
                seconds += failure.seconds
                outcome = _judge(witness, failure)
                if not outcome.is_caught:
                    break
    except PatchError as error:
        return Outcome(False, f"the patch does not apply: {error}")
    return outcome._replace(seconds=seconds)


def _judge(witness: Witness, failure: Failure) -> Outcome:
    if not failure.test:
        return Outcome(False, f"{witness.arguments}: {failure.reason}")
    heard = "\n".join(words for words, _ in failure.errors)
    where = f"{witness.arguments}: {failure.test}"
    if witness.says is None:
        return Outcome(False, f"{where}: no line Says what it must say; it said {heard}")
    if not any(re.search(witness.says, words) for words, _ in failure.errors):
        return Outcome(False, f"{where} says not {witness.says!r} but {heard}")
    return Outcome(True, f"{where}: {heard[:300]}")


# The copy of the checkout


@contextmanager
def prepared(patch: Patch) -> Iterator[Path]:
    """Copy the checkout and apply the bug; other directories are linked. Raises PatchError."""
    with tempfile.TemporaryDirectory(prefix="txnkafka-bug-") as directory:
        top = Path(directory).resolve()
        for each in ROOT.iterdir():
            if each.name in COPIED:
                shutil.copytree(each, top / each.name, copy_function=shutil.copy2)
            elif not each.name.startswith("."):
                (top / each.name).symlink_to(each)
        (top / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
        _build(patch, patch.apply(top), top)
        yield top


# Running the tests


def first_failure(top: Path, arguments: str, limit_seconds: float) -> Failure:
    """Run pytest in the copy; all of its processes use the package of the copy."""
    report, output, notes = (top / f"bugbank.{name}" for name in ("json", "output", "notes"))
    report.unlink(missing_ok=True)
    notes.unlink(missing_ok=True)
    # not below the directory of all runs, of which pytest removes what others have left: that takes minutes
    command = [sys.executable, *PYTEST, f"--basetemp={top / 'bugbank.files'}", *shlex.split(arguments)]
    began = time.monotonic()
    with output.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=top,
            env=_environment(top, report, notes),
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Failure("", [], limit_seconds, f"nothing was noticed in {limit_seconds} s")
    failure = _read_report(top, report, notes)._replace(seconds=time.monotonic() - began)
    tail = "" if failure.test else "\n" + output.read_text(encoding="utf-8", errors="replace")[-2000:]
    return failure._replace(reason=failure.reason + tail)


def _environment(top: Path, report: Path, notes: Path) -> dict[str, str]:
    """Return an environment with the copy and without the checkout; the tests have their ordinary size."""
    environment = {key: value for key, value in os.environ.items() if key not in SIZES}
    ours = {"PYTHONPATH": str(top), REPORT: str(report), NOTES: str(notes)}
    return environment | ours | {"HYPOTHESIS_STORAGE_DIRECTORY": str(top)}


def _read_report(top: Path, report: Path, notes: Path) -> Failure:
    if not report.exists():
        return Failure("", [], 0.0, "the tests did not run")
    found = json.loads(report.read_text(encoding="utf-8"))
    noted = notes.read_text(encoding="utf-8") if notes.exists() else ""
    if reason := wrong_package(top, found, noted):
        return Failure("", [], 0.0, reason)
    for failure in found["failures"]:
        if failure["when"] != "call":
            return Failure("", [], 0.0, f"{failure['test']} failed in its {failure['when']}")
        return Failure(failure["test"], [(words, broken) for words, broken in failure["errors"]], 0.0)
    return Failure("", [], 0.0, f"{found['passed']} tests passed, the bug was not noticed")


def wrong_package(top: Path, found: dict[str, Any], noted: str) -> str:
    """Return why some process may not have used the copy's package; empty when all did.

    ``noted`` has a line "PROCESS PATH" for each process that imported a package of that name.

    A process reports where it found the package only when it has the copy on its path, so at least one of
    Spark's workers must have reported.
    """
    lines = (line.split(" ", 1) for line in noted.splitlines())
    seen = {int(process): Path(origin) for process, origin in lines}
    for package in (Path(found["package"]), *seen.values()):
        if not package.is_relative_to(top):
            return f"{package} was tested, not the patched package"
    if found["has_workers"] and not seen.keys() - {found["process"]}:
        return "no Python worker of Spark's had the patched package"
    return ""


# Compiling


def _build(patch: Patch, changed: list[Path], top: Path) -> None:
    """Compile the modules that the patch names. Raises PatchError."""
    touched = [path.name for path in changed if path.suffix in COMPILED]
    if touched and not patch.builds:
        raise PatchError(f"{touched[0]} is compiled, but no line says 'Builds: ...'")
    if not patch.builds:
        return
    core = top / "txnkafka" / "_core"
    made = BUILT / _key(patch, core)
    if not made.is_dir():
        with tempfile.TemporaryDirectory(prefix="txnkafka-bug-") as workshop:
            libraries = _compile(patch, top, Path(workshop))
            fresh = Path(tempfile.mkdtemp(dir=_parent(made)))
            for library in libraries:
                shutil.copy2(library, fresh)
        fresh.rename(made)
    for library in made.iterdir():
        shutil.copy2(library, core)


def _key(patch: Patch, core: Path) -> str:
    """Return a key of everything that the compiled modules depend on."""
    digest = hashlib.sha256(" ".join([sys.version, *patch.builds]).encode())
    for path in [ROOT / "setup.py", *sorted(core.iterdir())]:
        if path.suffix in (".py", *COMPILED):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def _compile(patch: Patch, top: Path, workshop: Path) -> list[Path]:
    """Compile the modules outside of ``top``, whose build directory is the checkout's."""
    shutil.copytree(top / "txnkafka", workshop / "txnkafka")
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, workshop)
    (workshop / "ci").symlink_to(ROOT / "ci")  # setup.py asks ci/build_backend.py
    core = workshop / "txnkafka" / "_core"
    for source in core.glob("*.pyx"):
        if source.stem not in patch.builds:
            source.unlink()
    for name in patch.builds:
        _library(core, name).unlink()
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=workshop, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PatchError(f"it cannot be compiled: {(done.stdout + done.stderr)[-2000:]}")
    return [_library(core, name) for name in patch.builds]


def _library(core: Path, name: str) -> Path:
    found = list(core.glob(f"{name}.*.so"))
    if len(found) != 1:
        raise PatchError(f"there is no compiled module {name}")
    return found[0]


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.parent

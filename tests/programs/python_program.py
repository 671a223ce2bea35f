"""Programs in Python, in separate virtual environments."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.client_suites.suite import NotFetchedError, fetch
from tests.conformance.maven import BUILD

__all__ = ["prepared", "python_of"]

INTERPRETERS = (sys.executable, "python3.14", "python3.13", "python3.12")


def python_of(requirement: str) -> str:
    """The interpreter of the environment in which a requirement such as ``faust-streaming==0.15.3`` is."""
    return str(BUILD / "programs" / requirement.replace("==", "-") / "bin" / "python")


def prepared(requirement: str, oldest: tuple[int, int]) -> None:
    """Make the environment, unless it exists, with the first interpreter that is not too old. Raises
    NotFetchedError."""
    python = Path(python_of(requirement))
    environment = python.parents[1]
    stamp = environment / "prepared"
    if stamp.exists():
        return
    shutil.rmtree(environment, ignore_errors=True)
    environment.parent.mkdir(parents=True, exist_ok=True)
    fetch([_interpreter(oldest), "-m", "venv", str(environment)], cwd=environment.parent)
    fetch([str(python), "-m", "pip", "install", "--quiet", requirement], cwd=environment.parent)
    stamp.touch()


def _interpreter(oldest: tuple[int, int]) -> str:
    check = f"import sys, venv; sys.exit(sys.version_info < {oldest})"
    for name in INTERPRETERS:
        if (found := shutil.which(name)) is not None:
            try:
                fetch([found, "-c", check], cwd=BUILD)
            except NotFetchedError:
                continue
            return found
    raise NotFetchedError(f"there is no Python {'.'.join(map(str, oldest))} or newer on the PATH")

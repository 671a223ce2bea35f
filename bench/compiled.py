"""The programs in C and Go, compiled when they are used for the first time and when their source changed."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from bench.java import BUILD

__all__ = ["c_program", "go_program"]

HERE = Path(__file__).resolve().parent
PROGRAMS = BUILD / "bench" / "programs"


@functools.cache
def c_program(name: str) -> Path:
    """``bench/c/NAME.c``, compiled with cc. Raises RuntimeError with what the compiler says."""
    source, program = HERE / "c" / f"{name}.c", PROGRAMS / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC", "cc")
        said = _said(compiler, "-O2", "-o", str(program), str(source), "-lpthread")
        if said is not None:
            raise RuntimeError(f"{source} cannot be compiled: {said}")
    return program


@functools.cache
def go_program() -> Path | str:
    """``bench/go``, built with the modules that go.sum pins; or why it could not be."""
    if shutil.which("go") is None:
        return "there is no go (https://go.dev/dl)"
    program = PROGRAMS / "kfake"
    said = _said("go", "build", "-o", str(program), ".", directory=HERE / "go")
    return program if said is None else f"go build failed: {said}"


def _said(*command: str, directory: Path = HERE) -> str | None:
    """The last line of what a command said when it failed; None when it did not."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]

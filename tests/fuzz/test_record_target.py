"""The walk over records as a C program of its own: half a million inputs in seconds, and faults are seen.

The proof: a copy of the headers with one bound shortened by a byte must not survive the same run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import BRIEF, LONG
from tests.fuzz.campaign import CORPUS
from tests.fuzz.test_fuzz import SECONDS, SEED

CORE = Path(__file__).resolve().parents[2] / "txnkafka" / "_core"
SOURCE = Path(__file__).with_name("record_target.c")
SANITIZE = ["-O1", "-g", "-fno-sanitize-recover=undefined", "-fsanitize=address,undefined"]
ITERATIONS = 20_000_000 if LONG else 100_000 if BRIEF else 500_000
PLANTED_ITERATIONS = 300_000

# Not each bound is the only one: a key or value past its record meets the next check before it is read.
PLANTED = {
    "a record past its batch": ("record.h", "length > end - start)", "length > end - start + 1)"),
    "no room for the last two fields": ("record.h", "left < key_bytes + (ptrdiff_t)2", "left < key_bytes"),
    "a varint past the end": ("varint.h", "if (p >= end) return NULL;", "if (p > end) return NULL;"),
    "a copy in blocks at the end": ("record.h", "limit - stop >= COLUMN_SLACK", "limit - stop >= 0"),
    "a look ahead too short": ("record.h", "#define RECORD_LOOKAHEAD 64", "#define RECORD_LOOKAHEAD 2"),
    "a header value past its record": (
        "record.h", "if (value_length > stop - p) return", "if (value_length > stop - p + 1) return",
    ),
    "a bitmap too long": ("record.h", "(capacity + 7) / 8", "(capacity + 200) / 8"),
}  # fmt: skip
# The others are for long runs: each is compiled, which takes seconds.
CHOSEN = list(PLANTED) if LONG else list(PLANTED)[: 1 if BRIEF else 2]


def environment() -> dict[str, str]:
    """Without what is preloaded into this Python."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ASAN_OPTIONS")}


def build(folder: Path, headers: Path) -> Path:
    program = folder / "record_target"
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, *SANITIZE, "-I", str(headers), str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True, env=environment())
    return program


def walk(program: Path, iterations: int) -> subprocess.CompletedProcess[str]:
    seeds = sorted(map(str, (CORPUS / "record").iterdir()))
    command = [str(program), str(SEED), str(iterations), *seeds]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=3600)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("record"), CORE)


def test_no_fault_and_enough_is_accepted(program: Path, tell: list[str]) -> None:
    done = walk(program, ITERATIONS)
    tell.append(f"seed {SEED}, record_target.c: {done.stdout.strip() or 'failed'}")
    assert (done.returncode, done.stderr) == (0, "")
    walked, accepted = (int(word) for word in done.stdout.split() if word.isdigit())
    assert walked == ITERATIONS
    assert 10 * accepted > walked


@pytest.mark.parametrize("fault", CHOSEN)
def test_a_bound_that_is_one_short_does_not_survive(fault: str, tmp_path: Path) -> None:
    name, bound, shortened = PLANTED[fault]
    for header in CORE.glob("*.h"):
        shutil.copy(header, tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert bound in text
    (tmp_path / name).write_text(text.replace(bound, shortened), encoding="utf-8")
    done = walk(build(tmp_path, tmp_path), PLANTED_ITERATIONS)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr or "not so" in done.stderr


def libfuzzer(folder: Path) -> Path | None:
    """The same target with libFuzzer, where a clang with it is installed."""
    clang, program = shutil.which("clang"), folder / "record_fuzzer"
    if clang is None:
        return None
    options = ["-O1", "-g", "-DTXNKAFKA_LIBFUZZER", "-fsanitize=fuzzer,address,undefined"]
    command = [clang, *options, "-I", str(CORE), str(SOURCE), "-o", str(program)]
    return program if subprocess.run(command, env=environment()).returncode == 0 else None


def test_coverage_leads_nowhere_bad_either(tmp_path: Path, tell: list[str]) -> None:
    found = libfuzzer(tmp_path)
    if found is None:
        tell.append(
            "left out: libFuzzer on record_target.c: no clang with it (Debian: clang libclang-rt-dev)"
        )
        return
    seconds = int(SECONDS) if LONG else 5
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    options = [f"-seed={SEED}", f"-max_total_time={seconds}", "-timeout=10", f"-artifact_prefix={tmp_path}/"]
    command = [str(found), *options, str(fresh), str(CORPUS / "record")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    last = done.stderr.splitlines()[-1:] or ["failed"]
    tell.append(f"seed {SEED}, libFuzzer on record_target.c: {last[0]}")
    assert done.returncode == 0, done.stderr[-4000:]

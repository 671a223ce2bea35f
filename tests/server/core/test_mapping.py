"""Mappings of files that become shorter: a read never ends the process, and the change is detected.

Tests that could end the process run in other processes.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from txnkafka._core.mapping import Mapping

PAGE = mmap.PAGESIZE
HEAD = """
import ctypes, faulthandler, mmap, os, signal, sys
from txnkafka._core.mapping import Mapping
path = sys.argv[1]
size = 64 * mmap.PAGESIZE

def mapping():
    with open(path, "wb") as file:
        file.write(b"x" * size)
    with open(path, "rb") as file:
        return Mapping(file.fileno(), size)

def is_zero_behind(view, end):
    return bytes(view) == b"x" * end + bytes(size - end)
"""
FOREIGN = """
with open(path + "-other", "wb+") as file:
    file.write(b"x" * size)
    file.flush()
    other = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
os.truncate(path + "-other", 0)
"""


# an emulator can only be executed by its wrapper, which ci/pytest names
PYTHON = os.environ.get("PYTEST_PYTHON", sys.executable)


def run(path: Path, program: str, *python: str) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-P", *python, "-c", HEAD + program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def made(path: Path, size: int) -> Mapping:
    path.write_bytes(b"x" * size)
    with path.open("rb") as file:
        return Mapping(file.fileno(), size)


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, PAGE + 1, 10 * PAGE])
def test_reads_the_file(tmp_path: Path, size: int) -> None:
    mapping = made(tmp_path / "f", size)
    assert bytes(mapping.read(0, size)) == b"x" * size
    assert len(mapping.read(size - 1, 100)) == 1
    assert len(mapping) == mapping.size == size
    assert not mapping.changed()
    assert mapping.read(0, 1).readonly


@pytest.mark.parametrize("left", [0, 1, PAGE, 3 * PAGE + 17, 10 * PAGE - 1])
def test_bytes_that_were_truncated_are_zero(tmp_path: Path, left: int) -> None:
    mapping = made(tmp_path / "f", 10 * PAGE)
    view = mapping.read(0, 10 * PAGE)
    os.truncate(tmp_path / "f", left)
    assert mapping.changed()
    assert bytes(view) == b"x" * left + bytes(10 * PAGE - left)
    assert mapping.changed()


def test_what_is_written_into_the_file_is_noticed(tmp_path: Path) -> None:
    mapping = made(tmp_path / "f", PAGE)
    with (tmp_path / "f").open("r+b") as file:
        file.write(b"y")
    assert mapping.changed()


def test_truncated_and_written_again_is_noticed(tmp_path: Path) -> None:
    mapping = made(tmp_path / "f", 2 * PAGE)
    os.truncate(tmp_path / "f", 0)
    os.truncate(tmp_path / "f", 2 * PAGE)
    assert mapping.changed()
    assert bytes(mapping.read(0, 2 * PAGE)) == bytes(2 * PAGE)


def test_a_view_keeps_the_mapping_and_its_guard(tmp_path: Path) -> None:
    view = made(tmp_path / "f", 4 * PAGE).read(0, 4 * PAGE)
    os.truncate(tmp_path / "f", PAGE)
    assert bytes(view) == b"x" * PAGE + bytes(3 * PAGE)


def test_many_mappings_are_guarded_and_given_back(tmp_path: Path) -> None:
    descriptors = len(os.listdir("/dev/fd"))
    for _ in range(2):
        mappings = [made(tmp_path / str(i), 2 * PAGE) for i in range(300)]
        for i in (0, 127, 128, 299):
            os.truncate(tmp_path / str(i), PAGE)
            assert bytes(mappings[i].read(0, 2 * PAGE)) == b"x" * PAGE + bytes(PAGE)
        assert sum(each.changed() for each in mappings) == 4
        del mappings
    assert len(os.listdir("/dev/fd")) == descriptors


@pytest.mark.parametrize("size", [0, -1])
def test_nothing_cannot_be_mapped(tmp_path: Path, size: int) -> None:
    with (tmp_path / "f").open("wb+") as file, pytest.raises(ValueError, match="cannot be mapped"):
        Mapping(file.fileno(), size)


def test_what_cannot_be_mapped_is_an_oserror(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with pytest.raises(OSError, match=r"No such device|Operation not supported|Invalid argument"):
        Mapping(reader, 10)
    os.close(reader)
    os.close(writer)
    with pytest.raises(OSError, match="Bad file descriptor"):
        Mapping(reader, 10)


def test_threads_that_read_while_the_file_is_truncated(tmp_path: Path) -> None:
    """Every reader gets the file's bytes or zeros, each time; the process survives."""
    size, wrong = 64 * PAGE, []
    for _ in range(30):
        mapping = made(tmp_path / "f", size)
        start = threading.Barrier(4)

        def read(mapping: Mapping = mapping, start: threading.Barrier = start) -> None:
            start.wait()
            for _ in range(5):
                if set(bytes(mapping.read(0, size))) - {0, ord("x")}:
                    wrong.append(mapping)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        start.wait()
        for end in range(size, -1, -7 * PAGE):
            os.truncate(tmp_path / "f", end)
        for thread in threads:
            thread.join()
        assert mapping.changed()
    assert not wrong


ENABLE = "faulthandler.enable()\n"
TRUNCATE = "os.truncate(path, 5)\n"
SHOW = 'sys.stdout.write(f"{is_zero_behind(view, 5)} {found.changed()}\\n")\n'
READ = "view = found.read(0, size)\n" + SHOW
OPEN = "found = mapping()\n"


@pytest.mark.parametrize(
    "steps",
    [
        (OPEN, TRUNCATE, READ),
        (ENABLE, OPEN, TRUNCATE, READ),
        (OPEN, ENABLE, TRUNCATE, READ),
        (OPEN, "view = found.read(0, size)\n", ENABLE, TRUNCATE, SHOW),
        (ENABLE, OPEN, "faulthandler.disable()\n", TRUNCATE, READ),
        (OPEN, "signal.signal(signal.SIGBUS, signal.SIG_DFL)\n", TRUNCATE, READ),
        (OPEN, "signal.signal(signal.SIGBUS, signal.SIG_IGN)\n", TRUNCATE, READ),
        (OPEN, TRUNCATE, "child = os.fork()\n", READ, "child and sys.exit(os.waitpid(child, 0)[1])\n"),
        (OPEN, "child = os.fork()\n", "not child and os.truncate(path, 5)\n",
         "child and os.waitpid(child, 0)\n", READ),
    ],
)  # fmt: skip
def test_survives(tmp_path: Path, steps: tuple[str, ...]) -> None:
    found = run(tmp_path / "f", "".join(steps))
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()) == {"True"}


@pytest.mark.parametrize("first", ["", ENABLE])
@pytest.mark.parametrize("then", ["", ENABLE, "found.read(0, 1)\n", ENABLE + "found.read(0, 1)\n"])
@pytest.mark.parametrize("fatal", [FOREIGN + "other[-1]\n", "signal.raise_signal(signal.SIGBUS)\n",
                                   "os.kill(os.getpid(), signal.SIGBUS)\n"])  # fmt: skip
def test_any_other_bus_error_ends_the_process(tmp_path: Path, first: str, then: str, fatal: str) -> None:
    found = run(tmp_path / "f", first + OPEN + then + fatal + "print('still here')\n")
    assert found.returncode == -signal.SIGBUS
    assert found.stdout == ""
    assert ("Fatal Python error: Bus error" in found.stderr) == (ENABLE in (first, then[: len(ENABLE)]))


def test_a_previous_handler_gets_other_signals(tmp_path: Path) -> None:
    program = "signal.signal(signal.SIGBUS, lambda *_: print('heard'))\n" + OPEN + TRUNCATE + READ
    found = run(tmp_path / "f", program + "signal.raise_signal(signal.SIGBUS)\n")
    assert (found.returncode, found.stdout) == (0, "True True\nheard\n")


def test_this_run_would_show_a_fault() -> None:
    """pytest enables faulthandler, so it is also active in the tests above that run in this process."""
    assert faulthandler.is_enabled()

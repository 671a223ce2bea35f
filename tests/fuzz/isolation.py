"""Runs a target in a child process, so that an input which kills it, hangs or eats the memory is known.

The child notes each input in memory that it shares with its parent before it tries it. A sanitizer ends the
child with a report on stderr; the parent then has the input, and the other targets go on.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NoReturn

from tests.fuzz.engine import MAX_INPUT_BYTES, Failure, Limits, Report, Target, fuzz

__all__ = ["MEMORY_LIMIT_BYTES", "SECONDS_AN_INPUT", "fuzz_isolated"]

SECONDS_AN_INPUT = 30.0
# A batch may become 256 MiB; the address sanitizer keeps as much of freed memory.
MEMORY_LIMIT_BYTES = 1 << 30

_NOTE = struct.Struct("<qq")
KILOBYTE = 1024  # the unit of ru_maxrss on Linux


class TooMuchMemoryError(Exception):
    """One input made the process grow beyond the limit."""


class _Watch:
    """Notes each input, and gives it a time and a memory limit."""

    def __init__(self, notes: mmap.mmap, seconds: float, memory: int) -> None:
        self._notes = notes
        self._seconds = seconds
        self._most = _memory() + memory

    def __call__(self, iteration: int, content: bytes) -> None:
        if _memory() > self._most:
            raise TooMuchMemoryError("the input before this one made the process too large")
        self._notes[_NOTE.size : _NOTE.size + len(content)] = content
        self._notes[: _NOTE.size] = _NOTE.pack(iteration, len(content))
        signal.setitimer(signal.ITIMER_REAL, self._seconds)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE


def fuzz_isolated(
    target: Target,
    corpus: Sequence[bytes],
    seed: int,
    limits: Limits,
    *,
    seconds_an_input: float = SECONDS_AN_INPUT,
    memory: int = MEMORY_LIMIT_BYTES,
) -> Report:
    """As ``fuzz``, in a child; if the child dies, the failure is the input it was at."""
    notes = mmap.mmap(-1, _NOTE.size + max([MAX_INPUT_BYTES, *map(len, corpus)]))
    watch = _Watch(notes, seconds_an_input, memory)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(lambda: fuzz(target, corpus, seed, limits, watch), writer)
    os.close(writer)
    with open(reader, "rb") as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    if status == 0 and answer:
        return _unpacked(answer)
    iteration, size = _NOTE.unpack_from(notes)
    content = notes[_NOTE.size : _NOTE.size + size]
    return Report(iteration, failure=Failure(iteration, content, _death(status, answer.decode())))


def _child(run: Callable[[], Report], writer: int) -> NoReturn:
    """Everything ends here: the child must not go on as a second test run."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        answer, status = _packed(run()), 0
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}".encode()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with open(writer, "wb") as answers:
            answers.write(answer)
        os._exit(status)


def _death(status: int, answer: str) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return "took too long"
    if code < 0:
        return f"killed the process: {signal.Signals(-code).name}"
    return answer or f"ended the process with status {code}; a sanitizer's report stands on stderr"


def _packed(report: Report) -> bytes:
    failure = report.failure
    packed = None if failure is None else [failure.iteration, failure.content.hex(), failure.text]
    return json.dumps([report.executions, report.labels, packed]).encode()


def _unpacked(answer: bytes) -> Report:
    executions, labels, packed = json.loads(answer)
    failure = None
    if packed is not None:
        failure = Failure(packed[0], bytes.fromhex(packed[1]), packed[2])
    return Report(executions, Counter(labels), failure)

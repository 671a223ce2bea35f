"""Runs a target in a child process, so that an input which kills it, hangs or eats the memory is known.

The child notes each input in memory that it shares with its parent before it tries it. A sanitizer ends the
child with a report on stderr; the parent then has the input, and the other targets go on.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from tests.fuzz.engine import MAX_INPUT_BYTES, Failure, Limits, Report, Target, fuzz

__all__ = ["MEMORY_AN_INPUT", "SECONDS_AN_INPUT", "fuzz_isolated"]

CPU_SECONDS_AN_INPUT = 10.0  # of a process with sanitizers, which is several times slower
SECONDS_AN_INPUT = 60.0  # for what waits and computes nothing
MEMORY_AN_INPUT = 384 << 20  # 256 MiB is what a batch may become; the sanitizer keeps some freed memory

_NOTE = struct.Struct("<qq")
KILOBYTE = 1024


class TooMuchMemoryError(Exception):
    """One input made the process grow beyond the limit."""


class _Watch:
    """Notes each input before it is tried, and limits its time and memory; the input before has ended."""

    def __init__(self, notes: mmap.mmap, seconds: float, memory: int) -> None:
        self._notes = notes
        self._seconds = seconds
        self._memory = memory
        self._before: int | None = None

    def __call__(self, iteration: int, content: bytes) -> None:
        self.check_memory()
        self._notes[_NOTE.size : _NOTE.size + len(content)] = content
        self._notes[: _NOTE.size] = _NOTE.pack(iteration, len(content))
        _forget_peak()
        self._before = _kilobytes("VmRSS")
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        signal.setitimer(signal.ITIMER_PROF, min(self._seconds, CPU_SECONDS_AN_INPUT))

    def check_memory(self) -> None:
        """Raises TooMuchMemoryError when the input that was noted last took more than it may."""
        if self._before is not None:
            grown = (_kilobytes("VmHWM") - self._before) * KILOBYTE
            if grown > self._memory:
                raise TooMuchMemoryError(
                    f"the input made the process {grown >> 20} MiB larger, {self._memory >> 20} are allowed"
                )


def _kilobytes(name: str) -> int:
    """A line of /proc/self/status; 0 where there is none, and so no limit."""
    with suppress(FileNotFoundError), open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))
    return 0


def _forget_peak() -> None:
    """From now on VmHWM is the most that the process has had since now; see proc(5)."""
    with suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def fuzz_isolated(
    target: Target,
    corpus: Sequence[bytes],
    seed: int,
    limits: Limits,
    *,
    seconds_an_input: float = SECONDS_AN_INPUT,
    memory: int = MEMORY_AN_INPUT,
) -> Report:
    """As ``fuzz``, in a child; if the child dies, the failure is the input it was at."""
    notes = mmap.mmap(-1, _NOTE.size + max([MAX_INPUT_BYTES, *map(len, corpus)]))
    watch = _Watch(notes, seconds_an_input, memory)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(lambda: _watched(watch, lambda: fuzz(target, corpus, seed, limits, watch)), writer)
    os.close(writer)
    with open(reader, "rb") as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    if status == 0 and answer:
        return _unpacked(answer)
    iteration, size = _NOTE.unpack_from(notes)
    content = notes[_NOTE.size : _NOTE.size + size]
    return Report(iteration, failure=Failure(iteration, content, _death(status, answer.decode())))


def _watched(watch: _Watch, run: Callable[[], Report]) -> Report:
    report = run()
    watch.check_memory()  # of the last input
    return report


def _child(run: Callable[[], Report], writer: int) -> NoReturn:
    """Everything ends here: the child must not go on as a second test run."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        answer, status = _packed(run()), 0
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}".encode(errors="backslashreplace")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        with open(writer, "wb") as answers:
            answers.write(answer)
        os._exit(status)


def _death(status: int, answer: str) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGALRM, -signal.SIGPROF):
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

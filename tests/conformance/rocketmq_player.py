"""Scripts of ``rocketmq_cases.py`` against RocketMQ: Java clients in a process of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Final

from tests.conformance.rocketmq import FAST, JVM_OPTIONS, PROGRAMS, RocketMQ, rocketmq_java
from tests.conformance.rocketmq_cases import (
    CRASH,
    LATE_MARKS,
    ORDINARY,
    RESUMED,
    Case,
    Result,
    commands,
)

__all__ = ["play_on_rocketmq"]

SECONDS: Final = 150  # for all results
LONG_MS: Final = 60_000


def play_on_rocketmq(directory: Path) -> Mapping[str, Result]:
    """The result of each script, by the name of its case."""
    with RocketMQ(directory) as rocketmq:
        player = _Player(rocketmq)
        try:
            results = player.play(*ORDINARY)
            rocketmq.kill()
            rocketmq.start(transactionOpBatchInterval=LONG_MS)
            results |= player.play(*LATE_MARKS)
            rocketmq.kill()
            rocketmq.start(transactionTimeOut=LONG_MS)
            results |= player.play(CRASH)
            return results | player.play(RESUMED)
        finally:
            player.close()


class _Player:
    """``RocketScript.java``."""

    def __init__(self, rocketmq: RocketMQ) -> None:
        program = str(PROGRAMS / "RocketScript.java")
        command = rocketmq_java(rocketmq.directory, program, rocketmq.address, jvm_options=JVM_OPTIONS)
        with (rocketmq.directory / "player.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._rocketmq = rocketmq
        self._answers: Queue[dict[str, Any]] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # RocketMQ's logging writes lines, too
                self._answers.put(json.loads(line))

    def _say(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def play(self, *cases: Case) -> dict[str, Result]:
        """The results of scripts that run at the same time; one with a crash runs alone."""
        for case in cases:
            self._say(case.name, "open", "known")
            for words in commands(case.script):
                if words == ["crash"]:
                    self._say(case.name, "reached")
                    assert "reached" in self._answer()
                    self._rocketmq.kill()
                    self._rocketmq.start(**FAST)
                else:
                    self._say(case.name, *words)
            self._say(case.name, "result")
        return {each.pop("script"): Result(**each) for each in (self._answer() for _ in cases)}

    def _answer(self) -> dict[str, Any]:
        answer = self._answers.get(timeout=SECONDS)
        assert "error" not in answer, answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

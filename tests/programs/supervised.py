"""``Supervised``: a program in a separate process group, started again whenever it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["Supervised"]

SECONDS = 60.0


class Supervised:
    """``starts`` and ``kills`` count. The output of all starts is in ``log``."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.starts = self.kills = 0
        self._command, self._log = list(command), log
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Start it unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()  # its children
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                cwd=self._log.parent,
            )  # fmt: skip

    def kill(self) -> None:
        """End it as a crash does."""
        self.close()
        self.kills += 1

    def close(self) -> None:
        """Kill all processes of the group."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(SECONDS)

    def end_of_log(self) -> str:
        """The last lines of its output."""
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""

"""The end of ``txnkafka serve``."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.serving import EVENT_LOOPS, EventLoop, serve_command

WITH_A_SLOW_CLOSE = """
import sys
from txnkafka.storage.data_directory import DataDirectory

def closes(self, close=DataDirectory.close):
    print("closing", flush=True)
    sys.stdin.readline()
    close(self)

DataDirectory.close = closes
"""


@pytest.mark.parametrize("event_loop", EVENT_LOOPS)
def test_further_signals_do_not_end_the_close(tmp_path: Path, event_loop: EventLoop) -> None:
    """It syncs all logs, which may take long, and the one who has asked for it may lose patience."""
    program, *arguments = serve_command(tmp_path / "data", 0, event_loop=event_loop)
    arguments = arguments[arguments.index("serve") :]
    without = "sys.modules['uvloop'] = None\n" if event_loop == "asyncio" else ""
    code = f"{WITH_A_SLOW_CLOSE}{without}sys.argv[0] = 'txnkafka'\nimport txnkafka.cli.program as p; p.main()"
    with subprocess.Popen(
        [program, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        assert serving.stdout.readline().startswith("listening on ")
        serving.send_signal(signal.SIGTERM)
        assert serving.stdout.readline() == "closing\n"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            serving.send_signal(number)
        with suppress(BrokenPipeError):  # of one that has ended
            serving.stdin.write("\n")
            serving.stdin.close()
        assert serving.wait(90) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()

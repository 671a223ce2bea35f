"""The signals that tests send arrive, however the tests were started."""

from __future__ import annotations

import subprocess
import sys

IN_THE_BACKGROUND = """
import signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
import tests.conftest
program = "import signal; print(*(signal.getsignal(each) for each in (signal.SIGINT, signal.SIGHUP)))"
subprocess.run([sys.executable, "-c", program], check=True)
signal.raise_signal(signal.SIGHUP)
print("the tests go on")
"""


def test_a_program_that_is_started_under_nohup_gets_sigint_and_sighup() -> None:
    command = [sys.executable, "-c", IN_THE_BACKGROUND]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    handlers, *rest = output.splitlines()
    assert "default_int_handler" in handlers
    assert handlers.endswith(("Handlers.SIG_DFL", " 0"))
    assert rest == ["the tests go on"]

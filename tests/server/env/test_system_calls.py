"""The calls that the file layer counts are the calls that the system gets: no write bypasses it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TRACE = ["strace", "-f", "-y", "-qq", "-e", "trace=%file,%desc,mmap"]
LOOKS = {"access", "close", "fstat", "getdents64", "lseek", "newfstatat", "readlink", "stat", "lstat"}
SYSTEM_CALLS = {
    "create": "openat",
    "open_to_write": "openat",
    "open": "openat",
    "list": "openat",
    "lock": "openat",
    "sync_directory": "openat",
    "read_into": "preadv",
    "write": "pwritev",
    "truncate": "ftruncate",
    "sync": "fdatasync",
    "rename": "rename",
    "make_directory": "mkdir",
    "set_modified_ms": "utimensat",
}
PROGRAM = """
import json, sys
from collections import Counter
from txnkafka.env import LocalDataFiles, make_directories, remove_tree, write_durably
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles

top, plan = sys.argv[1], FaultPlan()
files = FaultyFiles(LocalDataFiles(), plan)
lock = files.lock(f"{top}/.lock")
make_directories(files, f"{top}/a/b")
log = files.create(f"{top}/a/b/0.log")
for number in range(7):
    log.write(number * 3, [b"a", b"", b"bc"])
    log.read_into(memoryview(bytearray(3)), number * 3)
log.sync()
log.truncate(5)
log.sync()
log.close()
files.open_to_write(f"{top}/a/b/0.log").close()
files.set_modified_ms(f"{top}/a/b/0.log", 1)
for number in range(3):
    write_durably(files, f"{top}/a/note", b"content")
files.list(f"{top}/a")
files.open(f"{top}/a/note").close()
files.remove(f"{top}/a/note")
remove_tree(files, f"{top}/a")
lock.close()
calls = Counter()
for site, count in plan.calls.items():
    calls[site.call] += count
print(json.dumps(calls))
"""


def test_calls_that_are_counted_are_the_calls_of_the_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "top").mkdir()
    command = [*TRACE, "-o", str(trace), sys.executable, "-c", PROGRAM, str(tmp_path / "top")]
    reason = "there is no strace" if shutil.which("strace") is None else ""
    if not reason:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = run.stderr if "ptrace" in run.stderr or "PTRACE" in run.stderr else ""
    if reason:
        with capsys.disabled():
            print(f"\nsystem calls are not compared: {reason.strip()}")
        return
    assert run.returncode == 0, run.stderr
    assert system_calls(trace, str(tmp_path / "top")) == expected(Counter(json.loads(run.stdout)))


def system_calls(trace: Path, top: str) -> Counter[str]:
    """Count the calls on paths below ``top`` that do more than read metadata."""
    found: Counter[str] = Counter()
    for line in trace.read_text().splitlines():
        if top in line and (call := re.match(r"(?:\d+ +)?(\w+)\(", line)) and "execve(" not in line:
            name = {"pwritev2": "pwritev", "preadv2": "preadv", "fcntl": "lock"}.get(call[1], call[1])
            if name not in LOOKS and not (name == "lock" and "F_SETLK" not in line):
                found[name] += 1
    return found


def expected(calls: Counter[str]) -> Counter[str]:
    """Return the system calls that follow from the calls that the layer counted."""
    found: Counter[str] = Counter()
    for call, count in calls.items():
        if call != "remove":
            found[SYSTEM_CALLS[call]] += count
    found["fsync"] = calls["sync_directory"]
    found["lock"] = calls["lock"]
    # two directories, each refused once because it is not empty
    found["rmdir"] = 4
    found["unlink"] = calls["remove"] - found["rmdir"]
    return found

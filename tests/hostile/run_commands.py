"""Runs every command that takes a log directory, each in a child with limits on time and memory.

    python -m tests.hostile.run_commands DIRECTORY OUTPUT

Prints a JSON line for each command: its arguments, exit status (negative: the signal that ended it), seconds
of CPU, peak resident bytes, and its stderr.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from importlib import import_module
from pathlib import Path

SECONDS, BYTES = 300, 4 << 30  # limits that stop a command; those of the test are lower
DENSE_BYTES = 8 << 20
READERS = (
    "ls", "cat", "cat_partition", "lso", "lso_text", "show", "strip_text", "txns", "groups", "verify",
    "stats", "dump", "dump_files",
)  # fmt: skip
WRITERS = ("export", "export_run", "repair")
MODULES = (
    "txnkafka.cli.main",
    *(f"txnkafka.cli.{name}" for name in (*READERS, *WRITERS)),
    *("txnkafka.logdir.verify.report", "txnkafka.logdir.stats", "txnkafka.logdir.coordinator"),
    "txnkafka.storage.data_directory",
)
COMMANDS = (
    ("ls",),
    ("cat", "--format", "csv"),
    ("cat", "--format", "%t %p %o %T %k %s %K %S %R %h\\n", "--where", "offset >= 0 and length(value) > 0"),
    ("lso",),
    ("show",),
    ("txns",),
    ("groups",),
    ("verify",),
    ("stats",),
    ("export", "--to", "jsonl", "--partition-by", "none", "--threads", "1", "--output"),
    ("dump",),
    ("repair", "--dry-run"),
    ("repair",),
    ("repair", "--full", "--truncate-corrupt"),
    ("verify", "--level", "records"),
)


def run(words: list[str]) -> dict[str, object]:
    """Run one command in a child."""
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become(words, errors.fileno())
        status, usage = os.wait4(child, 0)[1:]
        errors.seek(0)
        text = errors.read(1 << 20).decode("utf-8", "replace")
    return {
        "command": " ".join(words),
        "status": os.waitstatus_to_exitcode(status),
        "seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "stderr": text,
    }


def _become(words: list[str], errors: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(errors, 2)
    import signal

    signal.alarm(SECONDS)
    os.environ["TXNKAFKA_TRACEBACK"] = "1"
    from txnkafka.cli.main import main

    try:
        main(words)
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 3)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    os._exit(99)


def _arguments(command: tuple[str, ...], directory: str, output: str) -> list[str]:
    if command[0] == "export":
        return [*command, output, directory]
    if command[0] == "dump":
        paths = (*Path(directory).glob("*"), *Path(directory).glob("*/*"))
        return [*command, *sorted(str(path) for path in paths if not _is_dense(path))]
    return [*command, directory]


def _is_dense(path: Path) -> bool:
    """Return whether ``dump`` would print millions of lines, which takes long in any case."""
    return path.is_file() and path.stat().st_blocks * 512 > DENSE_BYTES


def main() -> None:
    """Run all commands, the read-only ones first."""
    for module in MODULES:
        import_module(module)  # every child needs it
    directory, output = sys.argv[1:]
    for command in COMMANDS:
        print(json.dumps(run(_arguments(command, directory, output))), flush=True)


if __name__ == "__main__":
    main()

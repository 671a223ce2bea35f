"""The demo: a log directory that Apache Kafka wrote, read without a broker.

``payments`` is what a real broker left, ``consumed.json`` what Kafka's own Java consumer got of it
(record.py). It is shown on the command line and through Spark; the end compares the results. Before
Spark starts, a broker is killed (crash.py); afterwards, the driver of a Spark stream (pipeline.py).
"""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from demo.crash import after_a_kill
from demo.pipeline import a_driver_is_killed
from demo.spark_job import BY_HAND, IN_SQL, by_hand, in_sql, quiet_session
from demo.summary import Summary, show_summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Demo", "at_the_end", "main", "on_spark", "on_the_command_line"]

ROOT = Path(__file__).resolve().parent.parent
LOG_DIR, TOPIC = "demo/payments", "payments"
WIDTH = 96
NEXT = """\
This directory is in the checkout, and so is everything you have just seen:

    source .venv/bin/activate           # from now on the command is txnkafka
    txnkafka --help                     # every command has examples
    txnkafka show /var/lib/kafka/data   # your own broker's; it is only read
    txnkafka export demo/payments --topic payments --to parquet --output out
    txnkafka serve --data data --create-topic orders:3     # a broker
    txnkafka docs                       # the pages, from Python to serving
"""


class Demo:
    """Prints each step: what it is for, the command or the program, its answer."""

    def __init__(self) -> None:
        self.console = Console(width=min(WIDTH, Console().width), highlight=False)
        self._steps = 0

    def step(self, title: str, text: str = "") -> None:
        self._steps += 1
        self.console.print()
        self.console.print(Rule(f"[bold]{self._steps}  {title}[/]", align="left", style="cyan"))
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        self.console.print(text)

    def command(self, *arguments: str) -> None:
        """Run ``txnkafka`` and show what it prints on a terminal of this width."""
        self.console.print(f"\n[bold green]$ txnkafka {shlex.join(arguments)}[/]", soft_wrap=True)
        printed = run(*arguments, columns=self.console.width, is_coloured=self.console.is_terminal)
        self.console.print(Text.from_ansi(printed), soft_wrap=True)

    def program(self, source: str, answer: str) -> None:
        self.console.print()
        self.console.print(Syntax(source, "python", theme="ansi_dark", background_color="default"))
        self.console.print(Text(answer))


def run(*arguments: str, columns: int, is_coloured: bool) -> str:
    """What ``txnkafka`` prints on a terminal; exit status 1 is "there are findings", part of the answer."""
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 0, columns, 0, 0))
    environment = os.environ | ({} if is_coloured else {"NO_COLOR": "1"})
    command = [sys.executable, "-m", "txnkafka", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        printed = b"".join(iter(partial(read, ours), b"")).decode().replace("\r\n", "\n")
    os.close(ours)
    if process.returncode > 1 or not printed:
        said = printed or "it printed nothing"
        raise SystemExit(f"txnkafka {' '.join(arguments)} failed, status {process.returncode}:\n{said}")
    return printed.rstrip("\n")


def read(terminal: int) -> bytes:
    """What comes next, empty at the end: where the other side is closed, Linux says EIO."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def main() -> None:
    """Run all steps."""
    demo = Demo()
    on_the_command_line(demo)
    after_a_kill(demo, ROOT)
    demo.step("The same on Spark", "The filter runs in the executors; what is not wanted never leaves them.")
    demo.say("[dim]Starting Spark, which takes some seconds …[/]")
    with quiet_session(ROOT) as spark:
        counts = on_spark(demo, spark)
    a_driver_is_killed(demo, ROOT)
    at_the_end(demo, counts)


def on_the_command_line(demo: Demo) -> None:
    """Steps that run ``txnkafka``."""
    demo.say(
        "[bold]The log directory of a real broker, Apache Kafka 4.3.1, read without a broker.[/]\n"
        "Two programs wrote payments in transactions; some they committed, some they aborted. A third lost "
        "track of a partition, so that its transaction there never ends: what a broker that does not verify "
        "partitions lets in."
    )
    demo.step("What became of each offset?", "One strip a partition; the arrow is where consumers stop.")
    demo.command("show", LOG_DIR, "--topic", TOPIC)
    first = ("--topic", TOPIC, "--partition", "0")
    demo.step(
        "What does a read_committed consumer get of partition 0?",
        "Offsets 4 and 10 were aborted, others are markers: all left out. The last stable offset ends it.",
    )
    demo.command("cat", LOG_DIR, *first, "--format", "%o  %k  %s\\n")
    demo.step("Why does it end there?", "The partition's log and the transaction coordinator's log, joined.")
    demo.command("lso", LOG_DIR, *first)
    demo.step("Who waits for it?", "The offsets of groups, and how far they can get.")
    demo.command("groups", LOG_DIR)
    demo.step("Is it sound?", "Checksums, offsets, sequences; indexes and snapshots against the log.")
    demo.command("verify", LOG_DIR)


def on_spark(demo: Demo, spark: SparkSession) -> dict[str, dict[int, int]]:
    """Both programs; returns the records that Spark counted, by isolation level and partition."""
    path = str(ROOT / LOG_DIR)
    counts = by_hand(spark, path)
    demo.program(BY_HAND, f"records by partition, read_committed: {counts['read_committed']}")
    demo.program(IN_SQL, in_sql(spark, path))
    return counts


def at_the_end(demo: Demo, counts: dict[str, dict[int, int]]) -> None:
    """What was committed, what was hidden, what Kafka's own consumer got; and what to do next."""
    demo.step("Summary")
    show_summary(demo.console, Summary(str(ROOT / LOG_DIR), TOPIC, counts))
    demo.step("What next")
    demo.console.print(Text(NEXT.rstrip()))

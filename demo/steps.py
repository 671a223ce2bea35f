"""The demo: a log directory that Apache Kafka wrote, read without a broker.

The directory is one of the recorded cases of tests/golden, together with what Kafka's own Java consumer got
of it. It is shown on the command line and through Spark; the end compares all of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from demo.spark_job import BY_HAND, IN_SQL, by_hand, in_sql, quiet_session
from demo.summary import Summary, show_summary
from tests.golden.cases import Case, case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Demo", "at_the_end", "main", "on_spark", "on_the_command_line"]

ROOT = Path(__file__).resolve().parent.parent
LOG_DIR = "build/demo/kafka-logs"
TOPIC = "hang"
WIDTH = 96


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
        """Run ``txnkafka`` and show what it prints; records are cut, other long lines folded."""
        self.console.print(f"\n[bold green]$ txnkafka {' '.join(arguments)}[/]", soft_wrap=True)
        for line in run(*arguments).splitlines():
            self.console.print(Text(self._cut(line) if "@" in line.split(" ")[0] else self._folded(line)))

    def _cut(self, line: str) -> str:
        text = Text(line)
        text.truncate(self.console.width, overflow="ellipsis")
        return text.plain

    def _folded(self, line: str) -> str:
        if len(line) <= self.console.width:
            return line  # textwrap would change the spaces of a table
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        return textwrap.fill(line, self.console.width, subsequent_indent=indent, break_on_hyphens=False)

    def program(self, source: str, answer: str) -> None:
        self.console.print()
        self.console.print(Syntax(source, "python", theme="ansi_dark", background_color="default"))
        self.console.print(Text(answer))


def run(*arguments: str) -> str:
    """What ``txnkafka`` answers; exit status 1 is "there are findings", which is part of the answer."""
    command = [sys.executable, "-m", "txnkafka.cli.main", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(f"txnkafka {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout + done.stderr


def copy_of(recorded: Case) -> None:
    """A short path reads better, and nobody will change the recorded files."""
    target = ROOT / LOG_DIR
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(recorded.logs, target)


def main() -> None:
    """Run all steps."""
    recorded, demo = case("hanging"), Demo()
    on_the_command_line(demo, recorded)
    demo.step("The same on Spark", "The filter runs in the executors; what is not wanted never leaves them.")
    demo.say("[dim]Starting Spark, which takes some seconds …[/]")
    with quiet_session(ROOT) as spark:
        counts = on_spark(demo, spark)
    at_the_end(demo, recorded, counts)


def on_the_command_line(demo: Demo, recorded: Case) -> None:
    """Steps that run ``txnkafka``."""
    copy_of(recorded)
    demo.say(
        f"[bold]The log directory of a real broker, Apache Kafka {recorded.meta['kafka_version']}, read "
        "without a broker.[/]\n"
        "Two producers wrote transactions into three partitions of a topic; some were committed, some "
        "aborted. Three more each sent one batch too late, after their transaction had ended: what a "
        "broker that does not verify partitions lets in, and never closes."
    )
    partition = ("--topic", TOPIC, "--partition", "0")
    demo.step("What is there?", "One row a partition: where its log starts and ends, how far it is stable.")
    demo.command("ls", LOG_DIR)
    demo.step("Is it sound?", "Checksums, offsets, sequences; indexes and snapshots against the log.")
    demo.command("verify", LOG_DIR)
    demo.step(
        "What does a read_committed consumer get of partition 0?",
        "Offsets 10 and 11 were aborted, 9 and 12 are markers: all left out. The last stable offset ends it.",
    )
    demo.command("cat", LOG_DIR, *partition, "--format", "text")
    demo.step(
        "Why does it end there?",
        "The log and the transaction coordinator's log, joined; --now is when the directory was recorded.",
    )
    demo.command("lso", LOG_DIR, *partition, "--now", str(recorded.recorded_at_ms))


def on_spark(demo: Demo, spark: SparkSession) -> dict[str, dict[int, int]]:
    """Both programs; returns the records that Spark counted, by isolation level and partition."""
    path = str(ROOT / LOG_DIR)
    counts = by_hand(spark, path)
    demo.program(BY_HAND, f"records by partition, read_committed: {counts['read_committed']}")
    demo.program(IN_SQL, in_sql(spark, path))
    return counts


def at_the_end(demo: Demo, recorded: Case, counts: dict[str, dict[int, int]]) -> None:
    """What was committed, what was hidden, where the log is held."""
    clock = str(recorded.recorded_at_ms)
    stuck = json.loads(run("lso", LOG_DIR, "--topic", TOPIC, "--now", clock, "--format", "json"))
    demo.step("Summary")
    show_summary(demo.console, Summary(str(ROOT / LOG_DIR), TOPIC, recorded, counts, stuck))

"""The Java side: Apache Kafka's own classes, fetched by Maven, driven over a pipe.

Each side has its own Java process, so that the profile of one workload does not affect the machine code of
another. The collector is that of Kafka's start scripts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.digest import Digest
from bench.harness import DisagreementError, Timing
from tests.conformance.maven import kafka_jars, rocketmq_jars, spark_kafka_jars

__all__ = ["JavaHeadersSide", "JavaProcess", "JavaSide", "class_path", "dump_log_segments", "prepare"]

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
CLASSES = BUILD / "bench" / "classes"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
COLLECTOR = ["-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
# Fixed and touched beforehand, else the first use of memory is charged to a random round.
MEMORY = ["-Xms448m", "-Xmx448m", "-Xmn160m", "-XX:+AlwaysPreTouch"]
TOOL_OPTIONS = [
    "-Xmx256M",
    *COLLECTOR,
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
]
WARM_SECONDS = 1.5
WARM_PASSES = 5


def class_path() -> str:
    return f"{CLASSES}:{kafka_jars()}/*"


def prepare() -> None:
    """Fetch the jars of Kafka, RocketMQ and Spark's Kafka source, and compile our Java files, unless this is
    done."""
    if shutil.which("javac") is None:
        raise SystemExit("the benchmarks need a JDK 17: there is no javac (apt install openjdk-17-jdk)")
    try:
        libraries = f"{kafka_jars()}/*:{rocketmq_jars()}/*"
        spark_kafka_jars()
    except RuntimeError as error:
        raise SystemExit(str(error)) from None
    sources = sorted((HERE / "java" / "src").glob("*.java"))
    newest = max(source.stat().st_mtime for source in sources)
    stamp = CLASSES / "Bench.class"
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        CLASSES.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-cp", libraries, "-d", str(CLASSES), *map(str, sources)], check=True)


def dump_log_segments(*arguments: str) -> list[str]:
    """The command that kafka-dump-log.sh runs, with its memory and collector."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    return ["java", *TOOL_OPTIONS, QUIET, "-cp", class_path(), tool, *arguments]


class JavaProcess:
    """Bench.java, or another ``program`` with other jars: one command and one answer at a time."""

    def __init__(
        self, memory: Sequence[str] = MEMORY, *, program: str = "Bench", libraries: Path | None = None
    ) -> None:
        path = f"{CLASSES}:{libraries or kafka_jars()}/*"
        command = ["java", *COLLECTOR, *memory, QUIET, "-cp", path, program]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @property
    def process_id(self) -> int:
        return self._process.pid

    def ask(self, command: str, **options: object) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join([command, *(f"{k}={v}" for k, v in options.items())]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the Java process ended"}
        if "error" in answer:
            raise RuntimeError(f"Java side, {command} {options}: {answer['error']}")
        return answer

    def close(self) -> None:
        self._process.communicate()


class JavaSide:
    """One workload (see Workloads.java) over one segment."""

    def __init__(self, workload: str, segment: Path, *, repeat: int = 1, output: str = "records") -> None:
        self.name = f"java {workload}"
        self.output = output
        self._options = {"workload": workload, "file": segment, "repeat": repeat}
        self._repeat = repeat
        self._sum = 0
        self._process = JavaProcess()

    def warm(self) -> None:
        self._process.ask("open", **self._options)
        self._process.ask("warm", seconds=WARM_SECONDS, passes=WARM_PASSES)

    def run(self) -> Timing:
        answer = self._process.ask("run")
        self._sum = answer["sum"]
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, answer["records"])

    def digest(self) -> object:
        digest = Digest.of(self._process.ask("digest"))
        if (digest.touch_sum * self._repeat - self._sum) % (1 << 64):
            raise DisagreementError(f"{self.name}: the timed rounds read other records than the digest")
        return digest

    def close(self) -> None:
        self._process.close()


class JavaHeadersSide(JavaSide):
    """Batch headers only."""

    def __init__(self, segment: Path) -> None:
        super().__init__("headers", segment, output="headers")
        self._batches = 0

    def run(self) -> Timing:
        timing = super().run()
        self._batches = timing.units
        return timing

    def digest(self) -> object:
        return {"batches": self._batches, "sum": self._sum}

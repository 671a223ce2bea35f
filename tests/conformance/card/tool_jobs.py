"""Apache Kafka's command line tools and kcat: what they print, without what differs from run to run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tests.conformance.clients import Clients
from tests.conformance.kafka_tools import Tools
from tests.conformance.maven import BUILD

__all__ = ["KCAT_LEFT_OUT", "TOOL_JOBS", "Place", "ToolJob", "kcat"]

SECONDS = 180
FIRST = "--partition 0 --offset earliest --timeout-ms 60000"
PERFORMANCE = "--topic performance --num-records 200 --record-size 100 --throughput -1"
UNPACKED = BUILD / "conformance" / "kcat"
_UNPACKING = Lock()  # the jobs run on both brokers at once
KCAT_LEFT_OUT = (
    "" if shutil.which("kcat") or shutil.which("apt-get") else "there is no kcat: install it (Debian: kcat)"
)


class Place(NamedTuple):
    """What a tool job has to work with on one broker."""

    tools: Tools
    clients: Clients
    server: str
    directory: Path


class ToolJob(NamedTuple):
    """A row; ``holds`` is a text that must be printed, so that two empty answers are not the same."""

    name: str
    run: Callable[[Place], list[str]]
    holds: str


def shown(at: Place, tool: str, line: str, said: str = "") -> list[str]:
    return at.tools.show(tool, line, said)[1]


def topics(at: Place) -> list[str]:
    lines = shown(at, "topics", "--create --topic made --partitions 2")
    lines += shown(at, "topics", "--describe --topic made")
    lines += shown(at, "topics", "--delete --topic made")
    return [_as_ours(line) for line in [*lines, *shown(at, "topics", "--describe --topic made")]]


def more_partitions(at: Place) -> list[str]:
    at.clients.create("wider")
    lines = shown(at, "topics", "--alter --topic wider --partitions 3")
    return [*lines, *(_as_ours(line) for line in shown(at, "topics", "--describe --topic wider"))]


def console(at: Place) -> list[str]:
    at.clients.create("console")
    lines = shown(at, "console-producer", "--topic console", said="one\ntwo\n")
    return lines + shown(at, "console-consumer", f"--topic console --max-messages 2 {FIRST}")


def console_group(at: Place) -> list[str]:
    at.clients.create("grouped")
    shown(at, "console-producer", "--topic grouped", said="one\ntwo\n")
    options = "--topic grouped --group console --from-beginning --max-messages 2 --timeout-ms 60000"
    lines = shown(at, "console-consumer", options)
    return lines + shown(at, "consumer-groups", "--describe --group console --offsets")


def groups(at: Place) -> list[str]:
    at.clients.create("of-groups")
    shown(at, "console-producer", "--topic of-groups", said="one\ntwo\nthree\n")
    reset = "--reset-offsets --group tools --topic of-groups --execute"
    lines = shown(at, "consumer-groups", f"{reset} --to-offset 2")
    lines += shown(at, "consumer-groups", "--describe --group tools --offsets")
    lines += shown(at, "consumer-groups", "--describe --group tools --state")
    lines += [line for line in shown(at, "consumer-groups", "--list --state") if "tools" in line]
    lines += shown(at, "consumer-groups", f"{reset} --to-earliest")
    lines += shown(at, "consumer-groups", "--delete-offsets --group tools --topic of-groups:0")
    lines += shown(at, "consumer-groups", f"{reset} --to-latest")
    lines += shown(at, "consumer-groups", "--delete --group tools")
    lines += [line for line in shown(at, "consumer-groups", "--list") if "tools" in line]
    return [line.replace(at.server, "…") for line in lines]


def transactions(at: Place) -> list[str]:
    at.clients.create("held")
    producer = at.clients.transactional("tool")
    producer.begin_transaction()
    producer.produce("held", b"a", partition=0)
    producer.flush(SECONDS)
    lines = shown(at, "transactions", "list")
    lines += shown(at, "transactions", "describe --transactional-id tool")
    lines += shown(at, "transactions", "describe-producers --topic held --partition 0")
    lines += shown(at, "transactions", "find-hanging --broker-id 1")
    producer.abort_transaction(SECONDS)
    return lines


def describe_configs(at: Place) -> list[str]:
    at.clients.create("configured", config={"retention.ms": "3600000"})
    lines = shown(at, "configs", "--describe --entity-type topics --entity-name configured")
    return [line for line in lines if "retention.ms" in line or "exit" in line]


def alter_configs(at: Place) -> list[str]:
    at.clients.create("altered")
    where = "--entity-type topics --entity-name altered"
    lines = shown(at, "configs", f"--alter {where} --add-config retention.ms=3600000")
    lines += shown(at, "configs", f"--describe {where}")
    lines += shown(at, "configs", f"--alter {where} --delete-config retention.ms")
    return [line for line in lines if "min.insync.replicas" not in line]


def log_dirs(at: Place) -> list[str]:
    at.clients.create("on-disk", 2)
    lines = shown(at, "log-dirs", "--describe --topic-list on-disk")
    return [lines[0], *sorted(re.findall(r'"partition":"[^"]*"', " ".join(lines)))]


def delete_records(at: Place) -> list[str]:
    at.clients.create("shortened")
    shown(at, "console-producer", "--topic shortened", said="one\ntwo\nthree\n")
    file = at.directory / "delete.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "shortened", "partition": 0, "offset": 2}]}')
    lines = shown(at, "delete-records", f"--offset-json-file {file}")
    return lines + shown(at, "get-offsets", "--topic shortened --time -2")


def get_offsets(at: Place) -> list[str]:
    at.clients.create("offsets", 2)
    shown(at, "console-producer", "--topic offsets", said="one\ntwo\n")
    lines = shown(at, "get-offsets", "--topic-partitions offsets:0,offsets:1 --time -2")
    total = sum(int(line.split(":")[2]) for line in shown(at, "get-offsets", "--topic offsets --time -1")[1:])
    return [*lines, f"{total} records"]


def producer_performance(at: Place) -> list[str]:
    at.clients.create("performance")
    lines = shown(at, "producer-performance", PERFORMANCE)
    options = "--transactional-id performance --transaction-duration-ms 100"
    return _words([*lines, *shown(at, "producer-performance", f"{PERFORMANCE} {options}")], "records sent")


def consumer_performance(at: Place) -> list[str]:
    at.clients.create("consumed")
    shown(at, "producer-performance", PERFORMANCE.replace("performance", "consumed"))
    lines = shown(at, "consumer-performance", "--topic consumed --num-records 200 --group performance")
    rows = [line.split(", ") for line in lines if line[:1].isdigit()]
    return [lines[0], *(f"{row[2]} MB, {row[4]} records" for row in rows)]


def verifiable_producer(at: Place) -> list[str]:
    at.clients.create("verifiable")
    lines = shown(at, "verifiable-producer", "--topic verifiable --max-messages 20 --acks -1")
    # where a batch ends is a matter of time, and so is the order of the lines
    return sorted(re.sub(r'"timestamp":\d+', "…", line) for line in lines if "avg_throughput" not in line)


def verifiable_consumer(at: Place) -> list[str]:
    at.clients.create("verified")
    shown(at, "verifiable-producer", "--topic verified --max-messages 20 --acks -1")
    options = "--topic verified --group-id verified --max-messages 20 --reset-policy earliest"
    lines = shown(at, "verifiable-consumer", options)
    return sorted({re.sub(r'"(timestamp|count)":\d+|"(min|max)Offset":\d+', "…", line) for line in lines})


def kcat_reads(at: Place) -> list[str]:
    at.clients.create("kcat")
    _kcat(at, "-P -t kcat -p 0", "one\ntwo\nthree\n")
    return _kcat(at, "-C -t kcat -p 0 -o beginning -c 3 -f %o:%s\\n")


def kcat_group(at: Place) -> list[str]:
    at.clients.create("kcat-group")
    _kcat(at, "-P -t kcat-group -p 0", "one\ntwo\n")
    return _kcat(at, "-G cats -X auto.offset.reset=earliest -c 2 -f %o:%s\\n kcat-group")


def kcat_lists(at: Place) -> list[str]:
    at.clients.create("listed-by-kcat", 2)
    _kcat(at, "-P -t listed-by-kcat -p 1", "one\n")
    lines = [
        line for line in _kcat(at, "-L -t listed-by-kcat") if "broker" not in line and "Metadata" not in line
    ]
    return lines + _kcat(at, "-Q -t listed-by-kcat:1:-1")


def kcat() -> str:
    """The program: that of the machine, or Debian's package unpacked in ``build/conformance/kcat``."""
    if found := shutil.which("kcat"):
        return found
    program = UNPACKED / "usr" / "bin" / "kcat"
    with _UNPACKING:  # a program whose libraries are written anew while it runs may hang
        if not program.exists():
            _unpack()
    return str(program)


def _unpack() -> None:
    """Get the packages, and put them in place as a whole."""
    shutil.rmtree(new := UNPACKED.with_name("kcat.new"), ignore_errors=True)
    new.mkdir(parents=True)
    subprocess.run(
        ["apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", *_packages()], cwd=new, check=True
    )
    for package in new.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(new)], check=True)
    shutil.rmtree(UNPACKED, ignore_errors=True)
    new.rename(UNPACKED)


def _packages() -> list[str]:
    """kcat, and the libraries of it that are not everywhere."""
    return ["kcat", "librdkafka1", "libyajl2"]


def _kcat(at: Place, line: str, said: str = "") -> list[str]:
    command = [kcat(), "-q", "-b", at.server, *line.split()]
    library = next(iter(UNPACKED.glob("usr/lib/*-linux-gnu*")), UNPACKED)
    environment = {"LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    return [f"exit {done.returncode}", *done.stdout.splitlines(), *done.stderr.splitlines()]


def _as_ours(line: str) -> str:
    """Without what DIVERGENCES.md says of `kafka-topics --describe`."""
    line = line.replace("Elr: N/A LastKnownElr: N/A", "Elr: LastKnownElr:")
    return line.replace("min.insync.replicas=1", "").rstrip()


def _words(lines: list[str], word: str) -> list[str]:
    return [line.partition(word)[0] + word if word in line else line for line in lines]


def all_jobs() -> Iterator[ToolJob]:
    yield ToolJob("kafka-topics: create, describe, delete", topics, "PartitionCount: 2")
    yield ToolJob("kafka-topics: more partitions", more_partitions, "PartitionCount: 3")
    yield ToolJob("kafka-console-producer, kafka-console-consumer", console, "two")
    yield ToolJob("kafka-console-consumer in a group", console_group, "console grouped 0 2 2 0")
    yield ToolJob("kafka-consumer-groups: describe, reset, delete", groups, "tools of-groups 0 2 3 1")
    yield ToolJob(
        "kafka-transactions: list, describe, find-hanging", transactions, "tool 1 producer 0 Ongoing"
    )
    yield ToolJob("kafka-configs: describe", describe_configs, "retention.ms=3600000")
    yield ToolJob("kafka-configs: alter", alter_configs, "Completed updating config")
    yield ToolJob("kafka-log-dirs", log_dirs, "on-disk-1")
    yield ToolJob("kafka-delete-records", delete_records, "shortened:0:2")
    yield ToolJob("kafka-get-offsets", get_offsets, "2 records")
    yield ToolJob("kafka-producer-perf-test", producer_performance, "200 records sent")
    yield ToolJob("kafka-consumer-perf-test", consumer_performance, "200 records")
    yield ToolJob("kafka-verifiable-producer", verifiable_producer, '"value":"19"')
    yield ToolJob("kafka-verifiable-consumer", verifiable_consumer, "offsets_committed")
    if not KCAT_LEFT_OUT:
        yield ToolJob("kcat: produce, consume", kcat_reads, "2:three")
        yield ToolJob("kcat: in a group", kcat_group, "1:two")
        yield ToolJob("kcat: topics and offsets", kcat_lists, "offset 1")


TOOL_JOBS = tuple(all_jobs())

"""``python -m tests.conformance.record_golden``: records the golden cases of Apache Kafka 4.4 anew.

The histories are written by ``java/GoldenHistory.java``, the answers are asked by ``java/GoldenAnswers.java``
and given by the broker, and DumpLogSegments dumps the files. tests/golden/README.md describes the result. It
takes about four minutes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from tests.conformance import golden_dumps
from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients
from tests.conformance.kafka_tools import Tools
from tests.conformance.maven import kafka_jars
from tests.golden.cases import ARCHIVES
from tests.golden.pack import pack
from txnkafka import TopicPartition
from txnkafka.storage.formats import parse_partition_directory, parse_partition_metadata

__all__: list[str] = []

JAVA = Path(__file__).resolve().parent / "java"
VERSION = "4.4.0"
FEATURES = {"metadata.version": 33, "transaction.version": 2, "share.version": 2}
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.index.size.max.bytes": "8192",
    "log.cleaner.backoff.ms": "200",
    "transaction.partition.verification.enable": "false",  # or nothing could hang
}
INTERNAL = ["__consumer_offsets", "__transaction_state"]
GROUPS = ["simple", "classic", "classic-static", "kip848", "kip848-static"]
GROUPS += ["txn-committed", "txn-aborted", "txn-pending"]
CREATED = re.compile(r"create topic (\S+) partitions=(\d+) \{(.*)\}")
CONTROLLED, SKIPPED = "enterControlledShutdown", "Couldn't find leader endpoint"
ATTEMPTS, SECONDS = 20, 120

Json = Any


class History:
    """``GoldenHistory`` as a process: its operations so far, and whether it is still there."""

    def __init__(self, kafka: KafkaBroker, part: str) -> None:
        command = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        command += ["-cp", f"{kafka_jars()}/*", str(JAVA / "GoldenHistory.java")]
        self._process = subprocess.Popen(
            [*command, kafka.bootstrap_servers, part],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.operations: list[str] = []

    def until(self, last: str) -> None:
        """Wait for this line; raises RuntimeError when the process ends before."""
        for line in _pipe(self._process.stdout):
            if line.rstrip("\n") == last:
                return
            self.operations.append(line.rstrip("\n"))
        raise RuntimeError(f"GoldenHistory ended: {self.operations[-3:]}")

    def go(self) -> None:
        """Send the line for which it waits."""
        pipe = _pipe(self._process.stdin)
        pipe.write("\n")
        pipe.flush()

    def kill(self) -> None:
        """Let it leave neither groups nor transactions."""
        self._process.kill()
        self._process.wait()


class Case:
    """The folder of a case that is being recorded."""

    def __init__(self, folder: Path, name: str, title: str) -> None:
        self.name, self.path = name, folder / name
        self._title = title
        self.operations: list[str] = []
        self.note: str | None = None
        (self.path / "expected").mkdir(parents=True)

    @property
    def expected(self) -> Path:
        return self.path / "expected"

    @property
    def topics(self) -> list[str]:
        return [name for name, _, _ in self._created()]

    def copy(self, kafka: KafkaBroker, to: str) -> Path:
        """Copy the log directory, without the lock."""
        ignored = shutil.ignore_patterns(".lock")
        return Path(shutil.copytree(kafka.log_dir, self.path / to, ignore=ignored))

    def ask(self, kafka: KafkaBroker, transactional_ids: Sequence[str], groups: Sequence[str] = ()) -> int:
        """Let the broker answer; the clock of the answers."""
        topics = self.topics + [each for each in INTERNAL if (kafka.log_dir / f"{each}-0").is_dir()]
        words = [",".join(each) or "-" for each in (topics, transactional_ids, groups)]
        command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{kafka_jars()}/*"]
        command += [str(JAVA / "GoldenAnswers.java"), kafka.bootstrap_servers, str(self.expected), *words]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def dump(self, directory: Path) -> None:
        """Dump the files of each partition."""
        for folder in _partitions(directory):
            text = golden_dumps.text_of(folder, "--deep-iteration")
            (self.expected / f"{folder.name}.dump.txt").write_text(text, encoding="utf-8")
            self._json(f"expected/{folder.name}.dump.json", golden_dumps.tables(text))
            decoded = golden_dumps.decoded(folder)
            if decoded is not None:
                (self.expected / f"{folder.name}.decoded.txt").write_text(decoded, encoding="utf-8")

    def recovered(self, kafka: KafkaBroker, said: Sequence[str]) -> None:
        """Keep the directory after the broker's recovery, and the broker's log about it."""
        self.copy(kafka, "recovered")
        log = [line.replace(str(kafka.log_dir), "<log.dir>") for line in said if "orders-" in line]
        self._json("expected/startup.json", {"started": True, "broker_log": log})
        (self.path / "image_dump").mkdir()
        for folder in _partitions(self.path / "logs"):
            if not folder.name.startswith("__"):
                text = golden_dumps.text_of(folder)
                (self.path / "image_dump" / f"{folder.name}.dump.txt").write_text(text, encoding="utf-8")

    def finish(self, recorded_at_ms: int, *, crash_image: bool = False) -> None:
        """Write case.json."""
        found = {
            "case": self.name, "title": self._title,
            "kafka_version": f"{VERSION} (broker, clients and tools)", "features": FEATURES,
            "recorded_at_ms": recorded_at_ms, "broker_props": PROPERTIES,
            "topics": dict(self._described()), "crash_image": crash_image, "note": self.note,
            "operations": self.operations,
        }  # fmt: skip
        self._json("case.json", found)

    def _created(self) -> Iterator[tuple[str, int, str]]:
        for line in self.operations:
            created = CREATED.fullmatch(line)
            if created is not None:
                yield created[1], int(created[2]), created[3]

    def _described(self) -> Iterator[tuple[str, Json]]:
        for name, partitions, configs in self._created():
            found = dict(each.split("=") for each in configs.split(", "))
            file = self.path / "logs" / f"{name}-0" / "partition.metadata"
            topic_id = parse_partition_metadata(file.read_bytes()).topic_id
            yield name, {"partitions": partitions, "topic_id": topic_id, "configs": found}

    def _json(self, name: str, content: Json) -> None:
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (self.path / name).write_text(text + "\n", encoding="utf-8")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _partitions(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if parse_partition_directory(path.name) is not None)


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} has not come")
        time.sleep(0.005)


def _is_cleaned(kafka: KafkaBroker) -> bool:
    text = (kafka.log_dir / "cleaner-offset-checkpoint").read_text(encoding="utf-8")
    return re.search(r"^compacted 0 [1-9]", text, re.MULTILINE) is not None


def _ids(operations: Sequence[str]) -> list[str]:
    found = {line.partition(":")[0] for line in operations if line.endswith(": begin")}
    return [*sorted(found), "never-seen"]


def _hang(kafka: KafkaBroker) -> str:
    clients = Clients(kafka)
    clients.leave_hanging(TopicPartition("hang", 0), TopicPartition("hang", 1), "late")
    clients.close()
    return "late: a transaction over hang-0, of which the coordinator is not told, and hang-1: commit"


def record_history(folder: Path, work: Path) -> None:
    """Everything in one directory, in two runs of the broker; members and transactions live at its stop."""
    title = "4.4.0: codecs, transactions, compaction, deleted records, groups, hanging"
    case = Case(folder, "kafka_4_4", title)
    case.note = "group members are alive when the broker stops"
    with KafkaBroker(work, PROPERTIES) as kafka:
        first = History(kafka, "first")
        first.until("done")
        _wait(lambda: _is_cleaned(kafka), "the cleaner")
        first.kill()
        with kafka.stopped():
            case.operations = [*first.operations, "broker restarted"]
        case.operations.append(_hang(kafka))
        second = History(kafka, "second")
        second.until("done")
        case.operations += second.operations
        recorded_at_ms = case.ask(kafka, [*_ids(case.operations), "late"], GROUPS)
        kafka.stop()
        second.kill()
        case.dump(case.copy(kafka, "logs"))
    case.finish(recorded_at_ms)


def record_crash(folder: Path, work: Path) -> None:
    """Record a broker that is killed, and its recovery."""
    case = Case(folder, "kafka_4_4_crash", "4.4.0: SIGKILL with open transactions, and the recovery")
    with KafkaBroker(work, PROPERTIES) as kafka:
        history = History(kafka, "crash")
        history.until("done")
        kafka.kill()
        history.kill()
        case.operations = [*history.operations, "SIGKILL"]
        case.copy(kafka, "logs")
        kafka.start()
        recorded_at_ms = case.ask(kafka, _ids(case.operations))
        said = kafka.said()
        kafka.stop()
        case.recovered(kafka, said)
        case.dump(case.path / "recovered")
    case.finish(recorded_at_ms, crash_image=True)


def record_stop(folder: Path, work: Path) -> None:
    """Transactions that end while the broker stops cleanly: it completes some without their end markers.

    This depends on time, so it is repeated until partitions of records and of offsets lack one. The next
    start completes the transactions that are prepared, and leaves the completed ones as they are.
    """
    name, title = "kafka_4_4_no_markers", "4.4.0: a clean stop that leaves decided transactions open"
    for attempt in range(ATTEMPTS):
        with KafkaBroker(work / str(attempt), PROPERTIES) as kafka:
            history = History(kafka, "stop")
            history.until("ready")
            _stop_while(kafka, history)
            skipped = [line for line in kafka.said() if SKIPPED in line]
            history.kill()
            print(f"attempt {attempt}: {len(skipped)} transactions without markers", flush=True)
            if not all(any(f"{topic}-" in line for line in skipped) for topic in ("orders", INTERNAL[0])):
                continue
            case = Case(folder, name, title)
            case.operations = [*history.operations, "broker stopped, started and stopped"]
            case.note = f"the first stop skipped the end markers of {len(skipped)} transactions"
            kafka.start()
            _wait(lambda: "Prepare" not in _transactions(kafka), "the end of the prepared transactions")
            ids = _ids(case.operations)
            groups = [f"stop-group-{number}" for number in range(len(ids) - 1)]
            recorded_at_ms = case.ask(kafka, ids, groups)
            kafka.stop()
            case.dump(case.copy(kafka, "logs"))
        case.finish(recorded_at_ms)
        return
    raise RuntimeError("Apache Kafka has written each end marker")


def _transactions(kafka: KafkaBroker) -> str:
    return "\n".join(Tools(kafka.bootstrap_servers).show("transactions", "list")[1])


def _stop_while(kafka: KafkaBroker, history: History) -> None:
    ended = threading.Thread(target=history.until, args=("done",), daemon=True)

    def fire() -> None:
        _wait(lambda: any(CONTROLLED in line for line in kafka.said()), "the controlled shutdown")
        history.go()
        ended.start()

    watcher = threading.Thread(target=fire, daemon=True)
    watcher.start()
    kafka.stop()
    watcher.join(SECONDS)
    ended.join(SECONDS)


def main() -> None:
    """Record the named cases; without names, all cases."""
    cases = {"kafka_4_4": record_history, "crash": record_crash, "no_markers": record_stop}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "cases"
        for name, record in cases.items():
            print(f"recording {name}", flush=True)
            record(folder, Path(temporary) / name)
        pack(folder, ARCHIVES[1])


if __name__ == "__main__":
    main()

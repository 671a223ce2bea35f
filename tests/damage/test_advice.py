"""The advice of each finding helps: it is followed on a copy of every damaged directory.

Afterwards the finding is gone, every record of before can be read, and no sound file was lost. Advice that a
program cannot follow (compare with a replica, look for a client) is listed in BY_HAND.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import sampled
from tests.golden.cases import cases
from tests.models.log_directory import LogDirectory
from tests.unit.logdir.faults import PLANTED
from tests.unit.logdir.verify import test_verify  # noqa: F401  registers the faults
from txnkafka import KafkaError, LogDir
from txnkafka.cli.main import cli
from txnkafka.logdir import Finding
from txnkafka.logdir.verify import verify

Follow = Callable[[Path, Finding], None]

BY_HAND = re.compile(
    r"compare with a replica|find out w|look for records|check permissions|correct the |do not start a broker"
    r"|it is decided when the log is restored|nothing to do with this file"
)
# no broker does anything, and none has to
NO_MATTER = re.compile(
    r"nothing to do: (that the file exists|the broker splits|consumers return the records once"
    r"|a broker may look at more|the next append)|nothing to do if the producer was idle"
)


def repair(root: Path, *options: str) -> None:
    done = CliRunner().invoke(cli, ["repair", str(root), *options])
    assert done.exit_code in (0, 1), done.output


def delete(root: Path, finding: Finding) -> None:
    path = Path(finding.file)
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def delete_and_repair(root: Path, finding: Finding) -> None:
    delete(root, finding)
    repair(root)


def delete_snapshots_and_repair(root: Path, finding: Finding) -> None:
    for each in verify(LogDir(root)).findings:
        if each.code == finding.code and Path(each.file).parent == Path(finding.file).parent:
            Path(each.file).unlink(missing_ok=True)
    repair(root)


ADVICE: list[tuple[str, Follow]] = [
    (r"delete the file, then run 'txnkafka repair'", delete_and_repair),
    (r"delete all snapshots of the partition that have this finding, then", delete_snapshots_and_repair),
    (r"run 'txnkafka repair --full'", lambda root, finding: repair(root, "--full")),
    (r"run 'txnkafka repair'", lambda root, finding: repair(root)),
    (r"delete the file \('txnkafka repair' does if it is the newest\)", delete),
    (r"nothing to do", lambda root, finding: repair(root)),  # a broker does the same when it starts
    (r"move it away|it is not part of the topic; delete it", delete),
]


def copied(path: Path, root: Path) -> Path:
    return Path(shutil.copytree(path, root))


def golden_damage() -> Iterator[tuple[str, Callable[[Path], Path]]]:
    for each in cases():
        yield each.name, partial(copied, each.logs)
        if each.damage is not None and each.recovered is not None:
            yield f"{each.name}/recovered", partial(copied, each.recovered)


def planted_damage() -> Iterator[tuple[str, Callable[[Path], Path]]]:
    for number, ((_, code, file, _), plant) in enumerate(PLANTED):

        def make(root: Path, plant: Callable[[LogDirectory], None] = plant) -> Path:
            directory = LogDirectory(root)
            plant(directory)
            return directory.root

        yield f"{number}-{code}-{file}", make


DAMAGE = dict([*golden_damage(), *planted_damage()])


def readable(root: Path) -> dict[str, list[tuple[int, object, object]]]:
    """Return the records of each partition, as far as it can be read."""
    found: dict[str, list[tuple[int, object, object]]] = {}
    for view in LogDir(root).partitions():
        records = found.setdefault(str(view.topic_partition), [])
        try:
            for record in view.records(isolation_level="read_uncommitted", on_corrupt="skip"):
                records.append((record.offset, record.key, record.value))
        except KafkaError:
            continue
    return found


def identity(root: Path, finding: Finding) -> tuple[str, str, int | None]:
    return finding.code, str(Path(finding.file).relative_to(root)), finding.position


@pytest.mark.parametrize("name", sampled(DAMAGE, every=7))
def test_following_the_advice(name: str, tmp_path: Path) -> None:
    make = DAMAGE[name]
    original = make(tmp_path / "original")
    before = verify(LogDir(original), level="records").findings
    records = readable(original)
    damaged = {each.file for each in before}
    sound = {
        str(path.relative_to(original))
        for path in original.rglob("*")
        if path.is_file() and str(path) not in damaged and str(path.parent) not in damaged
    }
    for number, finding in enumerate(before):
        if BY_HAND.search(finding.remedy) or "restore" in finding.remedy or NO_MATTER.search(finding.remedy):
            continue
        follow = next((follow for text, follow in ADVICE if re.search(text, finding.remedy)), None)
        assert follow is not None, finding.remedy
        copy = Path(shutil.copytree(original, tmp_path / str(number), symlinks=True))
        follow(copy, finding._replace(file=finding.file.replace(str(original), str(copy), 1)))
        after = verify(LogDir(copy), level="records").findings
        assert identity(original, finding) not in [identity(copy, each) for each in after], finding
        assert readable(copy) == records, finding
        gone = {name for name in sound if not (copy / name).exists()}
        assert not gone, (finding, gone)
        shutil.rmtree(copy)

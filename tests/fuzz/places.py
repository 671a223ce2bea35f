"""The target for directories on a real disk whose names and kinds of files are hostile.

An input is a directory as in ``directory.py``; the end of a name says what stands there: ``|link`` a symbolic
link to what the content names, ``|fifo``, ``|socket``, ``|directory``. Everything that opens a directory is
tried on it: the reader, ``verify``, an owner that appends and compacts, a repair, also a dry one. KafkaError
comes out, or OSError for a file of the directory itself; nothing waits, and nothing outside of the directory
changes.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.damage.image import ROOT
from tests.fuzz.directory import NOW_MS, check_partition, mutate_directory, packed, unpacked
from tests.fuzz.engine import Target, require
from tests.fuzz.owning import CONFIGS, append_to
from txnkafka import KafkaError, LogDir
from txnkafka.broker.log_manager import LogManager
from txnkafka.env import LocalDataFiles, LocalFileSystem
from txnkafka.env.overlay import OverlayFiles
from txnkafka.logdir.verify import verify
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.recovery.log_loader import Repair

__all__ = ["PLACE"]

SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # links and FIFOs without a disk
KINDS = ("|link", "|fifo", "|socket", "|directory")
LINKS = (
    "../../outside/victim", "../../outside/missing", "../outside/victim", "../outside", "../outside/missing",
    ".", "..", "loop", "00000000000000000000.log", "../t-0/00000000000000000020.log", "../t-0", "t-0",
)  # fmt: skip
# UTF-8 and not, longer than a topic may be, numbers beyond any, names of files that are directories
NAMES = (
    "\udcff-0", "caf\udce9.log", "t-2147483647", "t-99999999999999999999", "t--1", "-0",
    "__transaction_state-2147483647",
    "x" * 200 + "-0", "t-0.abc-delete", "t-0.abc-future", "t-0.abc-stray", "\n-0", "\x1b[31m-0", "t-٣",
    "00000000000000000000.log", ".lock", ".kafka_cleanshutdown", "meta.properties", "meta.properties.tmp",
    "recovery-point-offset-checkpoint.tmp", "leader-epoch-checkpoint", "99999999999999999999.log",
)  # fmt: skip


def mutate_place(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Names and kinds, or contents as in ``mutate_directory``."""
    files = unpacked(content)
    if random.random() < 0.3 or not files:
        return mutate_directory(random, content, pool)
    name = random.choice(list(files))
    kind = random.random()
    if kind < 0.6:
        changed = name.partition("|")[0] + random.choice(KINDS)
    else:
        folder = name.rpartition("/")[0] if random.random() < 0.7 else ROOT
        changed = f"{folder}/{random.choice(NAMES)}" + random.choice(("", *KINDS))
    there = files[name] if random.random() < 0.5 else files.pop(name)
    files[changed] = random.choice(LINKS).encode() if changed.endswith("|link") else there
    return packed(files)


def check_place(content: bytes) -> str:
    """Each way in on a copy of its own."""
    labels: set[str] = set()
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="txnkafka-fuzz-", dir=SCRATCH) as scratch:
            inside, outside = _placed(Path(scratch), content)
            before = _everything(outside)
            try:
                labels |= way(os.fspath(inside))
            except KafkaError as error:
                labels.add(_words(error))
            except OSError as error:  # the directory cannot be opened for a file of its own
                require(Path(error.filename).parent == inside, error)
                labels.add(_words(error.strerror))
            require(_everything(outside) == before, f"{way.__name__}: something outside has changed")
    return f"{'refused' if labels else 'accepted'}: {sorted(labels)[:4]}"


def _words(error: object) -> str:
    """Without the name that ``tempfile`` made up: the same input has the same label."""
    text = re.sub(r"txnkafka-fuzz-\w+", "", str(error))
    return "".join(c for c in text[:60] if c.isalpha() or c == " ")[-30:]


def _placed(scratch: Path, content: bytes) -> tuple[Path, Path]:
    """The directory, and one beside it that nobody may touch."""
    inside, outside = scratch / "logs", scratch / "outside"
    inside.mkdir()
    (outside / "t-9").mkdir(parents=True)
    (outside / "victim").write_bytes(b"somebody's" * 200)
    (outside / "t-9" / f"{0:020}.log").write_bytes(b"")
    for name, held in unpacked(content).items():
        path, bar, kind = name.removeprefix(ROOT + "/").partition("|")
        parts = [each for each in path.split("/") if each not in ("", ".", "..")]
        if parts:
            with suppress(OSError, ValueError):  # names that cannot be, or two that cannot both be
                _place(scratch, os.fsencode(os.path.join(inside, *parts)), bar + kind, held)
    return inside, outside


def _place(scratch: Path, path: bytes, kind: str, held: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _stay_inside(scratch, path)
    if kind == "|link":
        target = held.decode("ascii", "replace")
        os.symlink(target if target in LINKS else LINKS[len(held) % len(LINKS)], path)
    elif kind == "|fifo":
        os.mkfifo(path)
    elif kind == "|directory":
        os.mkdir(path)
    elif kind == "|socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
    else:
        with open(path, "xb") as file:
            file.write(held)


def _stay_inside(scratch: Path, path: bytes) -> None:
    """Making the directory must not follow a link out of it. Raises OSError."""
    parent = os.path.realpath(os.path.dirname(path))
    if not parent.startswith(os.fsencode(scratch / "logs")):
        raise OSError("it would lie outside")


def _everything(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Names, kinds, times and contents."""
    found = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        held = path.read_bytes() if path.is_file() else b""
        found.append((os.fspath(path), status.st_mode, status.st_mtime_ns, held))
    return found


def _read(path: str) -> set[str]:
    log_dir, labels = LogDir(path), set[str]()
    for topic_partition in log_dir.topic_partitions:
        try:
            labels |= check_partition(log_dir, log_dir.partition(*topic_partition))
        except KafkaError as error:
            labels.add(_words(error))
    log_dir.transactional_ids()
    return labels | {each.code for each in verify(log_dir, level="crc").findings if each.severity != "note"}


def _own(path: str) -> set[str]:
    directory = _directory(LocalDataFiles(), path, None)
    labels = {_words(error) for error in directory.data.refused.values()}
    for log in directory.logs.values():
        labels.update(append_to(log))
    while directory.clean(NOW_MS) is not None:
        pass
    directory.close()
    return labels


def _repair(path: str) -> set[str]:
    directory = _directory(LocalDataFiles(), path, Repair(full=True, truncate_corrupt=True))
    directory.close()
    return {_words(error) for error in directory.data.refused.values()}


def _dry_repair(path: str) -> set[str]:
    directory = _directory(OverlayFiles(LocalFileSystem()), path, Repair())
    directory.close()
    return {_words(error) for error in directory.data.refused.values()}


def _directory(files: LocalDataFiles | OverlayFiles, path: str, repair: Repair | None) -> LogManager:
    return LogManager(DataDirectory(files, path, lambda _: CONFIGS[1], now_ms=NOW_MS, repair=repair))


WAYS: Sequence[Callable[[str], set[str]]] = (_read, _dry_repair, _own, _repair)
PLACE = Target("place", check_place, mutate_place, needed=("refused",), iterations=60)

"""A lock on a file is the same lock for Java, which Kafka's brokers take on ``.lock``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from txnkafka.env import LocalDataFiles

PROGRAM = """
import java.nio.channels.FileChannel;
import java.nio.file.*;

public class TryLock {
    public static void main(String[] arguments) throws Exception {
        OpenOption[] options = {StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE};
        FileChannel file = FileChannel.open(Path.of(arguments[0]), options);
        System.out.println(file.tryLock() == null ? "refused" : "locked");
        System.in.read();
    }
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("java") / "TryLock.java"
    path.write_text(PROGRAM)
    return path


def java(source: Path, lock: Path) -> subprocess.Popen[str]:
    """A Java program that tries to lock; its first line says whether it could, and then it waits."""
    pipe = subprocess.PIPE
    return subprocess.Popen(["java", str(source), str(lock)], stdin=pipe, stdout=pipe, text=True)


def test_java_respects_our_lock(source: Path, tmp_path: Path) -> None:
    lock = LocalDataFiles().lock(str(tmp_path / ".lock"))
    assert lock is not None
    with java(source, tmp_path / ".lock") as program:
        assert program.communicate("\n")[0] == "refused\n"
    lock.close()
    with java(source, tmp_path / ".lock") as program:
        assert program.communicate("\n")[0] == "locked\n"


def test_we_respect_the_lock_of_java(source: Path, tmp_path: Path) -> None:
    files, path = LocalDataFiles(), str(tmp_path / ".lock")
    with java(source, tmp_path / ".lock") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "locked\n"
        assert files.lock(path) is None
        assert files.is_locked(path)
        program.communicate("\n")
    lock = files.lock(path)
    assert lock is not None
    lock.close()

"""Paths and addresses: which file system they select, and the errors when it is not available."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.unit.env.bucket import Bucket
from tests.unit.logdir.logs import batch, write_log
from txnkafka import LogDir, LogDirError
from txnkafka.env import LocalFileSystem, open_file_system, without_password
from txnkafka.env.remote import RemoteFileSystem


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("/a", "/a"), ("/a/", "/a"), ("/a/.", "/a"), ("//a", "/a"), ("/a/../b", "/b"), ("a/b", "{}/a/b"),
        (".", "{}"), ("./a/", "{}/a"), ("a:b/c", "{}/a:b/c"), ("/", "/"), ("file:/a", "/a"),
        ("file:///a/./", "/a"), ("FILE://localhost/a", "/a"),
    ],
)  # fmt: skip
def test_paths_of_this_machine(
    path: str, absolute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file_system, paths = open_file_system([path])
    assert isinstance(file_system, LocalFileSystem)
    assert paths == [absolute.format(tmp_path)]


@pytest.mark.parametrize(
    ("address", "path", "parent", "below"),
    [
        ("memory://logs/t-0/", "memory://logs/t-0", "memory://logs", "memory://logs/t-0/x"),
        ("MEMORY://t-0", "memory://t-0", "memory://", "memory://t-0/x"),
        ("memory://", "memory://", "memory://", "memory://x"),
        ("local:///t-0", "local:///t-0", "local:///", "local:///t-0/x"),
        ("local:///", "local:///", "local:///", "local:///x"),
    ],
)
def test_addresses(address: str, path: str, parent: str, below: str) -> None:
    file_system, paths = open_file_system([address])
    assert isinstance(file_system, RemoteFileSystem)
    assert paths == [path]
    assert file_system.split(path)[0] == parent
    assert file_system.join(path, "x") == below
    assert file_system.split(below) == (path, "x")


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["file://other/logs"], "files of another machine"),
        (["hdfs:/logs"], "two slashes"),
        (["nosuch://logs"], "unknown file system 'nosuch'"),
        (["zip://logs::memory://a.zip"], "addresses within addresses"),
        (["memory://a", "/b"], "on several file systems"),
        (["memory://a", "local:///b"], "on several file systems"),
        (["memory://nothing-is-here"], "memory://nothing-is-here does not exist"),
    ],
)
def test_what_cannot_be_opened(paths: list[str], message: str) -> None:
    with pytest.raises(LogDirError) as caught:
        LogDir(paths)
    assert message in str(caught.value)


def test_options_are_for_addresses() -> None:
    with pytest.raises(LogDirError, match="storage options are for addresses"):
        LogDir("/tmp", storage_options={"anon": True})


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(LogDirError, match=r"pip install 'txnkafka\[files\]'"):
        LogDir("s3://bucket/logs")


@pytest.mark.parametrize(
    ("scheme", "modules", "message"),
    [
        ("s3", ["s3fs", "obstore.fsspec"], r"Install s3fs to access S3, or obstore: pip install 'txn"),
        ("sftp", ["paramiko"], '"paramiko" to be installed$'),
    ],
)
def test_without_the_package_of_a_scheme(
    scheme: str, modules: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(fsspec_registry(), scheme, raising=False)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LogDirError, match=message):
        LogDir(f"{scheme}://bucket/logs")


def test_obstore_takes_the_place_of_s3fs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(fsspec_registry(), "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    file_system = RemoteFileSystem("s3://bucket/logs", {"region": "eu-central-1"})
    assert "FsspecStore" in str(type(file_system._backend).__mro__)
    assert file_system._key("s3://bucket/logs") == "bucket/logs"
    fsspec_registry().pop("s3")


def test_secrets_are_not_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"config": {"secret_access_key": "open sesame"}, "region": "nowhere"}
    file_system = RemoteFileSystem("memory://", options)
    assert "sesame" not in repr(file_system)

    def ls(*_: object, **__: object) -> None:
        raise RuntimeError("no open sesame in nowhere")

    monkeypatch.setattr(file_system._backend, "ls", ls)
    with pytest.raises(OSError, match=r"RuntimeError: no \*\*\* in nowhere"):
        file_system.list("memory://logs")


def fsspec_registry() -> dict[str, Any]:
    """Return the registry of imported file systems; it is used before packages are searched."""
    found: dict[str, Any] = import_module("fsspec.registry")._registry
    return found


@pytest.mark.parametrize("address", ["ftp://user:hunter2@host/logs", "bucket://user:hunter2@host/logs"])
def test_a_password_is_not_shown(address: str) -> None:
    shown = address.replace("hunter2", "***")
    assert without_password(address) == shown
    assert without_password(shown) == shown
    for paths in ([address, "/b"], [f"zip://x::{address}"], ["nosuch" + address[address.index(":") :]]):
        with pytest.raises(LogDirError) as caught:
            LogDir(paths)
        assert "hunter2" not in str(caught.value)
        assert "***" in str(caught.value)
    with pytest.raises(LogDirError) as caught:
        open_file_system(["file://user:hunter2@host/logs"])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("address", ["memory://a@b/c", "s3://bucket/a:b@c", "/a:b@c"])
def test_what_is_no_password(address: str) -> None:
    assert without_password(address) == address


def test_only_the_backend_knows_the_password(tmp_path: Path) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0)]})
    Bucket.install(tmp_path / "data")
    Bucket.store["/user:hunter2@logs/t-0/" + f"{0:020d}.log"] = Bucket.store[f"/logs/t-0/{0:020d}.log"]
    log_dir = LogDir("bucket://user:hunter2@logs")
    assert log_dir.paths == ["bucket://user:***@logs"]
    assert [each.offset for each in log_dir.partition("t", 0).records()] == [0, 1]
    again = pickle.loads(pickle.dumps(log_dir.file_system))
    assert again.list("bucket://user:***@logs")[0].name == "t-0"
    del Bucket.store["/user:hunter2@logs/t-0/" + f"{0:020d}.log"]
    with pytest.raises(FileNotFoundError) as caught:
        again.read("bucket://user:***@logs/t-0/x", 9)
    for text in (repr(log_dir), repr(log_dir.file_system), repr(again), repr(log_dir.partition("t", 0))):
        assert "hunter2" not in text
    assert "hunter2" not in str(caught.value)


def test_a_key_of_many_levels() -> None:
    Bucket.install()
    Bucket().pipe_file("/deep/t-0/" + "d/" * 1_500 + "x", b"")
    Bucket().pipe_file(f"/deep/t-0/{0:020d}.log", b"".join([batch(0)]))
    log_dir = LogDir("bucket://deep")
    assert log_dir.partition("t", 0).log_end_offset == 2

"""Every command on a bucket behind plain HTTP, which needs an option; errors of storage packages become one
line."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from txnkafka import LogDir, LogDirError
from txnkafka.env.storage_options import hint, obstore_options

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")

ADDRESS = "s3://backup/kafka"
COMMANDS = ("ls", "ls --segments", "cat", "verify", "lso", "stats")
SECRET = "open-sesame"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a bucket with the directory, isolated from the settings of this machine."""
    for name in os.environ:
        if name.startswith(("AWS_", "FSSPEC_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="me",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="backup")
    for path in log_dir.rglob("*"):
        if path.is_file():
            client.put_object(
                Bucket="backup", Key=f"kafka/{path.relative_to(log_dir)}", Body=path.read_bytes()
            )
    return endpoint


def options(endpoint: str, **more: str) -> list[str]:
    given = {"endpoint": endpoint, "access_key_id": "me", "secret_access_key": SECRET, "region": "us-east-1"}
    pairs = (given | {"allow_http": "true"} | more).items()
    return [word for name, value in pairs for word in ("--storage-option", f"{name}={value}")]


@pytest.mark.slow
def test_every_command_answers_as_on_a_disk(run: Run, bucket: str, log_dir: Path, tmp_path: Path) -> None:
    for command in COMMANDS:
        name, *more = command.split()
        there, here = run(name, ADDRESS, *more, *options(bucket)), run(name, log_dir, *more)
        assert there.stdout.replace(ADDRESS, str(log_dir)) == here.stdout
        assert there.stderr.replace(ADDRESS, str(log_dir)) == here.stderr
        assert there.status == here.status
    there = run("dump", f"{ADDRESS}/orders-0/{FIRST_SEGMENT}", "--records", *options(bucket))
    here = run("dump", log_dir / "orders-0" / FIRST_SEGMENT, "--records")
    assert (there.status, there.stdout.replace(ADDRESS, str(log_dir))) == (0, here.stdout)
    assert exported(run, tmp_path / "there", ADDRESS, *options(bucket)) == exported(
        run, tmp_path / "here", log_dir
    )


def exported(run: Run, output: Path, *arguments: object) -> list[tuple[str, bytes]]:
    answer = run("-q", "export", *arguments, "--to", "jsonl", "--output", output)
    assert (answer.status, answer.stderr) == (0, "")
    return sorted((path.name, path.read_bytes()) for path in output.rglob("*.jsonl"))


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_other_addresses(run: Run, log_dir: Path, tmp_path: Path, scheme: str) -> None:
    address = f"file://{log_dir}"
    if scheme == "memory":
        address = "memory://kafka"
        memory: Any = fsspec.filesystem("memory")
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]
        memory.put(f"{log_dir}/", "/kafka", recursive=True)
    for command in COMMANDS:
        name, *more = command.split()
        there, here = run(name, address, *more), run(name, log_dir, *more)
        assert there.stdout.replace(address, str(log_dir)) == here.stdout
        assert (there.status, there.stderr.replace(address, str(log_dir))) == (here.status, here.stderr)
    assert exported(run, tmp_path / "there", address) == exported(run, tmp_path / "here", log_dir)


def test_repair_works_on_disks_only(run: Run, log_dir: Path) -> None:
    for address in ("s3://backup/kafka", "memory://kafka"):
        for more in ((), ("--dry-run",)):
            answer = run("repair", address, *more)
            assert (answer.status, answer.stdout) == (2, "")
            assert f"error: {address}: repair changes files in place" in answer.stderr
            assert answer.stderr.count("\n") == 1
    assert run("repair", f"file://{log_dir}", "--dry-run") == run("repair", log_dir, "--dry-run")


def test_plain_http_must_be_allowed_and_the_error_says_how(run: Run, bucket: str) -> None:
    for command in (*COMMANDS, "dump"):
        name, *more = command.split()
        target = f"{ADDRESS}/orders-0/{FIRST_SEGMENT}" if name == "dump" else ADDRESS
        answer = run(name, target, *more, *options(bucket, allow_http="false"))
        assert (answer.status, answer.stdout) == (2, "")
        line = rf"txnkafka: error: .*{ADDRESS}.*--storage-option allow_http=true.*\n"
        assert re.fullmatch(line, answer.stderr)
        assert SECRET not in answer.stderr


@pytest.mark.parametrize(
    "more",
    [
        {"allow_http": True},
        {"allow_http": "true"},
        {"client_options": {"allow_http": True}},
        {"client_options": {"timeout": 5}, "allow_http": True},
        {"allow_http": True, "connect_timeout": 2.5, "virtual_hosted_style_request": False},
    ],
)
def test_storage_options_in_each_usual_form(bucket: str, more: dict[str, Any]) -> None:
    store = {"endpoint": bucket, "access_key_id": "me", "secret_access_key": SECRET, "region": "us-east-1"}
    fsspec_store = {
        "client_kwargs": {"endpoint_url": bucket, "region_name": "us-east-1"},
        "key": "me",
        "secret": SECRET,
    }
    for given in (store, fsspec_store, {"config": store}):
        assert len(LogDir(ADDRESS, storage_options=given | more).topic_partitions) == 2


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"nonsense": "x"}, "'nonsense' is not valid.*valid options: obstore's options for the store"),
        ({"timeout": "soon"}, "soon"),
        ({"region": 5}, "str"),
        ({"client_options": 5}, "client_options"),
    ],
)
def test_invalid_options_are_an_error_of_one_line(bucket: str, more: dict[str, Any], cause: str) -> None:
    store = {"endpoint": bucket, "access_key_id": "me", "secret_access_key": SECRET, "allow_http": True}
    with pytest.raises(LogDirError) as caught:
        LogDir(ADDRESS, storage_options=store | more)
    text = str(caught.value)
    assert text.startswith(("cannot list s3://backup/kafka: ", "s3://backup/kafka cannot be opened"))
    assert re.search(cause, text)
    assert "\n" not in text
    assert SECRET not in text
    assert len(text) < 700


@pytest.mark.parametrize("option", ["allow_http", "=true", "secret"])
def test_an_option_is_a_key_and_a_value(run: Run, option: str) -> None:
    answer = run("ls", ADDRESS, "--storage-option", option)
    assert (answer.status, answer.stdout) == (2, "")
    assert "must be KEY=VALUE, as in allow_http=true" in answer.stderr


def test_options_are_for_addresses(run: Run, log_dir: Path) -> None:
    answer = run("ls", log_dir, "--storage-option", "allow_http=true")
    assert (answer.status, answer.stdout) == (2, "")
    assert "storage options are for addresses such as s3://bucket" in answer.stderr


def test_a_panic_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic of Rust is no subclass of Exception, so handlers for Exception miss it."""

    class PanicException(BaseException):
        pass

    memory: Any = fsspec.filesystem("memory")

    def panic(*_: object, **__: object) -> None:
        raise PanicException("Expected config prefix\nto start with aws_")

    monkeypatch.setattr(type(memory), "ls", panic)
    with pytest.raises(LogDirError, match="memory://x: PanicException: Expected config prefix to start"):
        LogDir("memory://x")


def test_long_error_messages_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    memory: Any = fsspec.filesystem("memory")

    def fail(*_: object, **__: object) -> None:
        raise OSError("Unable to load libjvm: " + "/usr/lib/jvm/libjvm.so: no such file; " * 500)

    monkeypatch.setattr(type(memory), "ls", fail)
    with pytest.raises(LogDirError) as caught:
        LogDir("memory://x")
    assert len(str(caught.value)) < 700
    assert "set JAVA_HOME" in str(caught.value)


def test_names_of_s3fs_mean_nothing_elsewhere() -> None:
    assert obstore_options("gs", {"key": "x"}) == {"key": "x"}
    assert obstore_options("s3", {"key": "x", "anon": True}) == {"access_key_id": "x", "skip_signature": True}
    assert obstore_options("s3", {}) == {}
    assert hint("nothing of note") == ""

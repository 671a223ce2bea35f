"""The frame of the command line: help, exit statuses, one line per error, imported modules."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import txnkafka
from tests.unit.cli.conftest import FIRST_SEGMENT, Run
from tests.unit.logdir.logs import batch, write_log
from txnkafka.cli import cat
from txnkafka.cli.main import COMMANDS, cli

HEAVY = ("numpy", "pyarrow", "pyspark", "rich", "asyncio", "email")
COMMAND = [sys.executable, "-m", "txnkafka"]


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"txnkafka {txnkafka.__version__}\n", "")


def test_without_a_command_it_explains_itself(run: Run) -> None:
    help = run("--help")
    assert help.status == 0
    assert all(f"  {name} " in help.stdout for name in COMMANDS)
    assert run() == (2, "", help.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_explained(name: str) -> None:
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.help
    assert command.name == name
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help and "--format" not in each.opts] == []


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    answer = run("list")
    assert answer.status == 2
    assert "No such command 'list': did you mean ls?" in answer.stderr


def test_a_missing_argument_is_a_usage_error(run: Run) -> None:
    answer = run("dump")
    assert (answer.status, answer.stdout) == (2, "")
    assert "Missing argument 'FILE...'" in answer.stderr


def test_without_a_path_the_current_directory_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    why = "it contains neither partition directories (topic-0) nor segments (*.log)"
    error = f"txnkafka: error: {tmp_path} is not a Kafka log directory: {why}\n"
    assert run("ls") == (2, "", error)
    write_log(tmp_path, "a-0", {0: [batch(0)]})
    assert [line.split()[0] for line in run("ls").lines] == ["topic", "a"]


def test_a_log_directory_one_level_below_is_named(run: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "logs", "a-0", {0: [batch(0)]})
    (tmp_path / "config").mkdir()
    error = f"txnkafka: error: {tmp_path} is not a Kafka log directory: 'logs' below it looks like one\n"
    assert run("lso", tmp_path) == (2, "", error)
    write_log(tmp_path / "more", "a-1", {0: [batch(0)]})
    assert "'logs', 'more' below it look like some" in run("lso", tmp_path).stderr


@pytest.mark.parametrize(
    "address", ["localhost:9092", "b-1:9092,b-2:9092", "[::1]:9092", "kafka://broker:9092"]
)
def test_a_broker_is_not_asked(run: Run, address: str) -> None:
    answer = run("cat", address)
    assert (answer.status, answer.stdout) == (2, "")
    assert f"{address} is the address of a broker, but this reads files: use kcat" in answer.stderr
    assert "use kcat or kafka-console-consumer.sh" in answer.stderr


def test_a_directory_named_like_an_address_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "backup:2024", "a-0", {0: [batch(0)]})
    monkeypatch.chdir(tmp_path)
    assert run("ls", "backup:2024").status == 0


def test_a_path_that_does_not_exist(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    assert run("ls", missing) == (2, "", f"txnkafka: error: {missing} does not exist\n")


def test_a_directory_that_is_no_log_directory(run: Run, tmp_path: Path) -> None:
    answer = run("cat", tmp_path)
    assert answer.status == 2
    assert answer.stderr == (
        f"txnkafka: error: {tmp_path} is not a Kafka log directory: "
        "it contains neither partition directories (topic-0) nor segments (*.log)\n"
    )


def test_a_bug_report_is_requested(run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cat, "readable_partitions", lambda *_: 1 // 0)
    answer = run("cat", log_dir)
    assert answer.status == 2
    assert answer.stderr == (
        "txnkafka: error: this is a bug in txnkafka (ZeroDivisionError: integer division or modulo by zero); "
        "run the command again with TXNKAFKA_TRACEBACK=1 and report its output\n"
    )
    monkeypatch.setenv("TXNKAFKA_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["cat", str(log_dir)], standalone_mode=False)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(13, "Permission denied", "/data"), "/data: Permission denied"),
        (OSError("no such thing"), "no such thing"),
        (MemoryError("no memory for 7 bytes"), "not enough memory: no memory for 7 bytes"),
    ],
)
def test_errors_of_the_system_are_one_line(
    run: Run, log_dir: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, text: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(cat, "readable_partitions", fail)
    answer = run("cat", log_dir)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr == f"txnkafka: error: {text}\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_early_gets_no_complaint(log_dir: Path, unbuffered: str) -> None:
    segment = log_dir / "orders-1" / FIRST_SEGMENT
    command = [*COMMAND, "dump", *[str(segment)] * 5000]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nothing_is_lost_on_the_way_out(log_dir: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [*COMMAND, "cat", str(log_dir), "--format", "csv"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert len(done.stdout.splitlines()) == 5


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_encoding_without_the_symbols(log_dir: Path, unbuffered: str, encoding: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*COMMAND, "show", str(log_dir)], capture_output=True, env=environment)
    assert done.returncode == 1
    assert done.stdout.isascii() == (encoding == "ascii")


def test_output_that_cannot_be_written_is_one_line(log_dir: Path) -> None:
    with open(os.devnull, "rb") as nothing:
        done = subprocess.run(
            [*COMMAND, "ls", str(log_dir)], stdout=nothing, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "txnkafka: error: cannot write the output: Bad file descriptor\n"


def test_no_output_is_wanted(log_dir: Path) -> None:
    command = f"exec {shlex.join([*COMMAND, 'ls', str(log_dir)])} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_types_of_parameters_are_those_of_older_clicks() -> None:
    """Before click 8.5 the class is not generic, and cannot be subscripted when a module is loaded."""
    program = (
        "import click; click.ParamType.__class_getitem__ = None; "
        "from txnkafka.cli.main import cli; cli.main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["ls", "cat"])
def test_a_command_loads_nothing_heavy(log_dir: Path, command: str) -> None:
    program = (
        "import sys; from txnkafka.cli.main import cli; cli.main(standalone_mode=False); "
        f"sys.stderr.write(' '.join(name for name in {HEAVY} if name in sys.modules))"
    )
    arguments = [sys.executable, "-c", program, "-q", command, str(log_dir)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr == ""


def test_quiet_and_verbose_behind_the_command(run: Run, log_dir: Path) -> None:
    path = log_dir / "orders-1" / FIRST_SEGMENT
    path.write_bytes(path.read_bytes() + b"\1" * 20)
    assert "warning" in run("lso", log_dir).stderr
    assert run("lso", log_dir, "-q").stderr == run("-q", "lso", log_dir).stderr == ""
    assert run("lso", log_dir, "--verbose") == run("-v", "lso", log_dir)

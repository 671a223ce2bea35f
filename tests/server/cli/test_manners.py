"""What users expect of every command: -q and -v on both sides, examples, completion, 130 after Ctrl-C."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import click
import pytest

from tests.unit.cli.conftest import Run
from txnkafka.cli.examples import AFTER_INTERRUPTION, EXAMPLES
from txnkafka.cli.main import COMMANDS, cli
from txnkafka.cli.shells import _Bash

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "txnkafka"]


def completed(*words: str, shell: str = "bash") -> list[str]:
    """What a shell is told about the last word; fish asks with the word, others with its number."""
    environment = {
        **os.environ,
        "_TXNKAFKA_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words[:-1] if shell == "fish" else words),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
    }
    program = "import sys; sys.argv = ['txnkafka']; from txnkafka.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_quiet_and_verbose_stand_on_either_side(run: Run, log_dir: Path) -> None:
    before, behind = run("-q", "cat", log_dir), run("cat", log_dir, "-q")
    assert before == behind
    assert behind.stderr == ""
    assert run("cat", log_dir).stderr != ""
    assert run("-v", "cat", log_dir) == run("cat", log_dir, "--verbose")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_are_taken(run: Run, name: str) -> None:
    """Their options are there, and have values that are allowed."""
    help_text = run(name, "--help").stdout
    for example in EXAMPLES[name]:
        own = example.command.partition("$(")[2].partition(")")[0] or example.command.partition(" | ")[0]
        program, command, *arguments = shlex.split(own)
        assert (program, command) == ("txnkafka", name)
        assert f"  {example.command}\n      {example.purpose}\n" in help_text
        found = cli.get_command(click.Context(cli), name)
        assert found is not None
        found.make_context(name, arguments)


def test_nothing_else_has_examples() -> None:
    assert sorted(EXAMPLES) == sorted(COMMANDS)
    assert set(AFTER_INTERRUPTION) <= set(COMMANDS)


def test_commands_options_and_values_are_completed() -> None:
    assert completed("txnkafka", "ver") == ["plain,verify"]
    assert completed("txnkafka", "ls", "/data", "--fo") == ["plain,--format"]
    assert completed("txnkafka", "ls", "/data", "--format", "js") == ["plain,json", "plain,jsonl"]
    assert completed("txnkafka", "cat", "/data", "--format", "js") == ["plain,jsonl"]


@pytest.mark.parametrize("words", [("ls",), ("dump",), ("repair",), ("handover",), ("export", "--output")])
def test_paths_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert completed("txnkafka", *words, "/va") == ["file,/va"]


def test_settings_of_a_broker_are_completed() -> None:
    """In bash without a space: the value follows."""
    serve = ("txnkafka", "serve", "--config")
    assert completed(*serve, "num.p") == ["plain,num.partitions="]
    assert completed(*serve, "log.retention.h") == ["plain,log.retention.hours="]
    assert completed(*serve, "advertised") == ["plain,advertised.listeners="]
    assert completed("txnkafka", "serve", "--config-file", "/va") == ["file,/va"]
    assert "[[ $value == *= ]] && compopt -o nospace" in _Bash.source_template


def test_topics_and_partitions_are_completed(log_dir: Path) -> None:
    place = str(log_dir)
    assert completed("txnkafka", "ls", place, "--topic", "or") == ["plain,orders"]
    assert completed("txnkafka", "cat", place, "-n", "5", "--partition", "orders-") == [
        "plain,orders-0", "plain,orders-1",
    ]  # fmt: skip
    both = ["plain,orders-0", "plain,orders-1"]
    assert completed("txnkafka", "ls", place, "--topic", "orders", "--partition", "") == both
    assert completed("txnkafka", "ls", place, "--topic", "ord*", "--topic=x", "--partition", "") == both
    assert completed("txnkafka", "ls", place, "--topic", "other", "--partition", "") == []
    assert completed("txnkafka", "ls", "--topic", "or") == []
    assert completed("txnkafka", "ls", place + "/gone", "--topic", "or") == []
    assert completed("txnkafka", "ls", "s3://bucket/logs", "--topic", "or") == []


def test_values_behind_an_equals_sign_are_completed(log_dir: Path) -> None:
    """bash has three words there and completes the last, others replace the whole word."""
    ls = ("txnkafka", "ls", str(log_dir))
    assert completed(*ls, "--topic", "=", "or") == ["plain,orders"]
    assert completed(*ls, "--topic", "=") == ["plain,orders"]
    assert completed(*ls, "--topic=or", shell="zsh") == ["plain", "--topic=orders", "_"]
    assert completed(*ls, "--topic=or", shell="fish")[0].startswith("plain,--topic=orders")
    export = ("txnkafka", "export", str(log_dir))
    assert completed(*export, "--output", "=", "/va") == ["file,/va"]
    assert completed(*export, "--output=/va", shell="zsh") == ["file", "/va", "_"]


def test_words_are_expanded_as_the_shell_will(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(log_dir.parent))
    for path in ("~/data", "$HOME/data", "${HOME}/data/orders-0"):
        assert completed("txnkafka", "ls", path, "--topic", "or") == ["plain,orders"]


@pytest.mark.parametrize(
    ("shell", "parts"),
    [
        ("bash", ["complete -o nosort"]),
        ("zsh", ["compset -P '--*='; _path_files -f"]),
        ("fish", ["complete --do-complete", "string split --max 1"]),
    ],
)
def test_the_scripts_of_the_shells(shell: str, parts: list[str]) -> None:
    """They contain what click's own lack: in another version's script nothing might have been replaced."""
    environment = {**os.environ, "_TXNKAFKA_COMPLETE": f"{shell}_source"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=True)
    assert [part for part in parts if part not in done.stdout] == []


@pytest.mark.parametrize(("name", "words"), [("ls", "nothing was changed"), *AFTER_INTERRUPTION.items()])
def test_an_interrupted_command_says_how_to_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    command = cli.get_command(click.Context(cli), name)
    monkeypatch.setattr(command, "callback", interrupted)
    arguments = {
        "export": ["/data", "--to", "parquet", "--output", "o"],
        "handover": ["/data", "--to", "kafka"],
        "spark-bundle": [],
    }
    answer = run(name, *arguments.get(name, ["/data"]))
    assert answer == (130, "", f"txnkafka: error: interrupted; {words}\n")


def test_ctrl_c(tmp_path: Path) -> None:
    """In a process of its own, while it is at work."""
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(bytes(0))
    program = (
        "import time; from txnkafka.cli import ls, main; "
        "ls.readable_partitions = lambda *_: print('ready', flush=True) or time.sleep(60); main.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "ls", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)  # until it sleeps
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, b"txnkafka: error: interrupted; nothing was changed\n")


def test_ctrl_c_while_the_command_is_imported() -> None:
    program = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from txnkafka.cli.program import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"txnkafka: error: interrupted; nothing was changed\n")


def test_the_installed_command_is_that_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"txnkafka": "txnkafka.cli.program:main"}


@pytest.mark.parametrize("messages", ["2>&-", "2>/dev/full"])
def test_the_status_does_not_depend_on_where_messages_go(log_dir: Path, messages: str) -> None:
    """Status 1 would mean findings, and 120 that Python could not write a buffer at its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for arguments, status, lines in (([log_dir], 0, True), (["/nowhere"], 2, False)):
        command = shlex.join([*COMMAND, "cat", *map(str, arguments)])
        done = subprocess.run(
            f"exec {command} {messages}", shell=True, stdout=subprocess.PIPE, env=environment, check=False
        )
        assert (done.returncode, bool(done.stdout)) == (status, lines)


def test_usage_errors_look_like_all_others(run: Run) -> None:
    answer = run("dump")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr == (
        "txnkafka: error: Missing argument 'FILE...'.\n"
        "txnkafka: note: 'txnkafka dump --help' explains its arguments and options\n"
    )

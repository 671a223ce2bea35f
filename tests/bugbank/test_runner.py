"""The runner counts only the recorded failure as noticing a bug: not an unchanged package, a broken program,
or another message."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bugbank.__main__ import record, recorded
from tests.bugbank.patches import Patch, PatchError, parse_patch, read_patch
from tests.bugbank.runner import NOTES, prepared, run, wrong_package
from tests.bugbank.witness import statement_at, words

NAMED = "Caught by: tests/unit/storage/formats/test_layout.py -k test_file_name\n"
SAYS = "Says: ^AssertionError:.* @ assert file_name\n"
HEAD = f"Bug: b\nBreaks: i\n{NAMED}{SAYS}"
FILE = "In: file_name\n"
OLD = '    return f"{base_offset:020d}.{kind}"\n'


def patch(*lines: str, head: str = HEAD) -> Patch:
    return parse_patch("canary", head + FILE + "".join(lines))


def test_a_bug_is_noticed() -> None:
    outcome = run(patch(f"-{OLD}", f"+{OLD.replace('20', '21')}"))
    assert outcome.is_caught, outcome.text
    assert "AssertionError" in outcome.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param(OLD, "tests passed, the bug was not noticed", id="no bug"),
        pytest.param("    return (\n", "0 tests passed", id="no program", marks=pytest.mark.slow),
        pytest.param("    return no_such_name\n", "says not", id="a name that is not there"),
        pytest.param(
            "    return {}[kind]\n", "but KeyError: ", id="a key that is not there", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_not_noticed(line: str, text: str) -> None:
    added = "".join(f"+{each}\n" for each in line.splitlines())
    outcome = run(patch(f"-{OLD}", added))
    assert not outcome.is_caught
    assert text in outcome.text


@pytest.mark.slow
def test_unrecorded_failures_do_not_count() -> None:
    bug = [f"-{OLD}", f"+{OLD.replace('20', '21')}"]
    outcome = run(patch(*bug, head=HEAD.replace(SAYS, "")))
    assert not outcome.is_caught
    assert "no line Says" in outcome.text


@pytest.mark.slow
def test_recorded_messages_complete_a_patch(tmp_path: Path) -> None:
    path = tmp_path / "canary.patch"
    path.write_text(HEAD.replace(SAYS, "") + FILE + f"-{OLD}+{OLD.replace('20', '21')}")
    assert record(path)[0]
    once = read_patch(path)
    assert run(once).is_caught
    assert once.caught_by[0].says is not None
    record(path)
    assert read_patch(path) == once


@pytest.mark.slow
def test_what_broken_code_raises_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "canary.patch"
    path.write_text(HEAD + FILE + f"-{OLD}+    return {{}}[kind]\n")
    before = path.read_text()
    assert record(path)[0] is False
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("said", "same", "other"),
    [
        ("AssertionError: assert 3 == 4 @ assert n == 4", "AssertionError: 5 == 4 @ assert n == 4", "n == 5"),
        ("LogDirError: /tmp/a: no (12) @ f()", "LogDirError: /var/b: no (7) @ f()", "LogDirError: no @ f()"),
        ("ValueError: a|b 0x7f1 @ f(x[0])", "ValueError: a|b 0x8ab @ f(x[0])", "ValueError: a @ f(x[0])"),
        ("KafkaError:  @ g()", "KafkaError: failed @ g()", "LogDirError:  @ g()"),
    ],
)
def test_recorded_words_fit_other_numbers_and_paths_only(said: str, same: str, other: str) -> None:
    assert re.search(recorded(said), said)
    assert re.search(recorded(said), same)
    assert not re.search(recorded(said), other)


def test_the_words_of_an_error_end_with_the_statement_of_the_test() -> None:
    with pytest.raises(ValueError, match="no number") as caught:
        int_of(
            "no number",
        )
    assert words(caught.value).endswith('@ raise ValueError(f"{text} is none") from None')
    source = "def f():\n    with a(\n        1\n    ):\n        assert (\n            x\n        )\n"
    assert [statement_at(source, line) for line in (1, 2, 4, 6)] == [
        "def f():",
        "with a( 1 ):",
        "with a( 1 ):",
        "assert ( x )",
    ]


def int_of(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text} is none") from None


@pytest.mark.parametrize(
    ("package", "has_workers", "noted", "reason"),
    [
        ("/copy/txnkafka/__init__.py", False, "", ""),
        ("/copy/txnkafka/__init__.py", True, "7 /copy/txnkafka/__init__.py\n", ""),
        ("/checkout/txnkafka/__init__.py", False, "", "/checkout/txnkafka/__init__.py was tested, not"),
        ("/copy/txnkafka/__init__.py", True, "", "no Python worker of Spark's had the patched package"),
        ("/copy/txnkafka/__init__.py", True, "1 /copy/txnkafka/__init__.py\n", "no Python worker of Spark's"),
        (
            "/copy/txnkafka/__init__.py",
            True,
            "7 /copy/txnkafka/__init__.py\n8 /checkout/txnkafka/__init__.py\n",
            "/checkout/txnkafka/__init__.py was tested, not the patched package",
        ),
    ],
)
def test_every_process_must_have_had_the_copy(
    package: str, has_workers: bool, noted: str, reason: str
) -> None:
    found = {"package": package, "process": 1, "has_workers": has_workers}
    said = wrong_package(Path("/copy"), found, noted)
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def test_a_process_of_the_copy_records_the_path_of_its_package(tmp_path: Path) -> None:
    """Spark's workers find the copy by PYTHONPATH alone."""
    with prepared(parse_patch("canary", HEAD)) as top:
        notes = tmp_path / "notes"
        environment = {**os.environ, "PYTHONPATH": str(top), NOTES: str(notes)}
        program = "import os, txnkafka; print(os.getpid(), txnkafka.__file__)"
        command = [sys.executable, "-c", program]
        said = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
        assert notes.read_text() == said
        assert Path(said.split()[1]).is_relative_to(top)


@pytest.mark.slow
def test_a_timeout_does_not_count_as_noticing() -> None:
    outcome = run(patch(f"-{OLD}", "+    while True:\n", "+        pass\n"), limit_seconds=5)
    assert not outcome.is_caught
    assert "nothing was noticed in 5 s" in outcome.text


@pytest.mark.slow
def test_no_change_is_not_noticed() -> None:
    outcome = run(parse_patch("canary", HEAD))
    assert not outcome.is_caught
    assert "the bug was not noticed" in outcome.text


@pytest.mark.slow
def test_a_missing_test_notices_nothing() -> None:
    head = HEAD.replace("test_file_name", "no_such_test")
    assert not run(patch(f"-{OLD}", f"+{OLD.replace('20', '21')}", head=head)).is_caught


@pytest.mark.slow
def test_each_test_that_is_named_has_to_notice() -> None:
    head = HEAD + "Caught by: tests/unit/storage/formats/test_index.py -k test_empty\nSays: .\n"
    outcome = run(patch(f"-{OLD}", f"+{OLD.replace('20', '21')}", head=head))
    assert not outcome.is_caught
    assert outcome.text.startswith("tests/unit/storage/formats/test_index.py -k test_empty: ")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            ["-    return what_was_there_once\n"],
            "this code occurs 0 times in file_name",
        ),
        (["-\n", "+x = 1\n"], "this code occurs 0 times"),
    ],
)
def test_a_patch_that_does_not_fit(lines: list[str], text: str) -> None:
    outcome = run(patch(*lines))
    assert not outcome.is_caught
    assert f"the patch does not apply: {text}" in outcome.text


def test_a_compiled_module_that_is_not_built() -> None:
    outcome = run(parse_patch("canary", HEAD + "In: implementations\n-return\n+return 1 +\n"))
    assert "crc32c.pyx is compiled, but no line says" in outcome.text


@pytest.mark.parametrize(
    "text",
    [
        "Bug: b\nBreaks: i\n" + FILE + "+x\n",
        "Bug: b\nno head\n" + FILE + "+x\n",
        f"Bug: b\nBreaks: i\n{SAYS}{NAMED}" + FILE + "+x\n",
        HEAD + SAYS + FILE + "+x\n",
        HEAD.replace(SAYS, "Says: (\n") + FILE + "+x\n",
        HEAD + FILE + "*x\n",
    ],
)
def test_what_is_no_patch(text: str) -> None:
    with pytest.raises(PatchError, match="canary"):
        parse_patch("canary", text)

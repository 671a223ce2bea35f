"""A plugin of pytest that reports failures, their messages and the tested package to the runner.

A failure is reported as one line, ``TYPE: MESSAGE @ STATEMENT``: the exception, and the innermost statement
of the tests that it passed through. A patch must name it with ``Says``, because an exception alone proves
nothing: broken code raises exceptions, too.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import sys
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

REPORT = "TXNKAFKA_BUGBANK_REPORT"
# errors of broken code; no test expects these
BROKEN = (ImportError, SyntaxError, NameError, AttributeError, TypeError, LookupError)
LONGEST_MESSAGE = 2000

_failures: list[dict[str, object]] = []
_passed: list[str] = []

# the same examples in every run; they are not shrunk
settings.register_profile(
    "bugbank",
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def pytest_configure() -> None:
    settings.load_profile("bugbank")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is not None:
        found = [(words(each), is_broken(each)) for each in single_errors(call.excinfo.value)]
        _failures.append({"test": item.nodeid, "when": call.when, "errors": found})
    elif call.when == "call":
        _passed.append(item.nodeid)
    return (yield)


def single_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from single_errors(each)
    else:
        yield error


def is_broken(error: BaseException) -> bool:
    """Return whether an error probably comes from code that does not work at all."""
    return isinstance(error, BROKEN) or not isinstance(error, (Exception, pytest.fail.Exception))


def words(error: BaseException) -> str:
    """Return ``TYPE: MESSAGE @ STATEMENT`` as one line."""
    message = " ".join(str(error).split())[:LONGEST_MESSAGE]
    return f"{type(error).__name__}: {message} @ {_statement(error)}"


def _statement(error: BaseException) -> str:
    """Return the source of the innermost statement in the tests that an error passed through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "tests" in Path(frame.filename).parts and frame.lineno is not None:
            return statement_at("".join(linecache.getlines(frame.filename)), frame.lineno)
    return ""


def statement_at(source: str, line: int) -> str:
    """Return the statement on a line with single spaces; of a compound statement its head."""
    found = (line, line)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = getattr(body[0], "lineno", line + 1) - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= last:
                found = (node.lineno, last)
    return " ".join(" ".join(source.splitlines()[found[0] - 1 : found[1]]).split())


def pytest_sessionfinish() -> None:
    import txnkafka

    report = {
        "package": txnkafka.__file__,
        "failures": _failures,
        "passed": len(_passed),
        "process": os.getpid(),
        "has_workers": _has_workers(),
    }
    Path(os.environ[REPORT]).write_text(json.dumps(report), encoding="utf-8")


def _has_workers() -> bool:
    """Return whether Spark was started; its Python workers are separate processes."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_gateway", None) is not None

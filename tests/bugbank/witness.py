"""A plugin of pytest that tells the runner which package was tested, and what failed how.

A bug is noticed when a test fails because something is not so: an assertion, an error that was expected and
did not come, a refusal of the package. A test that fails because the patched package is no program any more
has noticed nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

REPORT = "TXNKAFKA_BUGBANK_REPORT"
BROKEN = (ImportError, SyntaxError, NameError, AttributeError, TypeError)

_failures: list[tuple[str, str, bool]] = []
_passed: list[str] = []

# the same examples each time; nobody reads the smallest one
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
        error = call.excinfo.value
        notices = call.when == "call" and is_notice(error)
        _failures.append((item.nodeid, f"{type(error).__name__}: {error}"[:300], notices))
    elif call.when == "call":
        _passed.append(item.nodeid)
    return (yield)


def is_notice(error: BaseException) -> bool:
    """Whether an error says that something is not so."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_notice(each) for each in error.exceptions)
    return isinstance(error, (Exception, pytest.fail.Exception)) and not isinstance(error, BROKEN)


def pytest_sessionfinish() -> None:
    import txnkafka

    report = {"package": txnkafka.__file__, "failures": _failures, "passed": len(_passed)}
    Path(os.environ[REPORT]).write_text(json.dumps(report), encoding="utf-8")

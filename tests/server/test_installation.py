"""The checks before a build, and the place where Spark looks for the data source after an editable
installation."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.pages import ROOT


def backend() -> dict[str, Any]:
    """The build backend, as pip loads it: without setuptools."""
    return runpy.run_path(str(ROOT / "ci" / "build_backend.py"))


@pytest.mark.parametrize(
    "hook", ["get_requires_for_build_wheel", "get_requires_for_build_sdist", "build_wheel"]
)
def test_an_old_python_is_refused_in_one_line(hook: str) -> None:
    hooks = backend()
    hooks["check_python"].__globals__["sys"] = SimpleNamespace(
        version_info=(3, 10, 13, "final", 0), executable="/usr/bin/python3.10", platform="linux"
    )
    with pytest.raises(SystemExit) as stopped:
        hooks[hook]()
    words = "txnkafka needs Python 3.11 or newer; this is 3.10.13 (/usr/bin/python3.10)."
    assert str(stopped.value).startswith(words)
    assert len(str(stopped.value).splitlines()) == 1


def test_a_missing_compiler_is_reported_before_any_download(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = backend()
    assert "cython" in " ".join(hooks["get_requires_for_build_wheel"]())
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(SystemExit, match="cannot be compiled without a C compiler") as stopped:
        hooks["get_requires_for_build_editable"]()
    assert len(str(stopped.value).splitlines()) == 1
    assert "cython" in " ".join(hooks["get_requires_for_build_sdist"]()), "an sdist needs no compiler"


def test_pip_installs_nothing_before_the_checks() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "\nrequires = [] " in text
    assert (ROOT / "ci" / "build_backend.py").exists()
    assert "include ci/build_backend.py" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8")


def test_spark_finds_the_data_source_from_every_directory(tmp_path: Path) -> None:
    names = "[name for _, name, _ in pkgutil.iter_modules() if name.startswith('pyspark_')]"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", f"import pkgutil; print({names})"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "['pyspark_txnkafka']", done.stderr

"""The messages about executors that cannot run the package."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import txnkafka
from txnkafka.spark.executors import LIBRARIES, complaints, look_for, needed_libraries

HERE = {
    "host": "driver",
    "executable": "/venv/bin/python",
    "soabi": "cpython-311-x86_64-linux-gnu",
    "machine": "linux x86_64",
    "broken": {},
    "core": None,
    "version": "1.0",
    "path": "/venv/txnkafka/__init__.py",
}


def place(host: str = "node-1", **found: Any) -> dict[str, Any]:
    return {**HERE, "host": host, "executable": "/usr/bin/python3", **found}


def test_executors_like_the_driver_are_fine() -> None:
    assert list(complaints(HERE, [place(), place("node-2")])) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            {
                "broken": {
                    "numpy": "ModuleNotFoundError: No module named 'numpy'",
                    "isal": "ImportError: libc",
                }
            },
            "libraries are missing in /usr/bin/python3: numpy isal. Install them there (/usr/bin/python3 -m "
            "pip install numpy isal), or let PYSPARK_PYTHON name an interpreter that has them (numpy: "
            "ModuleNotFoundError: No module named 'numpy'; isal: ImportError: libc)",
        ),
        (
            {"machine": "linux aarch64", "core": "ImportError: wrong ELF class"},
            "/usr/bin/python3 is built for linux aarch64, the driver's /venv/bin/python for linux x86_64; "
            "run the driver on a machine like the executors, or install txnkafka on all of them with pip",
        ),
        (
            {"soabi": "cpython-311-x86_64-linux-musl"},
            "/usr/bin/python3 is built for cpython-311-x86_64-linux-musl, the driver's /venv/bin/python for "
            "cpython-311-x86_64-linux-gnu; run the driver on a machine like the executors, or install "
            "txnkafka on all of them with pip",
        ),
        (
            {"core": "ImportError: version GLIBC_2.38 not found"},
            "/usr/bin/python3 cannot load the compiled core: ImportError: version GLIBC_2.38 not found",
        ),
        (
            {"version": "0.9", "path": "/usr/lib/txnkafka/__init__.py"},
            "/usr/bin/python3 has txnkafka 0.9 from /usr/lib/txnkafka/__init__.py, the driver 1.0; start a "
            "new session, without another archive of txnkafka",
        ),
    ],
)
def test_a_line_for_each_thing_that_is_wrong(found: dict[str, Any], said: str) -> None:
    executors = [place("b", **found), place("a", **found), place("a", **found), place("c")]
    assert list(complaints(HERE, executors)) == [f"a, b: {said}"]


def test_executors_need_the_libraries_of_reading() -> None:
    """Not those of the command line and of the broker."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    required = {line.partition(">")[0] for line in project["dependencies"]}
    assert set(LIBRARIES) == required - {"click", "google-re2"} | {"pyarrow"}


def test_the_look_of_the_driver_at_itself() -> None:
    (here,) = look_for((*needed_libraries(), "no_such_library"))([])
    assert here["broken"] == {"no_such_library": "ModuleNotFoundError: No module named 'no_such_library'"}
    assert here["core"] is None
    assert here["version"] == txnkafka.__version__

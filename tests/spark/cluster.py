"""Driver programs on ``local-cluster[2,1,1024]``: two executors, each a process with its own Python workers.

A driver is a separate process, too, because a process has one Spark session. It gets the checkout through its
own ``sys.path``, not through the environment, which executors would inherit. The Python of the executors has
the libraries for reading, but no txnkafka. It is made once, under build/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from tests.spark.conftest import ROOT, SETTINGS
from txnkafka.spark import configure

__all__ = ["empty_python", "executor_python", "pip_python", "run_driver", "session"]

LIBRARIES = ("cramjam", "isal", "lz4", "numpy", "pyarrow", "xxhash", "zstandard")
TIMEOUT = 300


def executor_python() -> Path:
    """Return an interpreter with the libraries in the versions of this one, without txnkafka and pyspark."""
    wanted = [f"{name}=={version(name)}" for name in LIBRARIES]
    name = "-".join(
        ["executors", sys.implementation.cache_tag, *(each.partition("==")[2] for each in wanted)]
    )
    return _environment(ROOT / "build" / name, "--quiet", *wanted)


def pip_python(folder: Path) -> Path:
    """Return the same with txnkafka installed from a wheel: the one under test, or one of the checkout."""
    python = _environment(folder)
    site = subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True)
    libraries = executor_python().parent.parent / Path(site.strip()).relative_to(folder)
    (Path(site.strip()) / "libraries.pth").write_text(f"{libraries}\n")
    _pip(python, "--quiet", "--no-deps", os.environ.get("TXNKAFKA_WHEEL") or str(_wheel(folder)))
    return python


def _wheel(folder: Path) -> Path:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT], check=True)
    (wheel,) = folder.glob("txnkafka-*.whl")
    return wheel


def empty_python(folder: Path) -> Path:
    """Return an interpreter without any library."""
    return _environment(folder)


def _environment(folder: Path, *packages: str) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        # made beside it and renamed, so that an incomplete one is never used
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
        if packages:
            _pip(fresh / "bin" / "python", *packages)
        os.rename(fresh, folder)
    return python


def _pip(python: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", python, "install", *arguments]
    subprocess.run(command, env=without_pythonpath(), check=True)


def without_pythonpath() -> dict[str, str]:
    """Return the environment without PYTHONPATH, through which a checkout would count as installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run_driver(
    program: Path, python: Path, folder: Path, *arguments: str, submit: tuple[str, ...] = ()
) -> Any:
    """Run a driver and return the argument of its ``finish``. ``submit`` are options of spark-submit."""
    environment = {
        **without_pythonpath(),
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(spark_home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": " ".join([*submit, "pyspark-shell"]),
    }
    result = folder / "result.json"
    command = [sys.executable, str(program), str(ROOT), str(result), *arguments]
    with (folder / "driver.log").open("w+") as log:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT
        )
        log.seek(0)
        assert done.returncode == 0, log.read()
    return json.loads(result.read_text())


def spark_home(folder: Path) -> Path:
    """Return Spark as pip installed it, with a separate ``work`` directory."""
    home = folder / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            (home / each.name).symlink_to(each)
    return home


def session(**settings: str) -> SparkSession:
    """Start the session of a driver: two executors of one core each."""
    builder = configure(SparkSession.builder.master("local-cluster[2,1,1024]").appName("txnkafka tests"))
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

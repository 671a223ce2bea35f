"""Importing a package loads no heavy library: these are imported when they are first used."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import txnkafka
import txnkafka.log

HEAVY = ("asyncio", "fsspec", "numpy", "pandas", "pyarrow", "pyspark", "re2", "rich")
PACKAGE = Path(txnkafka.__file__).parent
ROOMS = sorted(f"txnkafka.{init.parent.name}" for init in PACKAGE.glob("*/__init__.py"))


# imported where Spark or an event loop runs; they must not import more
NEEDED = {"txnkafka.spark": ["pyspark"], "txnkafka.aio": ["asyncio"]}


def loaded_by(module: str) -> list[str]:
    program = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("module", ["txnkafka", "txnkafka.cli.main", "txnkafka.log", *ROOMS])
def test_loads_nothing_heavy(module: str) -> None:
    assert loaded_by(module) == NEEDED.get(module, [])


def test_a_heavy_import_would_be_seen() -> None:
    assert "asyncio" in loaded_by("asyncio")


@pytest.mark.parametrize("module", ["txnkafka", "txnkafka.log"])
def test_loads_no_other_module(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert {name for name in loaded if name.startswith("txnkafka")} == {"txnkafka", module}


def test_reading_loads_no_broker() -> None:
    names = "txnkafka.LogDir, txnkafka.PartitionView, txnkafka.KafkaError"
    program = f"import sys, txnkafka; {names}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    rooms = ("asyncio", "txnkafka.broker", "txnkafka.embedded", "txnkafka.server")
    assert [name for name in loaded if name.startswith(rooms)] == []


def test_only_serving_loads_an_event_loop() -> None:
    assert "asyncio" in loaded_by("txnkafka.server.server_thread")


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in (txnkafka, txnkafka.log) for name in module.__all__]
)
def test_public_name_is_there(module: ModuleType, name: str) -> None:
    assert getattr(module, name) is not None
    assert name in dir(module)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LogDirectory'"):
        txnkafka.LogDirectory  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'open_log'"):
        txnkafka.log.open_log  # noqa: B018


def test_version_is_that_of_the_installed_package() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert txnkafka.__version__ == project["version"]


def test_a_source_tree_without_compiled_modules_says_so(tmp_path: Path) -> None:
    """It hides the package that was installed from it while Python runs inside of it."""
    shutil.copytree(PACKAGE, tmp_path / "txnkafka", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for program in ("import txnkafka; txnkafka.LogDir", "from txnkafka.log import DataDirectory"):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.stderr.splitlines()[-1] == (
            f"ImportError: {tmp_path}/txnkafka is source code without modules compiled for this Python; run "
            "Python in another directory, where the installed package is found, or compile them: "
            "pip install -e ."
        )
    subprocess.run([sys.executable, "-c", "import txnkafka"], cwd=tmp_path, check=True)


def test_a_broker_without_patterns_does_not_load_re2(tmp_path: Path) -> None:
    program = f"""
import sys
from txnkafka.broker.broker import open_broker
from txnkafka.broker.host import CallerHost
from txnkafka.coordinator.re2_pattern import Re2Pattern
from txnkafka.env.data_files import LocalDataFiles

broker = open_broker(LocalDataFiles(), {str(tmp_path)!r}, now_ms=0)
CallerHost(broker, lambda: 0).idle()
broker.close()
before = "re2" in sys.modules
Re2Pattern("a")
print(before, "re2" in sys.modules)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]

"""The archive for executors: the whole package, nothing else, reproducible, importable."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import txnkafka
from tests.archives import unpack
from txnkafka.spark import bundle as bundling
from txnkafka.spark.bundle import bundle

PACKAGE = Path(txnkafka.__file__).parent
CACHE_TAG = sys.implementation.cache_tag


def members() -> dict[str, tarfile.TarInfo]:
    return {each.name: each for each in tarfile.open(fileobj=io.BytesIO(bundle().content))}


@pytest.mark.slow
def test_it_holds_the_modules_and_nothing_else() -> None:
    sources = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    compiled = {f"_core/{path.stem}" for path in PACKAGE.glob("_core/*.pyx")}
    found = set(members())
    assert found >= sources
    rest = sorted(found - sources)
    assert {name.partition(".")[0] for name in rest if name.startswith("_core/")} == compiled
    assert [name for name in rest if not name.startswith("_core/")] == [
        f"txnkafka-{txnkafka.__version__}.dist-info/METADATA"
    ]


@pytest.mark.slow
def test_the_same_package_gives_the_same_bytes() -> None:
    assert bundle() == bundle()
    assert {(each.mtime, each.uid, each.gid, each.uname, each.gname) for each in members().values()} == {
        (0, 0, 0, "", "")
    }
    assert bundle().content[4:8] == bytes(4)  # the time in the header of gzip


@pytest.mark.slow
def test_the_name_has_version_and_platform() -> None:
    assert bundle().name.startswith(f"txnkafka-{txnkafka.__version__}-cpython-{CACHE_TAG.partition('-')[2]}")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("scan.py", True),
        (f"scan{bundling.EXTENSION_SUFFIXES[0]}", True),
        ("scan.cpython-39-x86_64-linux-gnu.so", False),
        ("scan.c", False),
        ("scan.pyx", False),
        ("scan.pyi", False),
        ("crc32c.h", False),
        ("scan.cpython-311.pyc", False),
        ("py.typed", False),
    ],
)
def test_what_is_code(name: str, taken: bool) -> None:
    assert bundling._is_code(name) is taken


@pytest.mark.slow
@pytest.mark.process
def test_it_is_the_package_where_it_is_unpacked(tmp_path: Path) -> None:
    """The archive takes precedence over an installed version."""
    with tarfile.open(fileobj=io.BytesIO(bundle().content)) as archive:
        unpack(archive, tmp_path / "txnkafka")
    other = tmp_path / "site" / "txnkafka-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: txnkafka\nVersion: 0.0.1\n")
    program = "import txnkafka, txnkafka._core.scan as s; print(txnkafka.__version__, s.__file__)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path / 'site'}"}
    shown = subprocess.check_output([sys.executable, "-c", program], env=environment, cwd=tmp_path, text=True)
    version, _, path = shown.strip().partition(" ")
    assert version == txnkafka.__version__
    assert path.startswith(f"{tmp_path}/txnkafka/_core/scan.")

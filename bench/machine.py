"""The machine and the versions that a table of figures belongs to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.java import JavaProcess
from tests.conformance.maven import kafka_jars

__all__ = ["describe"]

PACKAGES = (
    "numpy",
    "cramjam",
    "isal",
    "lz4",
    "zstandard",
    "aiokafka",
    "kafka-python",
    "confluent-kafka",
    "crc32c",
    "pyarrow",
    "pyspark",
    "cython",
    "uvloop",
)
HERE = Path(__file__).resolve().parent
FLAGS = ("sse4_2", "avx2", "avx512f", "vpclmulqdq", "asimd", "crc32")
JAVA_CODECS = ("lz4-java", "snappy-java", "zstd-jni")
MEMORY_BYTES = 512 << 20
RATE_ROUNDS = 5


def describe() -> dict[str, str]:
    """Return the relevant facts about the machine, as label and text."""
    java = JavaProcess()
    versions = java.ask("version")
    java.close()
    return {
        "processor": _processor(),
        "caches": _caches(),
        "memory, one core": _memory_rates(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load when the run began": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "Python": f"{platform.python_version()}, {_compiler()}",
        "Java": versions["java"],
        "Apache Kafka": versions["kafka"],
        "Go, kfake": _kfake(),
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "CRC-32C here": _crc32c(),
        "decompression here": _decompression(),
        "decompression in Java": _java_decompression(),
        "commit": _commit(),
    }


def _processor() -> str:
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    model = fields.get("model name", platform.processor() or "unknown")
    family = f"family {fields['cpu family']} model {fields['model']}, " if "cpu family" in fields else ""
    flags = " ".join(
        flag for flag in FLAGS if flag in fields.get("flags", fields.get("Features", "")).split()
    )
    return f"{model}, {family}{os.cpu_count()} processors, {flags}"


def _caches() -> str:
    found = []
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        found.append(f"L{level} {kind.lower()} {size}")
    return ", ".join(found) or "unknown"


def _memory_rates() -> str:
    source = np.ones(MEMORY_BYTES // 8, dtype=np.int64)
    target = np.empty_like(source)
    read = min(_cpu_seconds(source.max) for _ in range(RATE_ROUNDS))
    copy = min(_cpu_seconds(lambda: np.copyto(target, source)) for _ in range(RATE_ROUNDS))
    rates = (MEMORY_BYTES / read / 1e9, MEMORY_BYTES / copy / 1e9)
    return "reads {:.1f} GB/s, copies {:.1f} GB/s (512 MiB, numpy)".format(*rates)


def _cpu_seconds(work: Any) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def _compiler() -> str:
    try:
        return subprocess.run(
            ["cc", "--version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "no C compiler found"


def _kfake() -> str:
    """The versions of Go and of the module that go.mod pins."""
    try:
        go = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout.split()[2]
    except (OSError, subprocess.CalledProcessError):
        return "no Go found"
    modules = (line.split() for line in (HERE / "go" / "go.mod").read_text().splitlines())
    pinned = [words[-1] for words in modules if any(word.endswith("/kfake") for word in words)]
    return f"{go}, {pinned[0]}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _crc32c() -> str:
    from txnkafka._core.crc32c import implementations

    return ", ".join(implementations())


def _decompression() -> str:
    """The files of the C functions that the reader calls, with the versions that lz4 and zstd report."""
    from txnkafka._core.codec_functions import codec_libraries
    from txnkafka.record import compression  # names the files of Python's bindings

    readers = {codec.label: "Python's binding" for codec in compression.CompressionType if codec}
    readers |= {codec: library.rpartition("/")[2] for codec, library in codec_libraries().items()}
    return ", ".join(f"{codec}: {library}" for codec, library in readers.items())


def _java_decompression() -> str:
    libraries = (jar.stem for name in JAVA_CODECS for jar in kafka_jars().glob(f"{name}-*.jar"))
    return ", ".join([*libraries, "gzip: java.util.zip"])


def _commit() -> str:
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

"""Jars that the tests run but the project does not contain: fetched once by Maven into ``build/``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

__all__ = ["kafka_3_9_clients", "kafka_4_3_jars", "kafka_jars", "spark_kafka_jars"]

POMS = Path(__file__).resolve().parent / "maven"
BUILD = Path(__file__).resolve().parents[2] / "build"
TOOLS = {
    "java": "Java 17 or newer (Debian, Ubuntu: openjdk-17-jdk-headless; Fedora: java-21-openjdk-devel; "
    "macOS: brew install openjdk@21)",
    "mvn": "Maven (Debian, Ubuntu, Fedora: maven; macOS: brew install maven)",
}


def kafka_jars() -> Path:
    """The directory with Apache Kafka's server, tools and clients."""
    return _fetched("kafka")


def kafka_4_3_jars() -> Path:
    """The directory with the server and the tools of Apache Kafka 4.3."""
    return _fetched("kafka-4.3")


def kafka_3_9_clients() -> Path:
    """The directory with the clients of Apache Kafka 3.9 alone."""
    return _fetched("kafka-3.9-clients")


def spark_kafka_jars() -> list[Path]:
    """Spark's own Kafka source, and what it needs beside Spark."""
    return sorted(_fetched("spark-kafka").glob("*.jar"))


def _fetched(name: str) -> Path:
    """``build/jars/NAME``; raises RuntimeError that says what is missing and how to get it."""
    target, pom = BUILD / "jars" / name, POMS / f"{name}.xml"
    stamp, wanted = target / "fetched", pom.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return target
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise RuntimeError(f"there is no {tool}: install {package}")
    shutil.rmtree(target, ignore_errors=True)
    print(f"fetching {name} with Maven into {target}", flush=True)
    command = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), "dependency:copy-dependencies"]
    # what is "provided" comes with Spark
    command += [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    if subprocess.run(command).returncode:
        raise RuntimeError(f"Maven could not fetch {name}; what it said is above: {' '.join(command)}")
    stamp.write_text(wanted, encoding="utf-8")
    return target


if __name__ == "__main__":
    try:
        kafka_jars()
        kafka_4_3_jars()
        kafka_3_9_clients()
        spark_kafka_jars()
    except RuntimeError as error:
        raise SystemExit(f"Conformance stopped: {error}") from None

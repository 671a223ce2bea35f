"""Jars that the tests run but the project does not contain: fetched once by Maven into ``build/``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

__all__ = [
    "jars",
    "kafka_3_9_clients",
    "kafka_4_3_jars",
    "kafka_jars",
    "rocketmq_jars",
    "spark_kafka_jars",
    "version_in",
]

POMS = Path(__file__).resolve().parent / "maven"
BUILD = Path(__file__).resolve().parents[2] / "build"
TOOLS = {
    "java": "Java 17 or newer (Debian, Ubuntu: openjdk-17-jdk-headless; Fedora: java-21-openjdk-devel; "
    "macOS: brew install openjdk@21)",
    "mvn": "Maven (Debian, Ubuntu, Fedora: maven; macOS: brew install maven)",
}


def kafka_jars() -> Path:
    """The directory with Apache Kafka's server, tools and clients."""
    return jars("kafka")


def kafka_4_3_jars() -> Path:
    """The directory with the server and the tools of Apache Kafka 4.3."""
    return jars("kafka-4.3")


def kafka_3_9_clients() -> Path:
    """The directory with the clients of Apache Kafka 3.9 alone."""
    return jars("kafka-3.9-clients")


def rocketmq_jars() -> Path:
    """The directory with Apache RocketMQ's servers and clients."""
    return jars("rocketmq")


def spark_kafka_jars() -> list[Path]:
    """Spark's own Kafka source, and what it needs beside Spark."""
    return sorted(jars("spark-kafka").glob("*.jar"))


def version_in(name: str, artifact: str) -> str:
    """The version of a dependency in ``maven/NAME.xml``."""
    pom = "{http://maven.apache.org/POM/4.0.0}"
    dependencies = ElementTree.parse(POMS / f"{name}.xml").iter(f"{pom}dependency")
    (found,) = (each for each in dependencies if each.findtext(f"{pom}artifactId") == artifact)
    return str(found.findtext(f"{pom}version"))


def jars(name: str) -> Path:
    """The directory ``build/jars/NAME`` with what ``maven/NAME.xml`` depends on, fetched unless it was.
    Raises RuntimeError that names what is missing and how to get it."""
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

"""Apache Kafka as three processes, each broker and controller; to kill and start again."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.conformance.broker import KafkaBroker, java
from tests.server.serving import free_ports

__all__ = ["KafkaCluster"]

NODES: Final = 3
PROPERTIES: Final = {
    "offsets.topic.replication.factor": f"{NODES}",
    "transaction.state.log.replication.factor": f"{NODES}",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": f"{NODES}",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "3000",
    "controlled.shutdown.enable": "true",
}


class KafkaCluster:
    """``with KafkaCluster(directory) as cluster:`` three nodes of Apache Kafka with the ids 1 to 3, and every
    partition on all of them. ``nodes`` has them by id."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None) -> None:
        ports = free_ports(2 * NODES)
        voters = [f"{number + 1}@127.0.0.1:{ports[number]}" for number in range(NODES)]
        self.nodes: dict[int, KafkaBroker] = {}
        for number in range(NODES):
            address, controller = f"127.0.0.1:{ports[NODES + number]}", f"127.0.0.1:{ports[number]}"
            own = {
                "node.id": f"{number + 1}",
                "controller.quorum.voters": ",".join(voters),
                "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
                "advertised.listeners": f"PLAINTEXT://{address}",
            }
            node = KafkaBroker(
                directory / f"{number + 1}",
                {**PROPERTIES, **(properties or {}), **own},
                is_static=True,
                jvm_options=("-Xmx384m", "-XX:+UseSerialGC"),
            )
            node.bootstrap_servers = address
            self.nodes[number + 1] = node
        self.bootstrap_servers = ",".join(node.bootstrap_servers for node in self.nodes.values())

    def __enter__(self) -> KafkaCluster:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        for node in self.nodes.values():
            options = ["format", f"--cluster-id={cluster_id}", "--config", str(node.config)]
            subprocess.run(
                java("-Xmx256m", "kafka.tools.StorageTool", *options), check=True, capture_output=True
            )
        with ThreadPoolExecutor(NODES) as threads:  # a node starts once a majority of the controllers runs
            list(threads.map(KafkaBroker.start, self.nodes.values()))
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()

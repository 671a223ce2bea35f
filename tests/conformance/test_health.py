"""What operators ask a broker to see whether it is alive: ``kafka-broker-api-versions``, and the metadata
that ``kcat -L`` lists, which is librdkafka's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.both_brokers import BROKERS, broker
from tests.conformance.broker import java
from tests.conformance.kafka_tools import QUIET
from txnkafka.server.handlers import SERVED
from txnkafka.wire.messages.apis import APIS

SECONDS = 60
TOOL = "org.apache.kafka.tools.BrokerApiVersionsCommand"


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_is_found_alive(name: str, tmp_path: Path) -> None:
    with broker(name, tmp_path, {}, ["x"]) as running:
        command = java("-Xmx256m", *QUIET, TOOL, "--bootstrap-server", running.bootstrap_servers)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert (done.returncode, "exception" in (done.stdout + done.stderr).lower()) == (0, False)
        shown = {found[1]: int(found[2]) for found in re.finditer(r"(\w+)\((\d+)\): \d", done.stdout)}
        served = {APIS[key].name: key for key in SERVED}
        assert shown.items() >= served.items()
        assert done.stdout.startswith(f"{running.bootstrap_servers} (id: 1 ")

        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        listed = admin.list_topics(timeout=SECONDS)
        host, port = running.bootstrap_servers.split(":")
        assert [(each.id, each.host, each.port) for each in listed.brokers.values()] == [(1, host, int(port))]
        assert listed.controller_id == 1
        assert listed.cluster_id
        assert "__transaction_state" in listed.topics
        assert {part.leader for topic in listed.topics.values() for part in topic.partitions.values()} == {1}

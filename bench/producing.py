"""Produce requests of 16 KB from a load generator in C, without transactions and without waiting for the
disk: CPU time of the server alone. All servers must have written the records that were sent, byte by byte."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from bench.compiled import c_program
from bench.confluent import TOPIC, create_topic
from bench.harness import DisagreementError, Timing
from bench.servers import BareServer, Kafka, Txnkafka, cpu_seconds, fresh, resident_bytes
from txnkafka._core.encode import encode_batch
from txnkafka.wire.messages import APIS, RequestHeader, write_request
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

__all__ = ["ProduceSide", "batch"]

RECORDS = 130  # of 100 bytes: 16 KB with keys
CONNECTIONS, IN_FLIGHT = 4, 8
WARM_ROUNDS = 4
PRODUCE, VERSION = 0, 7  # the last version without tagged fields is what the server in C speaks
FIELDS_OF_CLIENTS = 16  # where they begin in a batch; before are offset and epoch, which the broker assigns


def batch() -> bytearray:
    """A batch as a producer without an id sends it."""
    now_ms = int(time.time() * 1000)
    return encode_batch([(b"%016d" % i, b"%0100d" % i, now_ms, []) for i in range(RECORDS)])


class ProduceSide:
    """One server and ``count`` requests a round."""

    output = "records"

    def __init__(self, server: BareServer | Txnkafka | Kafka, count: int) -> None:
        self.name = server.name
        self._server = server
        self._count = count
        self._batch = batch()
        self._frame = fresh(f"{server.name}-frame") / "frame"
        self._sent = 0

    def warm(self) -> None:
        """Start the server, and have some rounds."""
        data = TopicProduceData(
            name=TOPIC, partition_data=(PartitionProduceData(index=0, records=self._batch),)
        )
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))
        header = RequestHeader(APIS[PRODUCE], VERSION, 1, "bench")
        self._frame.write_bytes(b"".join(map(bytes, write_request(header, request))))
        self._server.start()
        if not isinstance(self._server, BareServer):
            create_topic(self._server, 1)
        for _ in range(WARM_ROUNDS):
            self.run()

    def run(self) -> Timing:
        """One round, connections included."""
        process = self._server.process_id
        port = self._server.bootstrap_servers.rpartition(":")[2]
        arguments = [port, str(self._frame), str(CONNECTIONS), str(IN_FLIGHT), str(self._count)]
        cpu = cpu_seconds(process)
        load = subprocess.run([str(c_program("produce_load")), *arguments], capture_output=True, text=True)
        cpu = cpu_seconds(process) - cpu
        if load.returncode:
            raise RuntimeError(f"{self.name}: {load.stderr.strip()}")
        self._sent += self._count
        return Timing(cpu, int(load.stdout) / 1e9, self._count, resident_bytes(process))

    def digest(self) -> object:
        """The number of batches and their bytes, when the server has written all that were sent."""
        wanted, found = bytes(self._batch[FIELDS_OF_CLIENTS:]), 0
        for file in self._files():
            content = memoryview(file.read_bytes())
            for begin in range(0, len(content), len(self._batch)):
                if content[begin + FIELDS_OF_CLIENTS : begin + len(self._batch)] != wanted:
                    raise DisagreementError(f"{self.name}: {file} at {begin} is not what was sent")
                found += 1
        if found != self._sent:
            raise DisagreementError(f"{self.name}: {found} of {self._sent} batches are in the log")
        return "all batches, as they were sent"

    def _files(self) -> list[Path]:
        if isinstance(self._server, BareServer):
            return [self._server.file]
        return sorted((self._server.log_dir / f"{TOPIC}-0").glob("*.log"))

    def close(self) -> None:
        """Stop the server, and remove what it wrote."""
        self._server.stop()
        for file in self._files():
            file.unlink(missing_ok=True)

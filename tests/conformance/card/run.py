"""Runs the jobs of the card with every client, on `txnkafka serve` and on Apache Kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.both_brokers import BROKERS, Running, broker
from tests.conformance.card.card_clients import COMMANDS, command_of, started
from tests.conformance.card.jobs import JOBS, Job
from tests.conformance.card.session import Session
from tests.server.client_commands import Client, ClientError

__all__ = ["CONFIGS", "Found", "jobs_on_both"]

CONFIGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.partition.verification.enable": "true",
}
PARTITIONS, SECONDS = 4, 30
AT_ONCE = 2 * len(BROKERS)
LACKING = "NoSuchCommandError", "IllegalArgumentException"


class Found(NamedTuple):
    """What a job has given on each broker; ``is_lacking``: the client has no call for it."""

    lines: tuple[list[str], ...]
    is_lacking: bool = False
    detail: str = ""


def jobs_on_both(
    clients: Iterable[str], directory: Path, jobs: Iterable[Job] = JOBS
) -> dict[str, dict[str, Found]]:
    """By job and client. Some clients work at once: mostly they wait."""
    names, jobs = list(clients), list(jobs)
    for name in names:
        if name in COMMANDS:
            command_of(name)  # compiled here, and not by several threads
    found: dict[str, dict[str, Found]] = {job.name: {} for job in jobs}
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as executor:
        running = [
            stack.enter_context(broker(each, directory / each.replace(" ", "-"), CONFIGS, ()))
            for each in BROKERS
        ]
        work = [(name, each) for name in names for each in running]
        done = iter(list(executor.map(lambda both: _all(*both, jobs, directory), work)))
        for name in names:
            for job, *both in zip(jobs, next(done), next(done), strict=True):
                found[job.name][name] = _compared(both)
    return found


def _compared(both: list[tuple[list[str], ClientError | None]]) -> Found:
    lines, errors = zip(*both, strict=True)
    is_lacking = all(error is not None and error.name in LACKING for error in errors)
    return Found(lines, is_lacking, "; ".join(str(error) for error in errors if error is not None))


def _all(
    name: str, running: Running, jobs: Iterable[Job], directory: Path
) -> list[tuple[list[str], ClientError | None]]:
    client = started(name, directory / f"{name}.log")
    with contextlib.closing(client):
        return [_one(client, running, f"{name}-{number}", job) for number, job in enumerate(jobs)]


def _one(client: Client, running: Running, topic: str, job: Job) -> tuple[list[str], ClientError | None]:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
    for name, partitions in ((topic, PARTITIONS), (f"{topic}-copies", 1)):
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(SECONDS)
        deadline = time.monotonic() + SECONDS
        while admin.list_topics(name, SECONDS).topics[name].error and time.monotonic() < deadline:
            time.sleep(0.02)  # the controller has answered, and Kafka's broker may not know it yet
    try:
        return job.run(Session(client, running.bootstrap_servers, topic)), None
    except ClientError as error:
        return [f"ended: {error.name}"], error

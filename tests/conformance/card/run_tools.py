"""Runs the tool jobs of the card on both brokers."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired

from confluent_kafka import KafkaException

from tests.conformance.both_brokers import BROKERS, broker
from tests.conformance.card.run import CONFIGS
from tests.conformance.card.tool_jobs import TOOL_JOBS, Place
from tests.conformance.clients import Clients
from tests.conformance.kafka_tools import Tools

__all__ = ["tools_on_both"]


def tools_on_both(directory: Path) -> dict[str, tuple[list[str], ...]]:
    """What is printed, by job and broker."""
    with ThreadPoolExecutor(len(BROKERS)) as executor:
        both = list(executor.map(lambda name: _all(name, directory / name.replace(" ", "-")), BROKERS))
    return {job.name: tuple(each[job.name] for each in both) for job in TOOL_JOBS}


def _all(name: str, directory: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with broker(name, directory, CONFIGS, ()) as running:
        clients = Clients(running)
        at = Place(Tools(running.bootstrap_servers), clients, running.bootstrap_servers, directory)
        with contextlib.closing(clients):
            for job in TOOL_JOBS:
                try:
                    found[job.name] = job.run(at)
                except (KafkaException, TimeoutExpired, ValueError) as error:
                    found[job.name] = [f"ended: {type(error).__name__}"]
    return found

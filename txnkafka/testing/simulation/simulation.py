"""``simulate``: one run from one seed: storms and calms, the end, the checks, and a report."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from txnkafka.env import Random, random_from
from txnkafka.testing.simulation.administrator_program import AdministratorProgram
from txnkafka.testing.simulation.anomalies import MOST_SHOWN, anomalies
from txnkafka.testing.simulation.client import World
from txnkafka.testing.simulation.faults import Faults
from txnkafka.testing.simulation.group_members import GroupMembers
from txnkafka.testing.simulation.history import History
from txnkafka.testing.simulation.hostile_producer import HostileProducer
from txnkafka.testing.simulation.idempotent_program import IdempotentProgram
from txnkafka.testing.simulation.network import Network
from txnkafka.testing.simulation.node import SimulatedNode
from txnkafka.testing.simulation.preparing_program import PreparingProgram
from txnkafka.testing.simulation.quiet import Quiet, checked_end, directory_of, is_behind
from txnkafka.testing.simulation.reading_program import ReadingProgram
from txnkafka.testing.simulation.registrar_program import RegistrarProgram
from txnkafka.testing.simulation.scenery import CONFIGS, broker_config, create_topics, set_epochs, topics_of
from txnkafka.testing.simulation.scheduler import Scheduler
from txnkafka.testing.simulation.shops import SETTLE_MS, Shops
from txnkafka.testing.simulation.swarm import Swarm
from txnkafka.testing.simulation.transactional_program import TransactionalProgram

if TYPE_CHECKING:
    from txnkafka.testing.simulation.client import Client
    from txnkafka.testing.simulation.producer import Producer
    from txnkafka.testing.simulation.program import Program
    from txnkafka.testing.simulation.sending import Sending

_MS: Final = 1_000
_STEP_US: Final = 3_000
_TRANSACTIONAL: Final = HostileProducer, TransactionalProgram


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run. ``findings`` are the violations; ``last`` the last events of a run with
    findings."""

    seed: int
    events: int
    trace_hash: str
    counts: Counter[str]
    findings: list[str]
    swarm: Swarm
    last: list[str] = field(default_factory=list)


def simulate(seed: int, events: int = 10_000, swarm: Swarm | None = None) -> Report:
    """Run the simulation of a seed for at least ``events`` events, and to its calm end."""
    random = Random(f"{seed}")
    simulation = Simulation(random, swarm or Swarm.draw(random))
    findings: list[str] = []
    with random_from(Random(f"{seed} names")):
        try:
            simulation.run(events)
            findings = simulation.findings()
        except Exception as error:
            lines = traceback.format_exception(error)
            findings = [f"engine: {type(error).__name__}: {error}", *lines[-6:]]
    scheduler = simulation.scheduler
    last = [" ".join(map(str, entry)) for entry in scheduler.last] if findings else []
    return Report(
        seed, scheduler.events, scheduler.trace_hash(), simulation.counts, findings, simulation.swarm, last
    )


class Simulation:
    """The parts of a simulation, and their schedule."""

    def __init__(self, random: Random, swarm: Swarm) -> None:
        self.swarm = swarm
        self.counts: Counter[str] = Counter()
        self.scheduler = Scheduler()
        self.history = History()
        self._random = random
        self.network = Network(self.scheduler, self._derived(), swarm, self.counts)
        self.node = SimulatedNode(self.scheduler, self._derived(), swarm, self.counts, broker_config(swarm))
        self.node.network, self.network.receive = self.network, self.node.receive
        self.world = World(self.scheduler, self.network, self.history, swarm, self.counts)
        self.world.now_ms, self.world.is_alone = self.node.now_ms, self._is_alone
        self.faults = Faults(self.scheduler, self._derived(), swarm, self.counts, self.node)
        self.faults.second_instance = self._second_instance
        self.faults.delete_topic = self._delete_topic
        self.topics = topics_of(swarm)
        self._written = [topic for topic in self.topics if topic.name != "o"]  # by the producers
        self.history.topics = {topic.name: topic for topic in self.topics}
        self.history.settings = {topic.name: [CONFIGS[topic.name]] for topic in self.topics}
        self.producers: list[Producer | Sending] = []
        self.consumers: list[ReadingProgram] = []
        self.members: GroupMembers | None = None
        self.shops: Shops | None = None
        self._version_1: list[str] = []
        self._hostile: set[str] = set()  # transactional ids of the hostile producer
        self._preparing: list[str] = []  # transactional ids with two-phase commit
        self._problems: list[str] = []

    def _derived(self) -> Random:
        return Random(self._random.getrandbits(64))

    def run(self, events: int) -> None:
        """Run everything except the checks of the history."""
        self.network.is_calm = True
        self.node.start()
        create_topics(self.node, self.topics, self.swarm)
        ids = [f"id-{number}" for number in range(self.swarm.producers)]
        self._preparing = [f"prepared-{number}" for number in range(self.swarm.preparers)]
        self._version_1 = [each for each in ids if self._random.random() < 0.3]
        self._hostile = set(ids[-1:] if self._random.random() < 0.5 else ())
        set_epochs(self.node, [*ids, *self._preparing], self.swarm.start_epoch)
        for transactional_id in (*ids, *self._preparing):
            self._add(self._transactional(transactional_id, f"{transactional_id}/{len(self.producers)}"))
        for number in range(self.swarm.plain_producers):
            self._add(IdempotentProgram(self.world, f"plain-{number}", self._derived(), self._written))
        for name, level in (
            ("rc-0", "read_committed"),
            ("rc-1", "read_committed"),
            ("ru-0", "read_uncommitted"),
        ):
            self._add(ReadingProgram(self.world, name, self._derived(), self.topics, level))
        self.administrator = AdministratorProgram(
            self.world, "administrator", self._derived(), self.topics[-1], CONFIGS[self.topics[-1].name]
        )
        self.administrator.begin()
        if self.swarm.alters_settings or self.swarm.deletes_records:
            RegistrarProgram(self.world, "registrar", self._derived(), self.topics).begin()
        if self.swarm.has_groups:
            self.members = GroupMembers(self.world, self._derived(), self._derived, self.topics)
            self.members.begin()
        if self.swarm.shops:
            self.shops = Shops(self.world, self._derived)
            self.shops.begin()
        while self.scheduler.events < events and not self._problems:
            self._storm(events)
            if self._random.random() < 0.3:
                self._calm()
        if not self._problems:
            self._end()

    def _transactional(self, transactional_id: str, name: str) -> HostileProducer | TransactionalProgram:
        if transactional_id in self._preparing:
            return PreparingProgram(self.world, name, self._derived(), self._written, transactional_id)
        # All processes of an id have one version: as in Kafka, a late version 2 abort may look like a retry
        # by the version 1 client that replaced it.
        is_version_1 = transactional_id in self._version_1 and all(
            each.is_version_1 or each.is_over for each in self._processes(transactional_id)
        )
        kind = HostileProducer if transactional_id in self._hostile else TransactionalProgram
        return kind(
            self.world, name, self._derived(), self._written, transactional_id, is_version_1=is_version_1
        )

    def _processes(self, transactional_id: str) -> list[HostileProducer | TransactionalProgram]:
        return [
            each for each in self.producers
            if isinstance(each, _TRANSACTIONAL) and each.transactional_id == transactional_id
        ]  # fmt: skip

    def _is_alone(self, producer: HostileProducer) -> bool:
        others = self._processes(producer.transactional_id)
        return all(each is producer or each.is_over for each in others)

    def _add(self, client: Client | Program) -> None:
        if isinstance(client, ReadingProgram):
            self.consumers.append(client)
        elif isinstance(client, (*_TRANSACTIONAL, IdempotentProgram)):
            is_version_2 = isinstance(client, _TRANSACTIONAL) and not client.is_version_1
            client.may_repeat = self.swarm.forgets_producers and not is_version_2
            self.producers.append(client)
        client.begin()

    def _second_instance(self) -> None:
        """Start another process with a running process's transactional id, or replace a group member."""
        if self.members is not None and self._random.random() < 0.5:
            self.members.replace_one()
            return
        alive = [
            each for each in self.producers
            if isinstance(each, _TRANSACTIONAL) and not each.is_over and not each.is_replaced
        ]  # fmt: skip
        if alive:
            old = self._random.choice(alive)
            old.is_replaced = True
            self._add(
                self._transactional(old.transactional_id, f"{old.transactional_id}/{len(self.producers)}")
            )

    def _delete_topic(self) -> None:
        self.administrator.has_to_delete = True

    def _replace_the_dead(self) -> None:
        """Restart processes for some transactional ids whose process has died."""
        alive = {
            each.transactional_id for each in self.producers
            if isinstance(each, _TRANSACTIONAL) and not each.is_over and not each.is_replaced
        }  # fmt: skip
        ids = [f"id-{number}" for number in range(self.swarm.producers)]
        for transactional_id in (*ids, *self._preparing):
            if transactional_id not in alive and self._random.random() < 0.5:
                self._add(self._transactional(transactional_id, f"{transactional_id}/{len(self.producers)}"))

    # Weather

    def _storm(self, events: int) -> None:
        self._replace_the_dead()
        self.network.is_calm = self.world.is_calm = self.faults.is_calm = False
        until = self.scheduler.now_us + self._random.randrange(200_000, 2_000_000)
        while self.scheduler.now_us < until and self.scheduler.events < events:
            self.scheduler.run(min(until, self.scheduler.now_us + self._random.randrange(_STEP_US)))
            self.faults.happen()
        if self.node.broker is not None:
            self.counts["metadata snapshot"] += bool(self.node.broker.metadata.snapshots)

    def _calm_down(self) -> None:
        self.network.is_calm = self.world.is_calm = True
        self.faults.calm()
        self.counts["calm"] += 1

    def _settle_ms(self) -> int:
        """Return the maximum duration, in milliseconds, of a storm's effects."""
        swarm = self.swarm
        groups_ms = 3 * (swarm.session_timeout_ms + swarm.rebalance_timeout_ms) if swarm.uses_groups else 0
        shops_ms = SETTLE_MS if swarm.shops else 0
        return swarm.transaction_timeout_ms + 3_000 + swarm.longest_hold_us // _MS + groups_ms + shops_ms

    def _calm(self) -> None:
        """Run a window without faults, after which everything must have progressed."""
        self._calm_down()
        self.scheduler.run(self.scheduler.now_us + 500 * _MS)
        quiet = Quiet(self.node, self.producers, self.consumers, self.members, self.world)
        self.scheduler.run(self.scheduler.now_us + self._settle_ms() * _MS)
        if quiet.problems():  # a producer may first lose a transaction by its timeout, and then its id
            self.scheduler.run(self.scheduler.now_us + self._settle_ms() * _MS)
        self._problems += quiet.problems()

    def _end(self) -> None:
        self._calm_down()
        self.world.is_ending = True
        self.scheduler.run(self.scheduler.now_us + (self._settle_ms() + 2_000) * _MS)
        if is_behind(self.node, self.history):  # a reader may have a backlog, and fetch a record at a time
            self.scheduler.run(self.scheduler.now_us + self._settle_ms() * _MS)
        self._problems += checked_end(self.node, self.producers, self.consumers, self.history, self.swarm)
        if self.shops is not None and self.node.broker is not None:
            self._problems += self.shops.problems(directory_of(self.node))
        self.counts["retention"] += self.history.log_starts.get(("r", 0), 0) > 0

    def findings(self) -> list[str]:
        """Return the violations: liveness problems, and the anomalies of the history."""
        unexpected = [f"unexpected: {name}" for name in self.counts if name.endswith("UNKNOWN_SERVER_ERROR")]
        complaints = [*self._problems, *self.world.complaints, *self.node.epochs.complaints[:MOST_SHOWN]]
        return [*complaints, *unexpected, *map(str, anomalies(self.history))]

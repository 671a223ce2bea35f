"""Runs the commands of a scenario on a broker without sockets, and says what they print.

Commands, beside those of a producer (``A init``, ``A send``, … see ``Producer``):

    start [NAME=VALUE…]     open a broker, with Kafka's names of settings; ``level N`` finalizes
                            transaction.version, ``durability=page_cache`` is the host's
    topic T [partitions=2] [NAME=VALUE…], delete T
    level 0|1|2             finalize the feature transaction.version, and restart
    preset X epoch=32766 [producer=N]
                            append a record to __transaction_state, as if the transactional id had got there
                            by many transactions, and restart
    wait 61s                let time pass, and do what is due
    clock -1h               set the clock back (or forward), and do what is due; no time passes
    hold flush|work, flush, begin flush, finish flush, work, release
    fail write|sync PATH [ENOSPC], heal
    crash [keep=PATH], kill, restart, clean
    damage T-0              flip a bit of the first batch in the file; a second time repairs it
    log T-0, dump __transaction_state, describe X, list [state=…] [producer=…] [pattern=…] [longer=1s]
    producers T-0, fetch T-0 [read_committed] [from=0] [wait=500ms] [bytes=1] [as=NAME]
    latest T-0 [read_committed], marker T-0 producer=0 epoch=0 commit|abort [coordinator=0] [version=0]
    join M g [instance=I] [session=30s] [rebalance=60s] [protocols=range,sticky] [version=3] [id=N] [new]
    sync M [M=a N=b], heartbeat M [generation=N], leave M N, leave-instance g I
    enter M g [topics=t,u] [regex=R] [instance=I] [rebalance=60s] [assignor=range] [new]
    beat M [has=t-0|none] [epoch=N] [topics=u], depart M [away], look g
                            members of the consumer protocol (KIP-848)
    commit g t-0=5 [as=M] [metadata=TEXT], send-offsets A g t-0=5 [as=M] [version=5], offsets g [t-0] [stable]
    delete-offsets g t-0, delete-group g, describe-group g, dump __consumer_offsets
    delete-records t-0 before=5
    later NAME: A send …    make a request now, and ``deliver NAME`` later, once or more often
    A again                 send the last request of A once more, byte for byte
    A is                    show the identity of A

A request that is not answered at once prints "waits"; its answer is printed by the command that brings it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from tests.scenarios.arguments import Arguments, milliseconds, partition_of
from tests.scenarios.group_commands import GroupCommands, group_lines
from tests.scenarios.host import NOW as STARTED
from tests.scenarios.host import Host
from tests.scenarios.member import Members
from tests.scenarios.producer import Producer, Request
from tests.scenarios.views import (
    described_lines,
    entry_line,
    fetched_lines,
    log_lines,
    state_lines,
)
from txnkafka.broker.coordinators.marker_writer import WritableMarker
from txnkafka.broker.requests import FetchPartition, FetchRequest, NewTopic, OffsetQuery
from txnkafka.coordinator.txn.txn_events import TransactionRecord
from txnkafka.coordinator.txn.txn_listing import Filters
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition

__all__ = ["Interpreter"]

STATE_TOPIC = "__transaction_state"


class Interpreter:
    """One run of one scenario."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self.producers: dict[str, Producer] = {}
        self.members = Members()
        self.groups = GroupCommands(self.members, self.producers)
        self.sent: dict[str, tuple[str, Request]] = {}  # the last request of each producer
        self.later: dict[str, tuple[str, Request]] = {}
        self.waiting: list[object] = []
        self.printed: list[str] = []
        self.fetches = 0

    def run(self, command: str) -> list[str]:
        """What a command prints. Raises ValueError for one that is none."""
        self.printed = []
        first, _, rest = command.partition(" ")
        if first == "later":
            name, _, request = rest.partition(": ")
            self.later[name] = self._later(request)
        elif first[:1].isupper():
            self._producer(command)
        else:
            self._command(first, Arguments.of(rest))
        return self.printed

    def _command(self, verb: str, given: Arguments) -> None:
        method = getattr(self, f"do_{verb}", None)
        request = self._of_groups(verb, given) if method is None else None
        if method is not None:
            method(given)
        elif request is not None:
            self.ask(*request)
        else:
            raise ValueError(f"there is no command {verb!r}")

    def _of_groups(self, verb: str, given: Arguments) -> tuple[str, Request] | None:
        """The request of a command that is about groups, behind FindCoordinator."""
        if verb in ("join", "enter", "commit", "send-offsets"):
            self._find(self.on.broker.groups.find, "g")
        request = self.groups.request(verb, given)
        return None if request is None else (f"{given.words[0]} {verb}", request)

    @property
    def on(self) -> Host:
        """The host. Raises ValueError before ``start``."""
        if self.host is None:
            raise ValueError("a scenario begins with start")
        return self.host

    # Requests

    def ask(self, label: str, request: Request) -> None:
        """Send a request; its answer is printed when it comes, once."""
        entry = object()
        self.waiting.append(entry)

        def reply(answer: Any) -> None:
            assert entry in self.waiting, f"{label} is answered twice"
            self.waiting.remove(entry)
            self.printed += f"{label}: {request.taken(answer)}".split("\n")

        host = self.on
        host.broker.call(request.send, host.broker, reply, now_ms=host.now_ms)
        host.settle()
        if entry in self.waiting:
            self.printed.append(f"{label}: waits")

    def _later(self, command: str) -> tuple[str, Request]:
        verb, _, rest = command.partition(" ")
        return self._of_groups(verb, Arguments.of(rest)) or self._request(command)

    def _request(self, command: str) -> tuple[str, Request]:
        name, _, rest = command.partition(" ")
        given = Arguments.of(rest)
        verb, given = given.words[0], given.without_first()
        producer = self.producers.setdefault(name, Producer())
        producer.now_ms = self.on.now_ms
        if verb == "init" and given.text("id", "none") != "none":
            self._find(self.on.broker.transactions.find, given.text("id", ""))
        requests: dict[str, Callable[[], Request]] = {
            "init": lambda: producer.init(given),
            "add": lambda: producer.add(given),
            "verify": lambda: producer.add(given, verify_only=True),
            "offsets": lambda: producer.offsets(given),
            "send": lambda: producer.send(given),
            "commit": lambda: producer.end(given, committed=True),
            "abort": lambda: producer.end(given, committed=False),
        }
        if verb not in requests:
            raise ValueError(f"a producer cannot {verb}")
        return f"{name} {verb}", requests[verb]()

    def _producer(self, command: str) -> None:
        name, _, verb = command.partition(" ")
        if verb == "is":
            self.printed.append(f"{name}: {self.producers[name].shown}")
            return
        if verb == "again":
            label, request = self.sent[name]
            self.ask(f"{label} again", request)
            return
        self.sent[name] = self._request(command)
        self.ask(*self.sent[name])

    def _find(self, find: Callable[[str], ErrorCode], key: str) -> None:
        """FindCoordinator, until the coordinator's topic is there; a client does the same."""
        for _ in range(2):
            if find(key) != ErrorCode.NONE:
                self.on.settle()

    def do_deliver(self, given: Arguments) -> None:
        label, request = self.later[given.words[0]]
        self.ask(f"{given.words[0]}: {label}", request)

    # The broker and its host

    def do_start(self, given: Arguments) -> None:
        self.host = Host(given.options)

    def do_level(self, given: Arguments) -> None:
        self._lost()
        self.on.set_level(int(given.words[0]))

    def do_preset(self, given: Arguments) -> None:
        (name,), host = given.words, self.on
        coordinator = host.broker.transactions.coordinator
        metadata = coordinator.metadata_of(name)
        assert metadata is not None, f"init {name} first"
        producer_id = given.number("producer", metadata.producer_id)
        metadata = metadata._replace(
            producer_epoch=given.number("epoch", 0), producer_id=producer_id,
            previous_producer_id=producer_id, last_producer_epoch=-1,
        )  # fmt: skip
        record = TransactionRecord(name, metadata)
        host.broker.transactions.coordinator.runtime.log.append(0, [record.encoded(1)], lambda _: None)
        host.settle()
        host.stop()
        host.open()
        for producer in self.producers.values():
            if producer.transactional_id == name:
                producer.producer_id, producer.producer_epoch = producer_id, metadata.producer_epoch

    def do_topic(self, given: Arguments) -> None:
        (name,), options = given.words, dict(given.options)
        topic = NewTopic(name, int(options.pop("partitions", 1)), configs=options)
        self.ask(f"topic {name}", Request(
            lambda broker, reply: broker.topics.create([topic], reply),
            lambda results: results[0].error.name,
        ))  # fmt: skip

    def do_delete(self, given: Arguments) -> None:
        (name,) = given.words
        self.ask(f"delete {name}", Request(
            lambda broker, reply: broker.topics.delete([name], [], reply),
            lambda results: results[0].error.name,
        ))  # fmt: skip

    def do_wait(self, given: Arguments) -> None:
        self.on.wait(milliseconds(given.words[0]))

    def do_clock(self, given: Arguments) -> None:
        self.on.set_clock(milliseconds(given.words[0]))

    def do_hold(self, given: Arguments) -> None:
        self.on.held |= set(given.words)

    def do_release(self, given: Arguments) -> None:
        host = self.on
        host.held.clear()
        host.finish_flush()
        host.settle()

    def do_flush(self, given: Arguments) -> None:
        host = self.on
        if host.flush is not None or not host.run_flush(is_asked=True):
            self.printed.append("there is nothing to flush")
        host.settle()

    def do_begin(self, given: Arguments) -> None:
        if not self.on.begin_flush():
            self.printed.append("there is nothing to flush")

    def do_finish(self, given: Arguments) -> None:
        self.on.finish_flush()
        self.on.settle()

    def do_work(self, given: Arguments) -> None:
        if not self.on.run_work(is_asked=True):
            self.printed.append("there is no work")
        self.on.settle()

    def do_clean(self, given: Arguments) -> None:
        """Compact all that is due."""
        while self.on.broker.manager.clean(self.on.now_ms) is not None:
            continue

    def do_fail(self, given: Arguments) -> None:
        call, path, *name = given.words
        self.on.refusals.planned[(call, path)] = getattr(errno, (name or ["EIO"])[0])

    def do_heal(self, given: Arguments) -> None:
        self.on.refusals.planned.clear()

    def do_crash(self, given: Arguments) -> None:
        kept = given.text("keep", "")
        self.on.crash(tuple(kept.split(",")) if kept else ())
        self._reopen()

    def do_kill(self, given: Arguments) -> None:
        self.on.kill()
        self._reopen()

    def do_damage(self, given: Arguments) -> None:
        self.on.damage(given.words[0])

    def do_restart(self, given: Arguments) -> None:
        self.on.held.clear()
        self.on.stop()
        self._reopen()

    def _reopen(self) -> None:
        self._lost()
        self.on.refusals.planned.clear()
        self.on.open()

    def _lost(self) -> None:
        if self.waiting:
            self.printed.append(f"{len(self.waiting)} without an answer")
        self.waiting.clear()

    # What can be seen

    def do_log(self, given: Arguments) -> None:
        self.printed += log_lines(self.on.broker.logs[partition_of(given.words[0])])

    def do_dump(self, given: Arguments) -> None:
        log = self.on.broker.logs[TopicPartition(given.words[0], 0)]
        begin = given.number("from", 0)
        is_state = given.words[0] == STATE_TOPIC
        lines = list(state_lines(log, STARTED) if is_state else group_lines(log, self.members))
        self.printed += [line for line in lines if int(line.split(" ")[0]) >= begin]

    def do_describe(self, given: Arguments) -> None:
        self.printed += described_lines(self.on.broker.transactions.describe(given.words[0]), STARTED)

    def do_list(self, given: Arguments) -> None:
        filters = Filters(
            frozenset(int(number) for number in given.text("producer", "").split(",") if number),
            frozenset(name for name in given.text("state", "").split(",") if name),
            given.milliseconds("longer", -1),
            given.text("pattern", ""),
        )
        found = self.on.broker.transactions.list(filters)
        rows = [
            f"{row.transactional_id} producer {row.producer_id} {row.state}" for row in found.transactions
        ]
        self.printed += [found.error.name] if found.error else rows or ["none"]

    def do_producers(self, given: Arguments) -> None:
        error, entries = self.on.broker.describe_producers(partition_of(given.words[0]))
        self.printed += [error.name] if error else [entry_line(entry) for entry in entries] or ["none"]

    def do_latest(self, given: Arguments) -> None:
        partition = partition_of(given.words[0])
        found = self.on.broker.list_offsets([OffsetQuery(partition, -1)], _level(given))[partition]
        self.printed.append(f"{found.error.name}, offset {found.offset}")

    def do_fetch(self, given: Arguments) -> None:
        partition, offset = partition_of(given.words[0]), given.number("from", 0)
        wanted = FetchPartition(partition, offset, 1 << 20)
        request = FetchRequest(
            [wanted], _level(given), given.number("bytes", 1), max_wait_ms=given.milliseconds("wait", 0)
        )
        label = given.text("as", f"fetch {partition}")

        def taken(answer: Any) -> str:
            ((_, fetched),) = answer
            return ("\n" + " " * 2).join(fetched_lines(fetched, offset))

        self.ask(label, Request(
            lambda broker, reply: broker.fetch(request, reply), taken
        ))  # fmt: skip
        self.printed = [line for each in self.printed for line in each.split("\n")]

    def do_marker(self, given: Arguments) -> None:
        name = given.words[0]
        marker = WritableMarker(
            given.number("producer", 0), given.number("epoch", 0), "commit" in given.words,
            (partition_of(name),), given.number("coordinator", 0), given.number("version", 0),
        )  # fmt: skip
        self.ask(f"marker {name}", Request(
            lambda broker, reply: broker.transactions.write_markers([marker], reply),
            lambda results: results[0][partition_of(name)].name,
        ))  # fmt: skip


def _level(given: Arguments) -> IsolationLevel:
    committed = "read_committed" in given.words
    return IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

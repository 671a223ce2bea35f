"""What a job says to a client: commands by their names, and what becomes of them as text.

A client takes commands, one a line, and answers with values or an error; see ``ClientProcess.java``:

    open | init | begin | send | commit | abort | close | consume      as there
    send-offsets producer=… consumer=… group=… topic=… partition=… offset=…    with the member's metadata
    join consumer=… server=… group=… topic=… strategy=eager|cooperative|consumer config.NAME=…
    remember consumer=…                the metadata, for when the member has left
    poll consumer=… count=…            PARTITION:OFFSET:VALUE of so many records, in the order of their coming
    assigned consumer=…                partitions; also polls once
    commit-offset | committed | seek | read-again    consumer=… topic=… partition=… offset=…
    leave consumer=…
    create-topic | delete-topic | describe-topic | list-topics | create-partitions
    delete-records | list-offsets
    list-groups | describe-group | group-offsets | reset-offset | delete-offset | delete-group
    describe-config | alter-config | describe-cluster | describe-log-dirs
    list-transactions | describe-transaction | describe-producers    server=… and what it is about
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.server.client_commands import Client, ClientError

__all__ = ["Session"]

SECONDS = 30.0
UNKNOWN = "UNKNOWNTOPICORPARTITION"  # each library writes it in its own way


class Session:
    """One client on one broker, for one job. ``topic`` is there and is the job's own, with four partitions,
    and so is TOPIC-copies, with one; all names of producers, members, ids and groups are made from it."""

    def __init__(self, client: Client, server: str, topic: str) -> None:
        self._client, self._server = client, server
        self.topic = topic

    def ask(self, command: str, **options: object) -> list[str]:
        """The values of an answer. Raises ClientError."""
        words = {name.replace("_", "-"): str(value) for name, value in options.items()}
        return self._client.ask(command, **words)

    # Producers

    def producer(self, name: str, **configs: object) -> None:
        """Open a producer; settings have _ for the dots."""
        settings = {f"config.{key.replace('_', '.')}": value for key, value in configs.items()}
        self.ask("open", producer=self._own(name), server=self._server, **settings)

    def transactional(self, name: str, transactional_id: str = "id", **configs: object) -> None:
        """Open a transactional producer, and let it get its producer id."""
        self.producer(name, transactional_id=self._own(transactional_id), **configs)
        self.do("init", name)

    def do(self, command: str, name: str) -> None:
        """``begin``, ``commit``, ``abort``, ``close``, ``init``."""
        self.ask(command, producer=self._own(name))

    def send(self, name: str, *values: str, partition: int = 0, topic: str = "") -> None:
        """Send, and wait for the answers; to the job's topic unless another is named."""
        records = ",".join(f"{partition}:{value}" for value in values)
        where = {"topic": topic or self.topic, "records": records}
        self.ask("send", producer=self._own(name), size=0, wait="yes", **where)

    def send_offsets(self, name: str, consumer: str, offset: int) -> None:
        """With the transaction of a producer."""
        where = {"group": self._own("group"), "topic": self.topic, "partition": 0, "offset": offset}
        self.ask("send-offsets", producer=self._own(name), consumer=self._own(consumer), **where)

    def ended_with_offsets(self, name: str, consumer: str, offset: int) -> None:
        """Commit a transaction with offsets, which some clients send only then."""
        self.send_offsets(name, consumer, offset)
        self.do("commit", name)

    def written(self, *values: str, partition: int = 0) -> None:
        """Have records in the topic, by a producer without transactions."""
        self.producer("writer")
        self.send("writer", *values, partition=partition)
        self.do("close", "writer")

    def values(self, level: str = "read_committed", partition: int = 0, topic: str = "") -> str:
        """What a consumer gets of a partition."""
        where = {"server": self._server, "topic": topic or self.topic, "partition": partition}
        return " ".join(self.ask("consume", level=level, **where))

    # Members

    def join(self, name: str, strategy: str = "eager", copies_with: str = "", **configs: object) -> None:
        """Become a member of the job's group; ``copies_with`` is the producer whose transactions have its
        offsets, if any, which franz-go must know."""
        settings = {f"config.{key.replace('_', '.')}": value for key, value in configs.items()}
        where = {"server": self._server, "group": self._own("group"), "topic": self.topic}
        if copies_with:
            where |= {"copier": self._own(copies_with), "transactional-id": self._own("id")}
        self.ask("join", consumer=self._own(name), strategy=strategy, **where, **settings)

    def member(self, command: str, name: str, **options: object) -> list[str]:
        """What a member is asked about partition 0."""
        return self.ask(command, consumer=self._own(name), topic=self.topic, partition=0, **options)

    def polled(self, name: str, count: int) -> str:
        """The next records of a member."""
        return " ".join(self.ask("poll", consumer=self._own(name), count=count))

    def shared(self, *names: str) -> str:
        """How many partitions each has, when all four are given out and everyone has his part."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = [self.ask("assigned", consumer=self._own(name)) for name in names]
            if sorted(each for some in found for each in some) == ["0", "1", "2", "3"] and all(found):
                return " ".join(str(len(each)) for each in sorted(found, key=len))
        return f"not shared: {found}"

    # Administration

    def admin(self, command: str, **options: object) -> str:
        """What an admin client says, about the job's topic unless options name another."""
        return " ".join(self.ask(command, server=self._server, **{"topic": self.topic, **options}))

    def group(self, command: str, **options: object) -> str:
        """What an admin client says of the job's group."""
        return self.admin(command, group=self._own("group"), **options)

    def own(self, name: str) -> str:
        """A name that no other job uses."""
        return self._own(name)

    def _own(self, name: str) -> str:
        return f"{self.topic}-{name}"

    # What is refused, and what takes a moment

    @staticmethod
    def refused(step: Callable[[], object]) -> str:
        """The error of a step, or that there was none."""
        try:
            step()
        except ClientError as error:
            return f"refused: {error.name}"
        return "not refused"

    @staticmethod
    def until(question: Callable[[], str], wanted: str) -> str:
        """The answer, which may take a moment: a commit is answered before everyone sees it, and Kafka's
        controller answers before its broker knows of a topic. Raises ClientError."""
        deadline = time.monotonic() + SECONDS
        while True:
            is_over = time.monotonic() >= deadline
            try:
                found = question()
                if found == wanted or is_over:
                    return found
            except ClientError as error:
                if is_over or not error.name.replace("_", "").upper().startswith(UNKNOWN):
                    raise
            time.sleep(0.05)

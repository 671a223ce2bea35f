"""The jobs: each is a short programme for a client, and what must come of it on any broker.

A job returns lines. Names of errors are the client's own: on both brokers the same, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.conformance.card.session import Session

__all__ = ["JOBS", "Job"]

Lines = list[str]
UNCOMMITTED = "read_uncommitted"


class Job(NamedTuple):
    """A row of the card; ``meant`` is what it returns, with ``refused`` for any error."""

    name: str
    run: Callable[[Session], Lines]
    meant: Lines


def produce(of: Session) -> Lines:
    of.written("a", "b")
    of.written("c", partition=3)
    return [of.values(UNCOMMITTED), of.values(UNCOMMITTED, 3)]


def idempotent(of: Session) -> Lines:
    of.producer("p", enable_idempotence="true")
    of.send("p", "a", "b")
    of.send("p", "c")
    of.do("close", "p")
    return [of.values()]


def codecs(of: Session) -> Lines:
    for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd")):
        of.producer(codec, compression_type=codec)
        of.send(codec, *(["a" * 200] * 20), partition=number)
        of.do("close", codec)
    return [str(len(of.values(partition=number))) for number in range(4)]


def committed(of: Session, producer: str, value: str) -> None:
    of.do("begin", producer)
    of.send(producer, value)
    of.do("commit", producer)


def commit(of: Session) -> Lines:
    of.transactional("p")
    of.do("begin", "p")
    of.send("p", "a")
    of.send("p", "b", partition=1)
    of.do("commit", "p")
    of.do("begin", "p")
    of.do("commit", "p")
    committed(of, "p", "c")
    found = [of.until(of.values, "a c"), of.values(partition=1)]
    of.do("close", "p")
    return found


def abort(of: Session) -> Lines:
    of.transactional("p")
    of.do("begin", "p")
    of.send("p", "never")
    of.do("abort", "p")
    committed(of, "p", "a")
    found = [of.until(of.values, "a"), of.values(UNCOMMITTED)]
    of.do("close", "p")
    return found


def held_back(of: Session) -> Lines:
    of.transactional("first")
    of.transactional("second", "another")
    of.do("begin", "first")
    of.send("first", "open")
    committed(of, "second", "behind")
    found = [of.values(), of.values(UNCOMMITTED)]
    of.do("commit", "first")
    found.append(of.until(of.values, "open behind"))
    of.do("close", "first")
    of.do("close", "second")
    return found


def fenced(of: Session) -> Lines:
    of.transactional("first")
    of.do("begin", "first")
    of.send("first", "open")
    of.transactional("second")
    refused = of.refused(lambda: of.do("commit", "first"))
    committed(of, "second", "after")
    found = [refused, of.until(of.values, "after")]
    of.do("close", "first")
    of.do("close", "second")
    return found


def timeout(of: Session) -> Lines:
    of.transactional("slow", transaction_timeout_ms=1000)
    of.do("begin", "slow")
    of.send("slow", "late")
    of.written("behind")
    found = [of.until(of.values, "behind"), of.refused(lambda: of.do("commit", "slow"))]
    of.transactional("again")
    committed(of, "again", "again")
    found.append(of.until(of.values, "behind again"))
    of.do("close", "slow")
    of.do("close", "again")
    return found


def timeout_too_long(of: Session) -> Lines:
    found = [of.refused(lambda: of.transactional("p", transaction_timeout_ms=900_001))]
    of.do("close", "p")
    return found


def group_reads(of: Session) -> Lines:
    of.written("a", "b")
    of.join("m")
    found = [of.polled("m", 2)]
    of.member("leave", "m")
    return found


def group_reads_committed(of: Session) -> Lines:
    of.transactional("p")
    of.do("begin", "p")
    of.send("p", "never")
    of.do("abort", "p")
    committed(of, "p", "a")
    of.join("m", isolation_level="read_committed")
    found = [of.polled("m", 1)]
    of.member("leave", "m")
    of.do("close", "p")
    return found


def rebalance(of: Session) -> Lines:
    return shared(of, "eager")


def cooperative(of: Session) -> Lines:
    return shared(of, "cooperative")


def consumer_protocol(of: Session) -> Lines:
    return shared(of, "consumer")


def shared(of: Session, strategy: str) -> Lines:
    of.join("first", strategy)
    found = [of.shared("first")]
    of.join("second", strategy)
    found.append(of.shared("first", "second"))
    of.member("leave", "first")
    found.append(of.shared("second"))
    of.member("leave", "second")
    return found


def static(of: Session) -> Lines:
    """A static member that comes back has its partitions without a rebalance of the other."""
    of.written("a")
    of.join("first", group_instance_id=of.own("one"))
    found = [of.shared("first")]
    of.member("leave", "first")
    of.join("again", group_instance_id=of.own("one"))
    found += [of.shared("again"), of.polled("again", 1)]
    of.member("leave", "again")
    return found


def commit_offset(of: Session) -> Lines:
    of.written("a", "b", "c")
    of.join("first")
    found = [of.polled("first", 3)]
    of.member("commit-offset", "first", offset=1)
    found += of.member("committed", "first")
    of.member("leave", "first")
    of.join("second")
    found.append(of.polled("second", 2))
    of.member("leave", "second")
    return found


def seek(of: Session) -> Lines:
    of.written("a", "b", "c")
    of.join("m")
    found = [of.polled("m", 3)]
    of.member("seek", "m", offset=1)
    found.append(of.polled("m", 2))
    of.member("leave", "m")
    return found


def send_offsets(of: Session) -> Lines:
    """Consume, transform, produce; one transaction is aborted, and its record read again."""
    target = of.own("copies")
    of.written("a", "b", "c")
    of.transactional("p")
    of.join("m", copies_with="p")
    found = []
    for offset, end, committed in (
        (1, "commit", "1"),
        (2, "abort", "1"),
        (2, "commit", "2"),
        (3, "commit", "3"),
    ):
        found.append(of.polled("m", 1))
        of.do("begin", "p")
        of.send("p", f"copy-{offset}", topic=target)
        of.send_offsets("p", "m", offset)
        of.do(end, "p")
        found.append(of.until(lambda: " ".join(of.member("committed", "m")), committed))
        if end == "abort":
            of.member("read-again", "m", offset=1)
    found.append(of.until(lambda: of.values(topic=target), "copy-1 copy-2 copy-3"))
    of.member("leave", "m")
    of.do("close", "p")
    return found


def transaction_of_a_zombie(of: Session) -> Lines:
    """Its member has left and come again: the metadata that the transaction has is of another generation."""
    of.written("a")
    of.join("m")
    found = [of.polled("m", 1)]
    of.transactional("p")
    of.do("begin", "p")
    of.ask("remember", consumer=of.own("m"))
    of.member("leave", "m")
    of.join("another")
    found.append(of.shared("another"))
    found.append(of.refused(lambda: of.ended_with_offsets("p", "m", 1)))
    of.refused(lambda: of.do("abort", "p"))  # a client may have done so
    found += of.member("committed", "another")
    of.member("leave", "another")
    of.do("close", "p")
    return found


def topics(of: Session) -> Lines:
    new = of.own("new")
    of.admin("create-topic", topic=new, partitions=3)
    again = of.refused(lambda: of.admin("create-topic", topic=new, partitions=3))
    described = of.until(lambda: of.admin("describe-topic", topic=new), "3")
    is_listed = [str(new in of.admin("list-topics").split())]
    of.admin("delete-topic", topic=new)
    gone = of.until(lambda: str(new in of.admin("list-topics").split()), "False")
    return [again, described, *is_listed, gone, of.refused(lambda: of.admin("delete-topic", topic=new))]


def partitions(of: Session) -> Lines:
    of.admin("create-partitions", count=6)
    return [of.until(lambda: of.admin("describe-topic"), "6")]


def offsets(of: Session) -> Lines:
    of.written("a", "b", "c")
    return [of.admin("list-offsets", partition=0)]


def delete_records(of: Session) -> Lines:
    of.written("a", "b", "c")
    of.admin("delete-records", partition=0, offset=2)
    return [of.admin("list-offsets", partition=0)]


def describe_config(of: Session) -> Lines:
    return [of.admin("describe-config", name="cleanup.policy")]


def alter_config(of: Session) -> Lines:
    of.admin("alter-config", name="retention.ms", value="3600000")
    return [of.until(lambda: of.admin("describe-config", name="retention.ms"), "3600000")]


def cluster(of: Session) -> Lines:
    return [of.admin("describe-cluster")]


def log_dirs(of: Session) -> Lines:
    return [of.until(lambda: of.admin("describe-log-dirs"), "4")]


def list_groups(of: Session) -> Lines:
    of.join("m")
    found = [of.shared("m"), str(of.own("group") in of.admin("list-groups").split())]
    of.member("leave", "m")
    return found


def describe_group(of: Session) -> Lines:
    of.join("m")
    found = [of.shared("m"), of.group("describe-group")]
    of.member("leave", "m")
    return [*found, of.until(lambda: of.group("describe-group"), "empty 0")]


def reset_offsets(of: Session) -> Lines:
    of.written("a", "b", "c")
    of.join("m")
    found = [of.polled("m", 3)]
    of.member("commit-offset", "m", offset=3)
    while_joined = of.refused(lambda: of.group("reset-offset", partition=0, offset=1))
    of.member("leave", "m")
    of.group("reset-offset", partition=0, offset=1)
    found += [while_joined, of.group("group-offsets")]
    of.join("again")
    found.append(of.polled("again", 2))
    of.member("leave", "again")
    return found


def delete_offsets(of: Session) -> Lines:
    of.group("reset-offset", partition=0, offset=1)
    found = [of.group("group-offsets")]
    of.group("delete-offset", partition=0)
    return [*found, of.group("group-offsets")]


def delete_group(of: Session) -> Lines:
    of.join("m")
    found = [of.shared("m"), of.refused(lambda: of.group("delete-group"))]
    of.member("leave", "m")
    of.group("delete-group")
    return [*found, str(of.own("group") in of.admin("list-groups").split())]


def list_transactions(of: Session) -> Lines:
    of.transactional("p")
    of.do("begin", "p")
    of.send("p", "a")
    named = of.own("id")
    found = [str(named in of.admin("list-transactions").split())]
    of.do("abort", "p")
    of.do("close", "p")
    return found


def describe_transaction(of: Session) -> Lines:
    of.transactional("p")
    of.do("begin", "p")
    of.send("p", "a")
    found = [of.admin("describe-transaction", id=of.own("id")).lower()]
    found.append(of.admin("describe-producers", partition=0))
    of.do("abort", "p")
    of.do("close", "p")
    return found


READ = "0:0:a 0:1:b 0:2:c"
COPIED = ["0:0:a", "1", "0:1:b", "1", "0:1:b", "2", "0:2:c", "3", "copy-1 copy-2 copy-3"]
JOBS = (
    Job("produce and read", produce, ["a b", "c"]),
    Job("idempotent producer", idempotent, ["a b c"]),
    Job("gzip, snappy, lz4, zstd", codecs, ["4019"] * 4),
    Job("transaction: commit", commit, ["a c", "b"]),
    Job("transaction: abort", abort, ["a", "never a"]),
    Job("read_committed waits for an open transaction", held_back, ["", "open behind", "open behind"]),
    Job("a second instance fences the first", fenced, ["refused", "after"]),
    Job("a transaction times out", timeout, ["behind", "refused", "behind again"]),
    Job("a timeout above the maximum", timeout_too_long, ["refused"]),
    Job("group: join and read", group_reads, ["0:0:a 0:1:b"]),
    Job("group: read_committed", group_reads_committed, ["0:2:a"]),
    Job("group: rebalance, eager", rebalance, ["4", "2 2", "4"]),
    Job("group: rebalance, cooperative", cooperative, ["4", "2 2", "4"]),
    Job("group: rebalance, consumer protocol (KIP-848)", consumer_protocol, ["4", "2 2", "4"]),
    Job("group: static member", static, ["4", "4", "0:0:a"]),
    Job("group: commit, and go on there", commit_offset, [READ, "1", "0:1:b 0:2:c"]),
    Job("group: seek", seek, [READ, "0:1:b 0:2:c"]),
    Job("offsets in a transaction", send_offsets, COPIED),
    Job("offsets of a zombie in a transaction", transaction_of_a_zombie, ["0:0:a", "4", "refused", "none"]),
    Job("topics: create, list, describe, delete", topics, ["refused", "3", "True", "False", "refused"]),
    Job("topics: more partitions", partitions, ["6"]),
    Job("offsets: first and last", offsets, ["0 3"]),
    Job("delete records", delete_records, ["2 3"]),
    Job("configs: describe", describe_config, ["delete"]),
    Job("configs: alter", alter_config, ["3600000"]),
    Job("cluster: describe", cluster, ["1"]),
    Job("log dirs: describe", log_dirs, ["4"]),
    Job("groups: list", list_groups, ["4", "True"]),
    Job("groups: describe", describe_group, ["4", "stable 1", "empty 0"]),
    Job("groups: reset offsets", reset_offsets, [READ, "refused", "0:1", "0:1:b 0:2:c"]),
    Job("groups: delete offsets", delete_offsets, ["0:1", ""]),
    Job("groups: delete", delete_group, ["4", "refused", "False"]),
    Job("transactions: list", list_transactions, ["True"]),
    Job("transactions: describe, and producers", describe_transaction, ["ongoing", "1"]),
)

"""The contests, in the order of the table: which inputs, which sides, which goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench import (
    appending,
    checkback,
    clients,
    decompressing,
    embedded,
    fetching,
    grouping,
    many_partitions,
    planning,
    processes,
    producers,
    recovering,
    serving,
    writing,
)
from bench.harness import Comparison, Contest, Limit, Side
from bench.java import JavaHeadersSide, JavaSide
from bench.ours import DecodeSide, How, ScanSide
from bench.parts import ChecksumPart, ChecksumsAndWalk, MapPart, WalkPart
from bench.peers import AiokafkaSide, KafkaPythonSide
from bench.segments import MIB, NAMES, Input, ready
from bench.spark_rows import spark_contests

__all__ = ["FULL", "QUICK", "Plan", "contests"]

FILE_GOALS = {"10": 4.0, "100": 4.5, "1024": 3.5}
HOT_GOALS = {"100": 2.5, "1024": 1.3}
PARTS_GOAL = 0.8
THREADS_GOAL = 1.8
COPY, VIEW = How(), How(views=True)
PREAD_COPY = How(pread=True)
TWO_THREADS = How(threads=2)
PARTS_IN_CACHE = ("checksums alone", "copy without checksums", "view without checksums")
FRESH_COPY, FRESH_VIEW = How(fresh=True), How(views=True, fresh=True)
COPY_COMMITTED, VIEW_COMMITTED = How(committed=True), How(views=True, committed=True)


@dataclass(frozen=True)
class Plan:
    """Bytes of log for each kind of contest, rounds, and which variants."""

    decode: int
    compressed: int
    committed: int
    verify: int
    cat: int
    append: int
    append_all: bool
    flushes: int
    partitions: int
    commits: int
    start_rounds: int
    spark: int
    spark_cores: tuple[int, ...]
    spark_rounds: int
    spark_warm_seconds: float
    spark_all: bool
    rounds: int
    process_rounds: int
    server: serving.Sizes
    groups: grouping.Sizes
    checkback: checkback.Sizes
    hot_repeat: int
    hot_shapes: tuple[str, ...]
    compressed_shapes: tuple[str, ...]
    aborted: tuple[int, ...]
    client_records: int
    embedded_commits: int


FULL = Plan(
    decode=128 * MIB,
    compressed=32 * MIB,
    committed=128 * MIB,
    verify=1000 * MIB,
    cat=128 * MIB,
    append=64 * MIB,
    append_all=True,
    flushes=96,
    partitions=10_000,
    commits=200,
    start_rounds=3,
    spark=512 * MIB,
    spark_cores=(1, 2),
    spark_rounds=3,
    spark_warm_seconds=6,
    spark_all=True,
    rounds=9,
    process_rounds=9,
    server=serving.FULL,
    groups=grouping.FULL,
    checkback=checkback.FULL,
    hot_repeat=64,
    hot_shapes=("10", "100", "1024"),
    compressed_shapes=("100", "1024"),
    aborted=(0, 10, 50, 90),
    client_records=200_000,
    embedded_commits=1_000,
)
QUICK = Plan(
    decode=48 * MIB,
    compressed=8 * MIB,
    committed=48 * MIB,
    verify=128 * MIB,
    cat=16 * MIB,
    append=16 * MIB,
    append_all=False,
    flushes=32,
    partitions=1_000,
    commits=50,
    start_rounds=2,
    spark=64 * MIB,
    spark_cores=(1,),
    spark_rounds=3,
    spark_warm_seconds=3,
    spark_all=False,
    rounds=5,
    process_rounds=3,
    server=serving.QUICK,
    groups=grouping.QUICK,
    checkback=checkback.QUICK,
    hot_repeat=32,
    hot_shapes=("100", "1024"),
    compressed_shapes=("100",),
    aborted=(0, 50),
    client_records=100_000,
    embedded_commits=200,
)


def contests(plan: Plan) -> list[Contest]:
    """All of them."""
    found: list[Contest] = [_decode(plan, shape) for shape in NAMES]
    found += [_hot(plan, shape) for shape in plan.hot_shapes]
    found += decompressing.contests(plan.compressed, plan.compressed_shapes, plan.rounds)
    found += [_two_threads(plan, codec) for codec in ("lz4", "none")]
    found.append(_scan(plan))
    found += [_committed(plan, percent) for percent in plan.aborted]
    found += [_verify(plan), _cat(plan), *writing.contests(plan)]
    found += planning.contests(plan.verify, plan.process_rounds)
    found += fetching.contests(plan.rounds)
    found += appending.contests(plan)
    found += many_partitions.contests(plan.partitions, plan.commits, 2 * plan.start_rounds - 1)
    found += [*recovering.contests(plan), *producers.contests(plan)]
    found += [*serving.contests(plan.server), *grouping.contests(plan.groups)]
    found += clients.contests(plan.client_records, min(plan.process_rounds, 5))
    found += checkback.contests(plan.checkback)
    found += embedded.contests(plan.embedded_commits, plan.process_rounds)
    return found + [contest for cores in plan.spark_cores for contest in spark_contests(plan, cores)]


def _decode(plan: Plan, shape: str) -> Contest:
    source = Input(shape, plan.decode)
    goal = FILE_GOALS.get(shape)
    exact = shape == "100"

    def sides() -> Sequence[Side]:
        segment = ready(source)
        found: list[Side] = [
            DecodeSide(segment, how) for how in (COPY, VIEW, PREAD_COPY, FRESH_COPY, FRESH_VIEW)
        ]
        found += [JavaSide("file", segment), JavaSide("memory", segment), AiokafkaSide(segment)]
        found += [MapPart(segment), ChecksumPart(segment)]
        return [*found, KafkaPythonSide(segment)] if exact else found

    comparisons = [Comparison(form, "java file", goal) for form in ("copy", "view")]
    comparisons += [Comparison(form, "java memory") for form in ("copy", "view")]
    comparisons.append(Comparison("copy", "aiokafka", 12.0 if exact else None))
    comparisons.append(Comparison("view", "aiokafka", 14.0 if exact else None))
    comparisons += [Comparison(form, "java file") for form in ("copy pread", "copy fresh", "view fresh")]
    comparisons += [Comparison(part.name, "java file") for part in (MapPart, ChecksumPart)]
    if exact:
        comparisons.append(Comparison("copy", "kafka-python"))
    return _contest(f"decode {NAMES[shape]}, file", source, sides, comparisons, plan.rounds)


def _hot(plan: Plan, shape: str) -> Contest:
    source, repeat = Input(shape, MIB), plan.hot_repeat
    goal = HOT_GOALS.get(shape)
    forms = {how.name: how for how in (How(hot=True), How(views=True, hot=True), How(hot=True, fresh=True))}

    def sides() -> Sequence[Side]:
        segment = ready(source)
        ours = [DecodeSide(segment, how, repeat=repeat) for how in forms.values()]
        parts = [ChecksumPart(segment, repeat), *(WalkPart(segment, repeat, views=v) for v in (False, True))]
        both = [ChecksumsAndWalk(segment, repeat, views=views) for views in (False, True)]
        return [*ours, JavaSide("memory", segment, repeat=repeat), *parts, *both]

    comparisons = [Comparison(form, "java memory", None if "fresh" in form else goal) for form in forms]
    comparisons += [
        Comparison(How(views=views, hot=True).name, f"checksums, then {form}", PARTS_GOAL if goal else None)
        for form, views in (("copy", False), ("view", True))
    ]
    comparisons += [Comparison(part, "java memory") for part in PARTS_IN_CACHE]
    return _contest(f"decode {NAMES[shape]}, 1 MiB in cache", source, sides, comparisons, plan.rounds, repeat)


def _two_threads(plan: Plan, codec: str) -> Contest:
    source = Input("1024", plan.decode, codec=codec)

    def sides() -> Sequence[Side]:
        segment = ready(source)
        return [DecodeSide(segment, COPY), DecodeSide(segment, TWO_THREADS)]

    name = "decode 1 KB, two threads" if codec == "none" else f"decode 1 KB, {codec}, two threads"
    return Contest(
        name,
        "records",
        lambda: source.records,
        sides,
        [Comparison(TWO_THREADS.name, COPY.name, THREADS_GOAL, by_wall=True)],
        plan.rounds,
        "The wall clock of two threads needs two idle processors; their CPU time counts all threads.",
    )


def _scan(plan: Plan) -> Contest:
    source = Input("100", plan.decode)

    def sides() -> Sequence[Side]:
        segment = ready(source)
        return [ScanSide(segment), ScanSide(segment, mapped=True), JavaHeadersSide(segment)]

    return Contest(
        name="header scan, 16 KB batches",
        unit="batches",
        units=lambda: ScanSide(source.segment).run().units,
        sides=sides,
        comparisons=[Comparison("open, map and scan", "java headers")],
        rounds=plan.rounds,
        note="The scan itself is timed over mapped pages; the other row opens and maps the file.",
        limits=[Limit("scan", 40.0)],
    )


def _committed(plan: Plan, percent: int) -> Contest:
    source = Input("100", plan.committed, producers=64, aborted=percent)
    goal = {0: 0.97, 50: 1.5}.get(percent)

    def sides() -> Sequence[Side]:
        segment = ready(source)
        whole = (COPY, VIEW, COPY_COMMITTED, VIEW_COMMITTED)
        hows = [*whole, *(replace(how, planned=True) for how in whole)]
        return [
            *(DecodeSide(segment, how, output="committed" if how.committed else "records") for how in hows),
            JavaSide("memory", segment),
            JavaSide("committed", segment, output="committed"),
        ]

    # The goal is that of the filter: over a plan that is there already, as in a Spark executor.
    comparisons = [
        Comparison(f"{form} committed planned", f"{form} planned", goal) for form in ("copy", "view")
    ]
    comparisons += [Comparison(f"{form} committed", form) for form in ("copy", "view")]
    comparisons += [Comparison(f"{form} committed planned", "java committed") for form in ("copy", "view")]
    return _contest(f"read_committed, {percent} % aborted", source, sides, comparisons, plan.rounds)


def _verify(plan: Plan) -> Contest:
    source = Input("100", plan.verify)

    def sides() -> Sequence[Side]:
        segment = ready(source)
        return [processes.verify(segment, source.records), processes.dump_headers(segment, source.records)]

    name = f"verify, {plan.verify // MIB} MiB, all CRCs, whole process"
    note = "kafka-dump-log reads headers only here; txnkafka verify checks the CRC of everything."
    return _commands(name, source, sides, [Comparison("txnkafka verify", "kafka-dump-log", 5.0)], plan, note)


def _cat(plan: Plan) -> Contest:
    source = Input("100", plan.cat)

    def sides() -> Sequence[Side]:
        segment = ready(source)
        return [processes.cat(segment, source.records), processes.dump_records(segment, source.records)]

    name = f"cat as JSON lines, {plan.cat // MIB} MiB, whole process"
    note = "cat prints keys and values as base64, kafka-dump-log --print-data-log as text."
    return _commands(name, source, sides, [Comparison("txnkafka cat", "kafka-dump-log", 8.0)], plan, note)


def _contest(
    name: str,
    source: Input,
    sides: Callable[[], Sequence[Side]],
    comparisons: Sequence[Comparison],
    rounds: int,
    repeat: int = 1,
) -> Contest:
    return Contest(name, "records", lambda: repeat * source.records, sides, comparisons, rounds)


def _commands(
    name: str,
    source: Input,
    sides: Callable[[], Sequence[Side]],
    comparisons: Sequence[Comparison],
    plan: Plan,
    note: str,
) -> Contest:
    return Contest(name, "command", lambda: source.records, sides, comparisons, plan.process_rounds, note)

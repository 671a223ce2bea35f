"""A streaming query into a data directory, or to the broker that serves it, and what independent readers find
there.

Each input file is a batch of numbers. Its even numbers go to another topic than the odd ones. A value is a
number and the name of the run, so that the rows of two attempts differ.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.cluster import TIMEOUT, without_pythonpath
from tests.spark.conftest import ROOT
from tests.spark.sink_faults import FAULTS, FaultySource
from txnkafka import Broker, LogDir
from txnkafka.env import unique_name

PROGRAM = Path(__file__).with_name("sink_driver.py")
ROWS, BATCHES = 40, 3
TOPICS = ("even", "odd")
SERVERS = "kafka.bootstrap.servers"


def prepare(folder: Path, batches: int = BATCHES, fault: str = "") -> None:
    """Create the input of a run: a file for each batch; an empty target; a fault to happen."""
    (folder / "in").mkdir(parents=True)
    (folder / "faults").mkdir()
    for batch in range(batches):
        put(folder, batch)
    with Broker.open(folder / "data") as broker, broker.admin() as admin:
        for topic in TOPICS:
            admin.create_topic(topic, partitions=2)
    if fault:
        (folder / "faults" / "plan").write_text(fault)


def put(folder: Path, batch: int) -> None:
    """Add the input of a batch."""
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    (folder / "in" / f"{batch:04}").write_text("".join(f"{number}\n" for number in numbers))


def stream(spark: SparkSession, folder: Path, **options: str) -> None:
    """Run the query until the input is used up, with the planned fault of the folder."""
    spark.dataSource.register(FaultySource)
    reader = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    rows = (
        reader.text(str(folder / "in"))
        .repartition(2)
        .selectExpr(
            f"concat(value, ' {unique_name()}') as value",
            "value as key",
            "if(cast(value as int) % 2 = 0, 'even', 'odd') as topic",
        )
    )
    target = {} if SERVERS in options else {"path": str(folder / "data")}
    given = {**target, FAULTS: str(folder / "faults"), **options}
    writer = rows.writeStream.format("faulty").options(**given)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()


def start(
    folder: Path, *options: str, master: str = "local[2,2]", submit: str = ""
) -> subprocess.Popen[bytes]:
    """Start the driver. ``submit`` are options of spark-submit."""
    command = [sys.executable, str(PROGRAM), str(ROOT), str(folder), master, *options]
    environment = {**without_pythonpath(), "PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell"}
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)


def run(folder: Path, *options: str, master: str = "local[2,2]", submit: str = "") -> int:
    """Run the driver to its end; return its status."""
    with start(folder, *options, master=master, submit=submit) as driver:
        try:
            return driver.wait(TIMEOUT)
        finally:
            driver.kill()


def happened(folder: Path) -> bool:
    """Return whether the planned fault has happened."""
    return (folder / "faults" / "happened").exists()


def visible(folder: Path) -> list[list[str]]:
    """Return the committed values of each batch that is there, read from the files. Each batch must come
    whole, from one run."""
    batches = defaultdict[int, list[str]](list)
    for _, record in LogDir(folder / "data").topic(*TOPICS).records():
        assert record.value is not None
        number, run = record.value.decode().split()
        batches[int(number) // ROWS].append(f"{number} {run}")
    for batch, values in batches.items():
        numbers = sorted(int(value.split()[0]) for value in values)
        assert numbers == list(range(batch * ROWS, (batch + 1) * ROWS)), f"batch {batch}: {numbers}"
        assert len({value.split()[1] for value in values}) == 1, f"batch {batch} is of two attempts"
    return [sorted(batches[batch]) for batch in sorted(batches)]


def check_complete(folder: Path, batches: int = BATCHES) -> None:
    """Every row is there once; the consumer of the clients, and the reader of files, find the same; no
    transaction is open, and no staged file is left by a driver that ended."""
    found = visible(folder)
    assert len(found) == batches
    with Broker.open(folder / "data") as broker, broker.consumer(*TOPICS) as consumer:
        ends = consumer.end_offsets(sorted(consumer.assignment()))
        values = []
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            values += [(record.value or b"").decode() for record in consumer.poll(100)]
        with broker.admin() as admin:
            assert {each.state for each in admin.list_transactions()} == {"CompleteCommit"}
    assert sorted(values) == sorted(value for batch in found for value in batch)

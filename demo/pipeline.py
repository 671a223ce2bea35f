"""A Spark driver is killed in the middle of a stream; afterwards each committed order has one invoice.

Nothing is simulated: ``invoices.py`` is a PySpark program in its own processes, the signal is SIGKILL. Orders
come from three producers: one commits, one aborts, one stops in the middle of a transaction, which holds the
stream back until it is fenced.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from demo.spark_job import SETTINGS
from txnkafka import Broker, LogDir, TransactionRange

if TYPE_CHECKING:
    from demo.steps import Demo

__all__ = ["a_driver_is_killed", "check_invoices"]

PROGRAM = Path(__file__).with_name("invoices.py")
TRANSACTIONS, ORDERS = 8, 6  # of the producer that commits
PARTITIONS = 2
SECONDS = 240


def a_driver_is_killed(demo: Demo, root: Path, directory: str = "build/demo-pipeline") -> None:
    """Run the scene in ``root/directory``, which is deleted before."""
    folder = root / directory
    shutil.rmtree(folder, ignore_errors=True)
    demo.step(
        "A Spark stream",
        "Three producers write orders: the shop commits, a till aborts, and another till stops in the middle "
        "of a transaction (○), which holds back what the shop committed after it (▒).",
    )
    committed = produce_orders(folder / "orders")
    with Broker.open(folder / "invoices") as broker, broker.admin() as admin:
        admin.create_topic("invoices", partitions=PARTITIONS)
    demo.command("show", f"{directory}/orders", "--topic", "orders")
    demo.say("\nThis program writes an invoice for each order:")
    demo.program(PROGRAM.read_text(encoding="utf-8").partition("\n\n")[2].rstrip(), "")
    demo.step(
        "Its driver is killed",
        "The driver and its JVM are killed (SIGKILL) when the first invoices are visible. Then an operator "
        "fences the till that stopped.",
    )
    with driver(root, folder) as process:
        wait_for_invoices(folder, process)
    killed_ms = time.time_ns() // 1_000_000
    demo.command("show", f"{directory}/invoices", "--topic", "invoices")
    demo.command("txn", "fence", "till-2", "--data", f"{directory}/orders")
    demo.step(
        "Does each order have exactly one invoice?",
        "The program starts again and goes on to the end. A read_committed consumer reads all invoices.",
    )
    with driver(root, folder) as process:
        if process.wait(SECONDS):
            raise SystemExit(f"the program failed; {log_of(folder)} has its messages")
    demo.command("show", f"{directory}/invoices", "--topic", "invoices")
    demo.console.print(picture(folder / "invoices", killed_ms))
    on_the_disk = [record.key for _, record in LogDir(folder / "invoices").topic("invoices").records()]
    check_invoices("the directory", committed, on_the_disk)
    check_invoices("the consumer", committed, consumed(folder / "invoices"))
    demo.say(
        f"[bold green]✓[/] [bold]{len(committed)} committed orders, one invoice each, for the consumer and "
        "in the directory;[/] aborted orders have none."
    )


def produce_orders(path: Path) -> list[bytes]:
    """Write the orders of three producers; return the keys of the committed orders."""
    committed = []
    with Broker.open(path) as broker:
        with broker.admin() as admin:
            admin.create_topic("orders", partitions=PARTITIONS)
        shop = broker.producer(transactional_id="shop")
        for number in range(TRANSACTIONS):
            keys = [b"order-%d" % (number * ORDERS + i) for i in range(ORDERS)]
            with shop.transaction():
                for i, key in enumerate(keys):
                    shop.send("orders", b"%d" % (number + i), key=key, partition=i % PARTITIONS)
            committed += keys
            if number == 1:
                with (
                    suppress(InterruptedError),
                    broker.producer(transactional_id="till-1").transaction() as till,
                ):
                    till.send("orders", b"1", key=b"aborted", partition=0).result()
                    raise InterruptedError
            if number == 5:
                stopped = broker.producer(transactional_id="till-2")
                stopped.init_transactions()
                stopped.begin_transaction()
                stopped.send("orders", b"1", key=b"stopped", partition=1).result()
    return committed


@contextmanager
def driver(root: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``python invoices.py`` with quiet Spark settings; kill its processes at the end."""
    settings = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {settings} pyspark-shell",
        "PYTHONPATH": str(root),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [
        sys.executable,
        str(PROGRAM),
        *(str(folder / name) for name in ("orders", "invoices", "checkpoint")),
    ]
    with log_of(folder).open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)


def log_of(folder: Path) -> Path:
    return folder / "invoices.log"


def wait_for_invoices(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when a read_committed reader finds an invoice."""
    end = time.monotonic() + SECONDS
    while not LogDir(folder / "invoices").topic("invoices").count():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the program wrote nothing; {log_of(folder)} has its messages")
        time.sleep(0.05)


def picture(path: Path, killed_ms: int) -> Table:
    """Draw the transactions of the stream, a cell for each invoice, in the colour of the driver."""
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("micro-batch", "driver", *(f"invoices-{number}" for number in range(PARTITIONS))):
        table.add_column(name)
    batches: dict[int, dict[int, TransactionRange]] = {}
    for view in LogDir(path).partitions("invoices"):
        for each in view.transactions():
            batches.setdefault(each.producer_epoch, {})[view.partition] = each
    for number, (_, parts) in enumerate(sorted(batches.items())):
        is_first = min(part.first_timestamp for part in parts.values()) < killed_ms
        driver, colour = ("killed", "yellow") if is_first else ("second", "green")
        cells = [strip(parts.get(partition), colour) for partition in range(PARTITIONS)]
        table.add_row(str(number), Text(driver, colour), *cells)
    return table


def strip(found: TransactionRange | None, colour: str) -> Text:
    """Draw the records of a transaction in one partition, a cell each."""
    if found is None:
        return Text("")
    cell = "■" if found.outcome == "committed" else "×"  # noqa: RUF001
    return Text(cell * found.records, colour).append(
        f" {found.first_offset} to {found.last_data_offset}", "dim"
    )


def consumed(path: Path) -> list[bytes | None]:
    """Return the keys that a read_committed consumer of the broker gets."""
    with Broker.open(path) as broker, broker.consumer("invoices") as consumer:
        ends = consumer.end_offsets(sorted(consumer.assignment()))
        keys: list[bytes | None] = []
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            keys += [record.key for record in consumer.poll(100)]
    return keys


def check_invoices(reader: str, orders: list[bytes], invoices: list[bytes | None]) -> None:
    """Raise SystemExit unless each order has one invoice, and nothing else has."""
    counts = Counter(invoices)
    if counts == Counter(orders):
        return
    lost = [each for each in orders if not counts[each]]
    extra = [each for each, count in counts.items() if count > orders.count(each or b"")]
    raise SystemExit(
        f"{reader} has {len(invoices)} invoices of {len(orders)} orders; lost: {lost}, too many: {extra}: "
        "this is a bug in txnkafka"
    )

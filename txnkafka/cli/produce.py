"""``txnkafka produce`` sends lines or files as records, with the options of kcat."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Command
from txnkafka.shown import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txnkafka.cli.output import Messages
    from txnkafka.cli.record_input import InputRecord
    from txnkafka.client.producer import Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MOST_PENDING: Final = 10_000  # calls of send, before the oldest is waited for
_MOST_PARTS: Final = 64


class Delimiter(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    r"""Text with escapes such as ``\t``."""

    name = "delimiter"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        from txnkafka.cli.record_input import unescaped

        if isinstance(value, bytes):
            return value
        try:
            found = unescaped(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return found or self.fail("a delimiter must not be empty", param, ctx)


class Header(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """NAME=VALUE, or NAME for a null."""

    name = "header"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name, text.encode("utf-8", "surrogateescape") if equals else None


@click.command(cls=Command, short_help="Send lines or files as records.")
@click.argument("topic")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(dir_okay=False))
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Default: by the key's hash, or any.")
@click.option("-k", "--key", help="The key of records without a key of their own.")
@click.option("-K", "--key-delimiter", type=Delimiter(), help="Ends the key in a line, as in '\\t'.")
@click.option("-D", "--delimiter", type=Delimiter(), default="\\n", show_default=True, help="Ends a record.")
@click.option("-l", "--lines", "by_lines", is_flag=True, help="FILEs contain lines, like stdin.")
@click.option(
    "-H", "--header", "headers", type=Header(), multiple=True, metavar="NAME=VALUE", help="Repeatable."
)
@click.option("-z", "--compression", type=click.Choice(CODECS), help="The codec of batches.")
@click.option("-Z", "--null", "has_nulls", is_flag=True, help="Empty keys and values are null.")
@click.option("--transactional-id", metavar="ID", help="Send all records in one transaction of this id.")
@click.option(
    "--format",
    "input_format",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="jsonl: lines as 'txnkafka consume -J' and 'txnkafka cat' print them.",
)
@cluster_options
@click.pass_obj
def produce(
    messages: Messages,
    /,
    *,
    topic: str,
    compression: str | None,
    transactional_id: str | None,
    input_format: str,
    **options: Any,
) -> int:
    """Send the lines of stdin to TOPIC, or the content of each FILE as one record.

    With --transactional-id consumers get all records or none: an error and Ctrl-C abort the transaction.

    Exit status: 2 when a record could not be sent; without a transaction, others may have been."""
    settings = {"transactional_id": transactional_id, "compression_type": compression}
    with (
        opened(messages, options, creates=True) as cluster,
        cluster.producer(**settings) as producer,
    ):
        sending = Sending(producer, topic, options.pop("partition"), options.pop("headers"))
        with producer.transaction() if transactional_id is not None else nullcontext():
            _send(sending, input_format, **options)
            sending.finish()
    messages.note(f"{counted(sending.count, 'record')} sent to {topic}")
    return 0


class Sending:
    """Sends records, and waits for their acknowledgements."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partition: int | None,
        headers: tuple[tuple[str, bytes | None], ...],
    ) -> None:
        self.count = 0
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self._pending: deque[Any] = deque()

    def send_lines(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Send keys and values, as columns unless they have headers."""
        if self._headers:
            for key, value in records:
                self._keep(
                    self._producer.send(
                        self._topic, value, key, partition=self._partition, headers=self._headers
                    ),
                    _MOST_PENDING,
                )
                self.count += 1
            return
        keys, values = map(list, zip(*records, strict=True))
        has_keys = any(key is not None for key in keys)
        sent = self._producer.send_columns(
            self._topic, keys=keys if has_keys else None, values=values, partition=self._partition
        )
        self._keep(sent, _MOST_PARTS)
        self.count += len(values)

    def send(self, record: InputRecord) -> None:
        """Send a record with all its fields."""
        sent = self._producer.send(
            self._topic,
            record.value,
            record.key,
            partition=self._partition,
            timestamp=record.timestamp,
            headers=(*record.headers, *self._headers),
        )
        self._keep(sent, _MOST_PENDING)
        self.count += 1

    def finish(self) -> None:
        """Wait for all acknowledgements. Raises the first error."""
        self._producer.flush()
        while self._pending:
            self._pending.popleft().result()

    def _keep(self, sent: Any, most: int) -> None:
        self._pending.append(sent)
        while len(self._pending) > most:
            self._pending.popleft().result()


def _send(
    sending: Sending,
    input_format: str,
    *,
    files: tuple[str, ...],
    key: str | None,
    key_delimiter: bytes | None,
    delimiter: bytes,
    by_lines: bool,
    has_nulls: bool,
) -> None:
    from txnkafka.cli.record_input import Lines, json_record

    lines = Lines(key_delimiter, None if key is None else key.encode("utf-8", "surrogateescape"), has_nulls)
    if files and not by_lines and input_format == "text":
        sending.send_lines([lines.record(content) for content in _contents(files)])
        return
    number = 0
    for found in _parts(files, delimiter):
        if input_format == "text":
            sending.send_lines([lines.record(line) for line in found])
            continue
        for line in found:
            number += 1
            if line.strip():
                sending.send(json_record(line, number))


def _contents(files: tuple[str, ...]) -> Iterator[bytes]:
    for name in files:
        with open(name, "rb") as file:
            yield file.read()


def _parts(files: tuple[str, ...], delimiter: bytes) -> Iterator[list[bytes]]:
    """Yield lists of lines of the files, or of stdin."""
    from txnkafka.cli.record_input import pieces

    if not files:
        stdin: Any = sys.stdin.buffer
        yield from pieces(stdin.read1, delimiter)
    for name in files:
        with open(name, "rb") as file:
            yield from pieces(file.read1, delimiter)

"""``txnkafka spark-bundle`` packs the package into an archive for spark-submit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.output import write_text

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages

COULD_NOT = 2


@click.command("spark-bundle", cls=Command, short_help="Pack txnkafka for the executors of a Spark cluster.")
@click.option(
    "-o", "--output", type=PathOrAddress(), metavar="FILE",
    help="Archive to write; default: in the current directory.",
)  # fmt: skip
@click.pass_obj
def spark_bundle(messages: Messages, /, *, output: str | None) -> int:
    """Write the installed package to an archive, and print the options for spark-submit to send it to the
    executors:

        spark-submit $(txnkafka spark-bundle) job.py

    The executors need the same Python version and platform, and the libraries that a note names."""
    try:
        from txnkafka.spark.bundle import ARCHIVE_FRAGMENT, bundle
        from txnkafka.spark.executors import needed_libraries
    except ModuleNotFoundError as error:
        messages.error(f"{error}; this needs pip install 'txnkafka[spark]'")
        return COULD_NOT
    from txnkafka.env import LocalDataFiles, unique_name, write_durably

    if output and not output.endswith((".tar.gz", ".tgz")):
        raise click.BadParameter(
            "Spark unpacks it only when its name ends in .tar.gz or .tgz", param_hint="-o"
        )
    packed = bundle()
    path = os.path.abspath(output or packed.name)
    write_durably(LocalDataFiles(), path, packed.content, suffix=f".{unique_name()}")
    messages.note(f"for executors with {packed.build} and {', '.join(needed_libraries())}")
    messages.note("in the program, txnkafka.spark.register(spark) makes the format known")
    write_text(f"--archives {path}{ARCHIVE_FRAGMENT}")
    return 0

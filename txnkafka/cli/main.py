"""The ``txnkafka`` command: loads only the module of the given command, and turns errors into one line.

Exit status: 0 no findings, 1 findings, 2 failure, 130 interrupted. A command returns its status.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

import click

from txnkafka.cli.output import Messages, nowhere
from txnkafka.shown import nearest

COULD_NOT = 2
INTERRUPTED = 130  # 128 + SIGINT, the shells' convention
COMMANDS = (
    "ls", "cat", "dump", "verify", "repair", "handover", "lso", "show", "txns", "groups", "stats", "export",
    "serve", "produce", "consume", "topics", "txn", "halves", "resolve", "perf", "simulate", "spark",
    "spark-bundle", "vacuum", "docs",
)  # fmt: skip
TRACEBACK = "TXNKAFKA_TRACEBACK"
COMPLETE = "_TXNKAFKA_COMPLETE"  # click's name


class LazyGroup(click.Group):
    """A group that imports each command from the module of the same name, with _ for -."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Without arguments, print the help on stderr: some click versions raise it as
        an error."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(COULD_NOT)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the documentation."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"txnkafka.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the first argument. Raises UsageError, with a similar name, for an
        unknown command."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}: {nearest(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Do not return click's status 1 for a closed pipe on stdout: 1 means findings."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise click.exceptions.Exit(COULD_NOT) from None


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        import txnkafka

        click.echo(f"txnkafka {txnkafka.__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option("-v", "--verbose", is_flag=True, help="More details on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Errors only on stderr.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context, verbose: bool, quiet: bool) -> None:
    """Read, repair and hand over the log directories of Kafka brokers, and serve them to Kafka's clients.

    Exit status: 0 no findings, 1 findings, 2 failure, 130 interrupted."""
    ctx.obj = Messages(-1 if quiet else int(verbose))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    if sys.stderr is None:  # the shell's 2>&-
        sys.stderr = nowhere()
    if sys.stdout is None:  # >&-
        sys.stdout = nowhere()
    elif isinstance(sys.stdout.buffer, io.RawIOBase):
        # Unbuffered (python -u): a large write might be partial.
        encoding = sys.stdout.encoding
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), encoding=encoding)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except OSError as error:
        # Python must not flush the rest at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            Messages().error(f"cannot write the output: {error.strerror}")
        status = COULD_NOT
    sys.exit(status)


def _run(arguments: list[str] | None) -> int:
    from txnkafka.errors import KafkaError

    messages = Messages()
    if COMPLETE in os.environ:
        from txnkafka.cli.shells import register

        register()
    try:
        return cli.main(arguments, prog_name="txnkafka", standalone_mode=False) or 0
    except click.ClickException as error:
        messages.error(_sentence(error))
        if isinstance(error, click.UsageError) and error.ctx is not None:
            messages.note(f"'{error.ctx.command_path} --help' explains its arguments and options")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as interruption:
        messages.error("; ".join(["interrupted", *map(str, interruption.args)]))
        return INTERRUPTED
    except KafkaError as error:
        messages.error(str(error))
    except OSError as error:
        where = error.filename2 or error.filename  # of a rename: its target already exists
        messages.error(f"{where}: {error.strerror}" if where else str(error))
    except MemoryError as error:
        messages.error(f"not enough memory: {error}")
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        messages.error(
            f"this is a bug in txnkafka ({type(error).__name__}: {error}); "
            f"run the command again with {TRACEBACK}=1 and report its output"
        )
    return COULD_NOT


def _sentence(error: click.ClickException) -> str:
    """Return the message in one line: click lists the choices of a missing option on separate lines."""
    text = error.format_message()
    return " ".join(text.split()) if isinstance(error, click.MissingParameter) else text

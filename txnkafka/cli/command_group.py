"""A command with subcommands, such as ``txnkafka topics list``: examples and hints as for other commands."""

from __future__ import annotations

from typing import Any

import click

from txnkafka.cli.command import NOTHING_CHANGED, Command
from txnkafka.cli.examples import EXAMPLES
from txnkafka.shown import nearest

COULD_NOT = 2


class Subcommand(Command):
    """A subcommand, with the examples of its group that call it. ``changes``: it sends requests that change
    something."""

    def __init__(self, *arguments: Any, changes: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._changes = changes

    def after_interruption(self) -> str:
        """Return the state that an interruption leaves."""
        return "requests that were sent may still take effect" if self._changes else NOTHING_CHANGED

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        group = "" if ctx.parent is None else ctx.parent.command.name or ""
        call = f"txnkafka {group} {self.name} "
        with formatter.section("Examples"):
            for example in EXAMPLES[group]:
                if example.command.startswith(call):
                    formatter.write(f"  {example.command}\n      {example.purpose}\n")


class CommandGroup(click.Group):
    """A command with subcommands, in the order of their definition."""

    command_class = Subcommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Without arguments, print the help on stderr."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(COULD_NOT)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the subcommand named by the first argument. Raises UsageError, with a similar name, for an
        unknown one."""
        name = args[0]
        if name not in self.commands and not ctx.resilient_parsing and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}: {nearest(name, self.commands)}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples of all subcommands."""
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"  {example.command}\n      {example.purpose}\n")

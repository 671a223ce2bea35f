"""The base class of all commands: -v and -q, examples below the options, groups of options. A repeated
single-value option is an error, because click silently keeps only the last value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import click

from txnkafka.cli.examples import AFTER_INTERRUPTION, EXAMPLES
from txnkafka.shown import nearest

Function = TypeVar("Function", bound=Callable[..., object])
NOTHING_CHANGED = "nothing was changed"
QUIET, VERBOSE = -1, 1  # of ``Messages``


class Command(click.Command):
    """A command that rejects repeated options unless they take several values or none. Examples:
    ``EXAMPLES``."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += [_verbosity("-v", "--verbose", VERBOSE), _verbosity("-q", "--quiet", QUIET)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for a repeated option that takes one value."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            options = Counter(parameter for parameter in order if isinstance(parameter, click.Option))
            for option, count in options.items():
                if count > 1 and not (option.multiple or option.is_flag or option.count):
                    ctx.fail(f"{option.opts[-1]} is given {count} times, but takes one value")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Raises Abort with the next step when the user interrupts it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort(self.after_interruption()) from None

    def after_interruption(self) -> str:
        """Return the state that an interruption leaves."""
        return AFTER_INTERRUPTION.get(self.name or "", NOTHING_CHANGED)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"  {example.command}\n      {example.purpose}\n")


class WordOf(click.Choice):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A choice of words; the error for an unknown word suggests the nearest."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = nearest(str(value), map(str, self.choices))
            self.fail(f"{error.message.rstrip('.')}; {hint}", param, ctx)


def _verbosity(short: str, long: str, level: int) -> click.Option:
    """Return the option -v or -q, valid both before and after the command name."""

    def set_level(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
        if is_given and ctx.obj is not None:
            ctx.obj.verbosity = level

    words = "Errors only on stderr." if level == QUIET else "More details on stderr."
    return click.Option([short, long], is_flag=True, expose_value=False, callback=set_level, help=words)


def add_options(function: Function, *options: Callable[[Function], Function]) -> Function:
    """Add click options to a command's function; --help lists them in this order."""
    for option in reversed(options):
        function = option(function)
    return function

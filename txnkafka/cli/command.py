"""What all commands share: options given twice are refused, and options come in groups.

Of an option that takes one value and is given twice, click silently keeps the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import click

__all__ = ["Command", "add_options"]

Function = TypeVar("Function", bound=Callable[..., object])


class Command(click.Command):
    """A command whose options are given once, unless they take several values or none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for an option that takes one value and is given twice."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            options = Counter(parameter for parameter in order if isinstance(parameter, click.Option))
            for option, count in options.items():
                if count > 1 and not (option.multiple or option.is_flag or option.count):
                    ctx.fail(f"{option.opts[-1]} is given {count} times, but takes one value")
        return super().parse_args(ctx, args)


def add_options(function: Function, *options: Callable[[Function], Function]) -> Function:
    """Add click options to a command's function; --help lists them in this order."""
    for option in reversed(options):
        function = option(function)
    return function

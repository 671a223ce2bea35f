"""Commands that refuse what click would pass over in silence: of an option that takes one value and is given
twice, click keeps the last."""

from __future__ import annotations

from collections import Counter

import click

__all__ = ["Command"]


class Command(click.Command):
    """A command whose options are given once, unless they take several values or none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, but for what was said twice. Raises UsageError."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for option, count in Counter(each for each in order if isinstance(each, click.Option)).items():
                if count > 1 and not (option.multiple or option.is_flag or option.count):
                    ctx.fail(f"{option.opts[-1]} is given {count} times, but takes one value")
        return super().parse_args(ctx, args)

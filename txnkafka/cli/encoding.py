"""The option ``--encoding``, which selects how the bytes of keys, values and headers are shown."""

from __future__ import annotations

import click

encoding_option = click.option(
    "--encoding",
    type=click.Choice(["utf8", "base64"]),
    default="utf8",
    show_default=True,
    help="utf8 shows text as it is, and marks bytes that had to become base64.",
)

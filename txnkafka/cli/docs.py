"""``txnkafka docs`` prints the pages of the documentation, which are installed with the package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import click

import txnkafka
from txnkafka.cli.command import Command
from txnkafka.cli.completion import beginning_with
from txnkafka.cli.output import write_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INSTALLED = "share/doc/txnkafka/"


def pages() -> dict[str, Path]:
    """Return the documentation files by page name, in alphabetical order."""
    return {path.stem.lower(): path for path in sorted(_files(), key=lambda path: path.stem.lower())}


def _files() -> Iterator[Path]:
    checkout = Path(txnkafka.__file__).parents[1]
    if (checkout / "pyproject.toml").exists():
        yield from checkout.glob("docs/*.md")
        yield from checkout.glob("[A-Z]*.md")
        return
    try:
        files = distribution("txnkafka").files or ()
    except PackageNotFoundError:
        return
    for file in files:
        if INSTALLED in file.as_posix() and file.as_posix().endswith(".md"):
            yield Path(str(file.locate()))


class Page(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """The name of a documentation page."""

    name = "page"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        name, found = str(value).lower().removesuffix(".md"), pages()
        if name not in found:
            self.fail(f"no page {value}; the pages are {', '.join(found)}", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the names of pages."""
        return beginning_with(incomplete.lower(), pages())


@click.command(cls=Command, short_help="Print the documentation, page by page.")
@click.argument("page", type=Page(), required=False)
def docs(page: str | None) -> int:
    """Print PAGE of the documentation, as Markdown; without PAGE, the list of pages.

    Exit status: 2 for an unknown page."""
    found = pages()
    if page is not None:
        write_text(found[page].read_text(encoding="utf-8").rstrip("\n"))
        return 0
    width = max(map(len, found), default=0)
    for name, path in found.items():
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        write_text(f"{name:{width}}  {title}")
    return 0

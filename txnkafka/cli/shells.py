"""Extends click's completion scripts: values after ``=``; for fish, ``~`` in paths and commas in help
texts."""

from __future__ import annotations

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)


def _with_option(found: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """Prefix values with ``--topic=``: zsh and fish replace the whole word, click returns only its end."""
    option, equals, _ = incomplete.partition("=")
    if not (equals and option.startswith("--")):
        return found
    return [
        CompletionItem(f"{option}={item.value}", help=item.help) if item.type == "plain" else item
        for item in found
    ]


class _Bash(BashComplete):
    """Bash splits ``--topic=orders`` into three words and completes the last. After a completion that ends
    with ``=`` no space is added."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", "COMPREPLY+=($value)\n            [[ $value == *= ]] && compopt -o nospace"
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        return [word for word in args if word != "="], incomplete.removeprefix("=")


class _Zsh(ZshComplete):
    source_template = ZshComplete.source_template.replace("_path_files", "compset -P '--*='; _path_files")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return _with_option(super().get_completions(args, incomplete), incomplete)


class _Fish(FishComplete):
    # fish's own completion of paths: __fish_complete_path of fish 3 leaves ~ and $HOME as they are
    source_template = FishComplete.source_template.replace(
        "__fish_complete_path $metadata[2]", "complete --do-complete \"'' \"(commandline -ct)"
    ).replace('string split ","', 'string split --max 1 ","')

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return _with_option(super().get_completions(args, incomplete), incomplete)


def register() -> None:
    """Register these scripts with click."""
    shells: tuple[type[ShellComplete], ...] = (_Bash, _Zsh, _Fish)
    for shell in shells:
        add_completion_class(shell)

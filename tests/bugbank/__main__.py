"""``python -m tests.bugbank --record [PATCH…]``: runs the tests that the patches name, and writes their
failure messages into the ``Says`` lines. Without names it takes the patches that lack a ``Says`` line.

Errors of broken code are not recorded: the patch or its test must then be corrected by hand.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bugbank.patches import Patch, PatchError, read_patch
from tests.bugbank.runner import Failure, first_failure, prepared

BANK = Path(__file__).parent
LIMIT_SECONDS = 600
AT_ONCE = 2
LONGEST_MESSAGE = 100
# parts of messages that differ between runs or machines
VARIABLE = {r"/\S*": r"\S*", r"0x[0-9a-f]+": r"0x\w+", r"\d+": r"\d+"}


def recorded(words: str) -> str:
    """Return a regular expression that matches a failure message, with any numbers and paths."""
    head, _, statement = words.rpartition(" @ ")
    kind, _, message = head.partition(": ")
    if statement.startswith("assert "):
        message = ""  # the statement contains it, with values that differ between runs
    expression = f"^{kind}: {_expression(message.strip()[:LONGEST_MESSAGE])}.* @ {_escaped(statement)}$"
    return expression.replace(": .*", ":.*")


def _expression(message: str) -> str:
    places = re.compile("|".join(f"({each})" for each in VARIABLE))
    found, at = "", 0
    for match in places.finditer(message):
        found += _escaped(message[at : match.start()]) + list(VARIABLE.values())[(match.lastindex or 1) - 1]
        at = match.end()
    return found + _escaped(message[at:])


def _escaped(text: str) -> str:
    """Escape like ``re.escape``, but only where necessary."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def record(path: Path) -> tuple[bool, str]:
    """Write the Says lines of a patch; returns whether that was possible, and a report."""
    patch = read_patch(path)
    try:
        with prepared(patch) as top:
            failures = [first_failure(top, each.arguments, LIMIT_SECONDS) for each in patch.caught_by]
    except PatchError as error:
        return False, f"{patch.name}: {error}"
    for failure in failures:
        if reason := _reason(failure):
            return False, f"{patch.name}: nothing recorded: {reason}"
    for witness, failure in zip(patch.caught_by, failures, strict=True):
        witness.says = recorded(next(words for words, broken in failure.errors if not broken))
    path.write_text(with_words(path.read_text(encoding="utf-8"), patch), encoding="utf-8")
    seconds = max(failure.seconds for failure in failures)
    lines = [f"{patch.name}: {seconds:.1f} s", *(f"  {each.says}" for each in patch.caught_by)]
    return True, "\n".join(lines)


def _reason(failure: Failure) -> str:
    if not failure.test:
        return failure.reason
    if all(broken for _, broken in failure.errors):
        return f"{failure.test} has broken: {failure.errors[0][0]}"
    return ""


def with_words(text: str, patch: Patch) -> str:
    """Return the text of a patch with the Says lines of ``patch``."""
    head, marker, diff = text.partition("In: ")
    words = iter(patch.caught_by)
    lines = []
    for line in head.splitlines():
        if not line.startswith("Says: "):
            lines.append(line)
        if line.startswith("Caught by: "):
            lines.append(f"Says: {next(words).says}")
    return "\n".join([*lines, ""]) + marker + diff


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["--record"]:
        print(__doc__)
        return 2
    paths = [BANK / f"{name}.patch" for name in arguments[1:]]
    if not paths:
        every = sorted(BANK.glob("*.patch"))
        paths = [path for path in every if any(each.says is None for each in read_patch(path).caught_by)]
    done = []
    with ThreadPoolExecutor(AT_ONCE) as executor:
        for is_recorded, text in executor.map(record, paths):
            done.append(is_recorded)
            print(text, flush=True)
    print(f"{sum(done)} of {len(paths)} patches recorded")
    return not all(done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

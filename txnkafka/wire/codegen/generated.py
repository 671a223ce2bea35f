"""Runs generated source. The lines are known to ``linecache``, so that tracebacks show them."""

from __future__ import annotations

import linecache
from typing import Any

__all__ = ["run_source"]


def run_source(source: str, function: str, title: str, names: dict[str, Any]) -> Any:
    """The function of this name that the source defines; ``title`` says in tracebacks what it is for."""
    file = f"<{function}: {title}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[function]

"""The import graph of ``txnkafka``, and its cycles.

A node is a module. Every import counts: at the top of the module, under ``if TYPE_CHECKING``, and inside of
a function. ``from package import module`` imports the module, ``from package import name`` the package.
Python also runs the packages that contain an imported module; these are not counted, because a package that
re-exports names of its modules would be a cycle.

``python -m tests.import_cycles`` prints the cycles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ["cycles", "graph_of", "import_graph"]

PACKAGE = "txnkafka"
Graph = dict[str, set[str]]


def import_graph(root: Path) -> Graph:
    """Return the imports of each module below ``root``/txnkafka; a compiled module has those of its stub."""
    files = {module_name(path.relative_to(root)): path for path in modules(root)}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return graph_of(texts)


def modules(root: Path) -> Iterator[Path]:
    for ending in ("*.py", "*.pyi"):
        yield from sorted((root / PACKAGE).rglob(ending))


def module_name(path: Path) -> str:
    """Return the dotted name of a file; a package is named without ``__init__``."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph_of(texts: Mapping[str, str]) -> Graph:
    """Return the graph of modules, given as name and text; imports of other packages are left out."""
    return {name: set(imports(name, text, texts.keys())) - {name} for name, text in texts.items()}


def imports(name: str, text: str, known: Iterable[str]) -> Iterator[str]:
    """Yield the modules out of ``known`` that a module imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.level:
                raise ValueError(f"{name}, line {node.lineno}: a relative import")
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = inner if inner in known else node.module
                if found in known:
                    yield found


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, each sorted, largest first.

    Source: Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, edges = work[-1]
            after = next(edges, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    if len(component) > 1:
                        found.append(sorted(component))
            elif after not in index:
                index[after] = low[after] = len(index)
                stack.append(after)
                work.append((after, iter(sorted(graph[after]))))
            elif after in stack:
                low[node] = min(low[node], index[after])
    return sorted(found, key=lambda component: (-len(component), component))


if __name__ == "__main__":
    graph = import_graph(Path(__file__).resolve().parent.parent)
    for component in cycles(graph):
        print(f"{len(component)} modules")
        for module in component:
            print(f"    {module} -> {', '.join(sorted(graph[module] & set(component)))}")

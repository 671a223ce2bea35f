"""Finds a cycle in a directed graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set


def cycle(edges: Mapping[int, Set[int]]) -> list[int]:
    """Return the nodes of one cycle, ending with the first node again; empty without a cycle."""
    done: set[int] = set()
    for root in edges:
        if root in done:
            continue
        path, on_path = [root], {root}
        stack: list[Iterator[int]] = [iter(sorted(edges[root]))]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                last = path.pop()
                on_path.discard(last)
                done.add(last)
            elif node in on_path:
                return [*path[path.index(node) :], node]
            elif node not in done:
                path.append(node)
                on_path.add(node)
                stack.append(iter(sorted(edges.get(node, ()))))
    return []

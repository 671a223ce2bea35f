"""The kinds of things that have configs (``ConfigResource.Type``)."""

from __future__ import annotations

__all__ = ["BROKER", "GROUP", "LOGGER", "METRICS", "TOPIC"]

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

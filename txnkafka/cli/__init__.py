"""The command line, one file per command; ``txnkafka.cli.main`` finds them. Docs: docs/cli.md."""

from __future__ import annotations

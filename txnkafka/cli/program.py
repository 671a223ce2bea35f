"""The program ``txnkafka``. All other imports are in its function, where Ctrl-C is handled."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # 128 + SIGINT, the shells' convention


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from txnkafka.cli.main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("txnkafka: error: interrupted; nothing was changed\n")
        sys.exit(INTERRUPTED)

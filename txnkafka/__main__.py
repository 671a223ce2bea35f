"""``python -m txnkafka`` is the program ``txnkafka``, of the interpreter that runs it."""

from __future__ import annotations

from txnkafka.cli.program import main

if __name__ == "__main__":
    main()

"""`make demo` calls this: finds the checkout and runs the steps."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import_module("demo.steps").main()

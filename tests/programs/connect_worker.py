"""Runs a worker of Kafka Connect with one connector: python connect_worker.py PORT CONNECTOR COMMAND…

CONNECTOR is the configuration of the connector in JSON. The worker answers no requests at first; the
configuration is sent again until it accepts it, and has no effect when the worker has it already.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

SECONDS = 10.0


def main(port: str, connector: str, *command: str) -> int:
    """Start the worker, configure the connector, and wait; returns the exit status of the worker."""
    worker = subprocess.Popen(command)
    name = json.loads(connector)["name"]
    while worker.poll() is None and not is_accepted(port, name, connector):
        time.sleep(0.5)
    return worker.wait()


def is_accepted(port: str, name: str, connector: str) -> bool:
    """Send the configuration; False while the worker cannot take it."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/{name}/config", connector.encode(), method="PUT",
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            return True
    except urllib.error.HTTPError as error:
        print(error, error.read().decode(), flush=True)
    except OSError as error:
        print(error, flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

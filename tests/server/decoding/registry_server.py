"""A schema registry on the loopback: the GETs of Confluent's REST API that decoders use."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Registry", "serving"]


class Registry:
    """The documents by path (bytes are sent as they are), the paths that were asked for, and the headers of
    the last request. ``pause`` seconds lie between two bytes of an answer."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any] | bytes] = {}
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}
        self.redirect: str | None = None
        self.url = ""
        self.pause = 0.0


@contextmanager
def serving() -> Iterator[Registry]:
    """Serve a registry until the block ends."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            registry.headers = dict(self.headers)
            found = registry.documents.get(self.path)
            if registry.redirect is not None:
                self.send_response(302)
                self.send_header("Location", registry.redirect)
            else:
                self.send_response(200 if found is not None else 404)
            absent = {"error_code": 40403}
            content = found if isinstance(found, bytes) else json.dumps(found or absent).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if not registry.pause:
                self.wfile.write(content)
                return
            with suppress(OSError):  # the reader may have had enough
                for byte in content:
                    self.wfile.write(bytes((byte,)))
                    time.sleep(registry.pause)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()

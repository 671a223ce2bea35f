"""A schema registry on the loopback: the GETs of Confluent's REST API that decoders use."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Registry", "serving"]


class Registry:
    """The documents by path, the paths that were asked for, and the headers of the last request."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}
        self.redirect: str | None = None
        self.url = ""


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
            content = json.dumps(found or {"error_code": 40403}).encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

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

"""Fetches small documents over HTTP, only from the address that the user gave."""

from __future__ import annotations

import base64
import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final

from txnkafka.env.address_password import password_of, without_password
from txnkafka.errors import KafkaError

TIMEOUT_SECONDS: Final = 30  # per read of a response, and for its whole content
PART_BYTES: Final = 64 << 10
LIMIT: Final = 16 << 20  # bytes of a response


class HttpStatusError(KafkaError):
    """The server responded with a status other than 200."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they lead to an address that the user did not give."""

    def redirect_request(self, *_: Any) -> None:
        return None


class HttpSource:
    """Documents below one address; user and password in it are sent as basic authentication."""

    def __init__(self, address: str) -> None:
        """Raise ValueError for an address that is not http or https."""
        parts = urllib.parse.urlsplit(address)
        self.address = without_password(address).rstrip("/")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.address} is not an address such as http://host:8081")
        host = parts.netloc.rpartition("@")[2]
        self._base = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {}
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(password_of(address))
            encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        self._opener = urllib.request.build_opener(_NoRedirects())

    def get(self, path: str) -> bytes:
        """Fetch one document. Raises HttpStatusError, and KafkaError without a response."""
        request = urllib.request.Request(f"{self._base}{path}", headers=self._headers)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                content = self._content(path, answer)
        except urllib.error.HTTPError as error:
            with error:
                raise HttpStatusError(f"{self.address}{path}: HTTP status {error.code}", error.code) from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an impossible address
            reason = getattr(error, "reason", None) or error
            raise KafkaError(f"{self.address}{path} does not answer: {reason}") from None
        return content

    def _content(self, path: str, answer: http.client.HTTPResponse) -> bytes:
        """Read a response within the time limit, even if it arrives byte by byte."""
        content, end = bytearray(), time.monotonic() + TIMEOUT_SECONDS
        while part := answer.read1(PART_BYTES):
            content += part
            if len(content) > LIMIT:
                raise KafkaError(f"{self.address}{path} answers with more than {LIMIT} bytes")
            if time.monotonic() > end:
                raise KafkaError(f"{self.address}{path} does not answer within {TIMEOUT_SECONDS} seconds")
        return bytes(content)

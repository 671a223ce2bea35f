"""The protocol of one connection without its socket: bytes in, requests out, responses in, bytes out.

Requests come out in the order in which the client sent them. Responses may be given in any order, and are
sent in the order of the requests. Kafka serves one request of a connection after another; here several are
served at once, so that requests of one producer share a flush. After a Fetch no request comes out until it is
answered, because it may wait for long and its response may be large. No request comes out while too many
requests are unanswered or too many bytes unsent; the connection then stops reading.

An unknown API or version, or an invalid message, closes the connection, as in Apache Kafka. ApiVersions in an
unknown version is answered in version 0 (KIP-511).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from txnkafka.errors import InvalidRequestError
from txnkafka.server.receive_buffer import ReceiveBuffer
from txnkafka.wire.messages.apis import API_VERSIONS
from txnkafka.wire.messages.frames import read_request, read_request_header, write_response

if TYPE_CHECKING:
    from collections.abc import Collection

    from txnkafka.server.receive_buffer import BlockPool, Frame
    from txnkafka.wire.messages.frames import RequestHeader

MAX_UNANSWERED: Final = 100
MAX_UNANSWERED_BYTES: Final = 16 << 20  # of request frames
MAX_UNSENT_BYTES: Final = 1 << 20  # of responses, without the response that exceeds it
_FETCH: Final = 1
_WAIT_FOR_OTHERS: Final = (_FETCH, 11, 14)  # and JoinGroup, SyncGroup: as long as the client asks


class Request:
    """A request. ``message`` is valid until the request is answered. A request that ``is_last`` gets no
    response, and no request after it gets one."""

    __slots__ = ("frame", "header", "is_last", "message", "response")

    def __init__(self, header: RequestHeader, message: Any, frame: Frame) -> None:
        self.header = header
        self.message = message
        self.frame: Frame | None = frame
        self.response: list[memoryview] = []
        self.is_last = False

    @property
    def is_answered(self) -> bool:
        """Return whether the response was given."""
        return self.frame is None

    def keep_frame(self) -> None:
        """Never reuse the memory of the frame, even after the response, because a batch may still be read
        from it."""
        if self.frame is not None:
            self.frame = self.frame._replace(block=None)


class Unsent:
    """Number of unsent bytes of responses, shared by sessions."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Session:
    """One connection; ``served`` has the keys of the served APIs. ``accepts_unstable`` is
    ``unstable.api.versions.enable``. For one thread."""

    def __init__(
        self,
        pool: BlockPool,
        max_frame_bytes: int,
        served: Collection[int],
        all_unsent: Unsent | None = None,
        *,
        accepts_unstable: bool = False,
    ) -> None:
        self._received = ReceiveBuffer(pool, max_frame_bytes)
        self._served = served
        self._accepts_unstable = accepts_unstable
        self._unanswered: deque[Request] = deque()  # also answered requests after an unanswered one
        self._unanswered_bytes = 0
        self._unsent: deque[memoryview] = deque()
        self._has_ended = False  # after the requests that came out
        self.unsent_bytes = 0  # of all responses, also while they wait for an earlier response
        self._all_unsent = Unsent() if all_unsent is None else all_unsent
        self.space = self._received.space
        self.received = self._received.received

    @property
    def is_saturated(self) -> bool:
        """Return whether requests must be answered and sent before the next one comes out and more bytes
        are received."""
        waiting = self._unanswered
        if not waiting:
            return self.unsent_bytes >= MAX_UNSENT_BYTES
        return (
            self.unsent_bytes >= MAX_UNSENT_BYTES
            or len(waiting) >= MAX_UNANSWERED
            or self._unanswered_bytes >= MAX_UNANSWERED_BYTES
            or waiting[-1].header.api.key == _FETCH
        )

    @property
    def is_idle(self) -> bool:
        """Return whether every request that came out was answered and sent, except a waiting Fetch."""
        waiting = self._unanswered
        return not self.unsent_bytes and (
            not waiting or (len(waiting) == 1 and waiting[0].header.api.key == _FETCH)
        )

    @property
    def is_over(self) -> bool:
        """Return whether the connection can be closed: all responses before its end are sent."""
        waiting = self._unanswered
        return not self._unsent and (waiting[0].is_last if waiting else self._has_ended)

    @property
    def ends_soon(self) -> bool:
        """Return whether something is unanswered or unsent, and nothing waits for other clients."""
        waiting = [request for request in self._unanswered if not request.is_answered]
        waits_for_others = any(request.header.api.key in _WAIT_FOR_OTHERS for request in waiting)
        return bool(self._unanswered or self.unsent_bytes) and not waits_for_others

    def end(self, request: Request | None) -> None:
        """End the connection at ``request``, which gets no response; None ends it after all requests that
        came out.

        Requests before it are answered first, because Kafka, which serves one after another, has answered
        them by then."""
        if request is None:
            self._has_ended = True
        else:
            request.is_last = True

    def next_request(self) -> Request | None:
        """Return the next request; None when none is complete, or while the session is saturated.

        Raises InvalidRequestError for a request that is not served; the connection must then be closed."""
        waiting = self._unanswered
        if (waiting or self.unsent_bytes) and self.is_saturated:
            return None
        frame = self._received.next_frame()
        if frame is None:
            return None
        request = self._read(frame)
        waiting.append(request)
        self._unanswered_bytes += len(frame.view)
        return request

    def respond(self, request: Request, response: Any) -> None:
        """Answer a request with a message, or with None where it has no response.

        Raises InvalidRequestError for a message that its version cannot represent, ValueError for a second
        answer."""
        if request.frame is None:
            raise ValueError(f"the request {request.header} was already answered")
        if response is not None:
            api, version = request.header.api, request.header.api_version
            version = version if api.has(version) else 0
            unsent_before = self.unsent_bytes
            for buffer in write_response(api, version, request.header.correlation_id, response):
                view = memoryview(buffer)
                view = view if view.format == "B" else view.cast("B")
                if len(view):
                    request.response.append(view)
                    self.unsent_bytes += len(view)
            self._all_unsent.bytes += self.unsent_bytes - unsent_before
        self._unanswered_bytes -= len(request.frame.view)
        self._received.release(request.frame)
        request.frame = request.message = None
        self._queue_answered()

    def next_buffers(self, count: int) -> list[memoryview]:
        """Return the first buffers to send, at most ``count``."""
        unsent = self._unsent
        return list(unsent) if len(unsent) <= count else [unsent[i] for i in range(count)]

    def sent(self, count: int) -> None:
        """Remove ``count`` sent bytes from the buffers."""
        self.unsent_bytes -= count
        self._all_unsent.bytes -= count
        unsent = self._unsent
        while count:
            size = len(unsent[0])
            if count < size:
                unsent[0] = unsent[0][count:]
                return
            count -= size
            unsent.popleft()

    def close(self) -> None:
        """Release everything, after the end of the connection."""
        self._received.close()
        self._unanswered.clear()
        self._unsent.clear()
        self._all_unsent.bytes -= self.unsent_bytes
        self.unsent_bytes = self._unanswered_bytes = 0

    def _read(self, frame: Frame) -> Request:
        header, position = read_request_header(frame.view)
        api, version = header.api, header.api_version
        if api.key not in self._served:
            raise InvalidRequestError(f"the API {api.name} (key {api.key}) is not supported")
        is_stable = api.unstable is None or version < api.unstable
        is_accepted = api.has(version) and (is_stable or self._accepts_unstable)
        if not is_accepted:
            if api.key != API_VERSIONS:
                raise InvalidRequestError("the version is not supported", message=api.name, version=version)
            return Request(header, api.request(), frame)
        return Request(header, read_request(header, frame.view, position), frame)

    def _queue_answered(self) -> None:
        """Queue the responses that have no unanswered request before them."""
        waiting = self._unanswered
        while waiting and waiting[0].frame is None and not waiting[0].is_last:
            self._unsent.extend(waiting.popleft().response)

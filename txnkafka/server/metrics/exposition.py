"""Serve the metrics of a server as Prometheus text on a separate port.

This is the only module that imports prometheus-client. HTTP is served in separate threads. A scrape asks
the thread of the loop for the values, which takes one pass over the partitions. Formatting them and waiting
for a slow client happens in the scrape's thread.
"""

from __future__ import annotations

import io
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from txnkafka.env import running_seconds
from txnkafka.server.metrics.collection import collected
from txnkafka.server.metrics.durations import BOUNDS, Durations
from txnkafka.server.metrics.request_counts import RequestCounts
from txnkafka.server.metrics.table import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.core import Metric as Family

    from txnkafka.server.metrics.collection import Row
    from txnkafka.server.metrics.table import Metric
    from txnkafka.server.tcp import Server

Value = TypeVar("Value")
LOG = logging.getLogger("txnkafka.server")
COLLECT_SECONDS: Final = 5.0
CLIENT_SECONDS: Final = 10.0  # limit for receiving a request and for sending its response
MOST_SCRAPES: Final = 8  # at the same time


class FlushWatch:
    """Timer of flushes; one runs at a time."""

    def __init__(self) -> None:
        self.seconds = Durations()
        self._begin = 0.0

    def begin(self) -> None:
        """Note the begin of a flush."""
        self._begin = running_seconds()

    def end(self) -> None:
        """Add the duration of the flush."""
        self.seconds.add(running_seconds() - self._begin)


class MetricsServer:
    """HTTP server of the metrics of ``server``, at ``address``. Raises OSError when it cannot listen."""

    def __init__(self, server: Server, host: str, port: int) -> None:
        self._server = server
        self._counts = RequestCounts()
        self._flushes = FlushWatch()
        server.dispatcher.counts = self._counts
        server.host.watch = self._flushes
        registry = CollectorRegistry()
        registry.register(_Collector(self))
        ProcessCollector(registry=registry)
        self._http, self._thread = start_http_server(port, host, registry)
        self._http.set_app(self._routed(make_wsgi_app(registry)))
        self._http.RequestHandlerClass = _bounded(self._http.RequestHandlerClass)
        self.address = str(self._http.server_address[0]), self._http.server_port

    def rows(self) -> list[Row]:
        """Return the current values, from any thread. Raises TimeoutError when the loop does not answer."""
        server = self._server
        return self._asked(
            lambda: collected(server, self._counts, self._flushes.seconds, server.host.now_ms())
        )

    def _asked(self, ask: Callable[[], Value]) -> Value:
        """Return the result of ``ask`` in the thread of the loop. Raises TimeoutError when the loop does
        not answer."""
        answer: Future[Value] = Future()

        def call() -> None:
            try:
                answer.set_result(ask())
            except Exception as error:
                answer.set_exception(error)

        try:
            self._server.host.call_from_thread(call)
            return answer.result(COLLECT_SECONDS)
        except (TooLate, RuntimeError) as error:  # the loop is closed
            LOG.warning("a scrape failed: the broker does not answer")
            raise TimeoutError("the broker does not answer") from error

    def _routed(self, metrics: WSGIApplication) -> WSGIApplication:
        """Return the application that serves ``/metrics``, ``/health`` and ``/ready``."""

        def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path == "/metrics":
                return metrics(environ, start_response)
            if path in ("/health", "/ready"):
                state = self._state(is_ready=path == "/ready")
                status = "503 Service Unavailable" if state else "200 OK"
            else:
                state, status = "not found: this server has /metrics, /health and /ready", "404 Not Found"
            start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
            return [f"{state or 'ok'}\n".encode()]

        return app

    def _state(self, *, is_ready: bool) -> str:
        """Return the problem, or an empty text: the loop does not answer, or, with ``is_ready``, clients
        cannot connect."""
        server = self._server
        try:
            is_serving = self._asked(lambda: server.is_listening and not server.is_stopping)
        except TimeoutError as error:
            return str(error)
        if is_serving or not is_ready:
            return ""
        return "the broker is stopping" if server.is_stopping else "the broker is not listening yet"

    def close(self) -> None:
        """Stop listening, without waiting for responses in progress."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _bounded(handler: Any) -> Any:
    """Return the HTTP handler with limits for the time of a client and for the number of clients."""
    free = threading.BoundedSemaphore(MOST_SCRAPES)

    class Handler(handler):  # type: ignore[misc]
        timeout = CLIENT_SECONDS

        def handle(self) -> None:
            if free.acquire(blocking=False):
                try:
                    with suppress(OSError):  # the client has disconnected, or is too slow
                        super().handle()
                finally:
                    free.release()

        def get_stderr(self) -> _Nowhere:
            return _Nowhere()

    return Handler


class _Nowhere(io.StringIO):
    """Sink for the tracebacks of failed scrapes, which are logged in one line."""


class _Collector(Collector):
    def __init__(self, metrics: MetricsServer) -> None:
        self._metrics = metrics

    def describe(self) -> list[Family]:
        """Return nothing: the registry would collect at once, before the loop runs."""
        return []

    def collect(self) -> Iterator[Family]:
        """Yield all families, including families without a current value."""
        families = {metric.name: _family(metric) for metric in METRICS}
        for name, labels, value in self._metrics.rows():
            family = families[name]
            if isinstance(value, Durations):
                family.add_metric(labels, list(_buckets(value)), value.total)
            else:
                family.add_metric(labels, value)
        yield from families.values()


def _family(metric: Metric) -> Any:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}
    return kinds[metric.kind](metric.name, metric.meaning, labels=metric.labels)


def _buckets(durations: Durations) -> Iterator[tuple[str, float]]:
    """Yield cumulative buckets, as Prometheus has them."""
    total = 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), durations.counts, strict=True):
        total += count
        yield bound, total

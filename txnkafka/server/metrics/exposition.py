"""Shows the metrics of a server as Prometheus text, on a port of its own: the one module that knows
prometheus-client.

HTTP is served in threads of its own. A scrape asks the thread of the loop for the values, which takes as
long as looking at each partition once; making text of them, and waiting for a slow client, is the business of
the scrape's thread.
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

__all__ = ["MetricsServer"]

Value = TypeVar("Value")
LOG = logging.getLogger("txnkafka.server")
COLLECT_SECONDS: Final = 5.0
CLIENT_SECONDS: Final = 10.0  # how long a client may take to say or to hear something
MOST_SCRAPES: Final = 8  # at the same time


class FlushWatch:
    """Measures flushes, of which one is under way at a time."""

    def __init__(self) -> None:
        self.seconds = Durations()
        self._begin = 0.0

    def begin(self) -> None:
        """A flush begins."""
        self._begin = running_seconds()

    def end(self) -> None:
        """It has ended."""
        self.seconds.add(running_seconds() - self._begin)


class MetricsServer:
    """Watches ``server`` from now on, and shows its metrics on an address; ``address`` is the one that it has
    got. Raises OSError when it cannot be listened on."""

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
        """Return the values of the moment, from any thread. Raises TimeoutError when the loop does not
        answer."""
        server = self._server
        return self._asked(
            lambda: collected(server, self._counts, self._flushes.seconds, server.host.now_ms())
        )

    def _asked(self, ask: Callable[[], Value]) -> Value:
        """Return what ``ask`` returns in the thread of the loop. Raises TimeoutError when that does not
        answer."""
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
            LOG.warning("metrics or the state were asked for, and the broker does not answer")
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
                state, status = "this server has /metrics, /health and /ready", "404 Not Found"
            start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
            return [f"{state or 'ok'}\n".encode()]

        return app

    def _state(self, *, is_ready: bool) -> str:
        """Return what is wrong: the loop does not answer, or clients cannot connect, if ``is_ready`` is asked
        for; an empty text if nothing is."""
        server = self._server
        try:
            is_serving = self._asked(lambda: server.is_listening and not server.is_stopping)
        except TimeoutError as error:
            return str(error)
        if is_serving or not is_ready:
            return ""
        return "the broker is stopping" if server.is_stopping else "the broker does not listen yet"

    def close(self) -> None:
        """Listen no more; what is being answered is not waited for."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _bounded(handler: Any) -> Any:
    """The handler of HTTP requests, with a limit for the time of a client and for the number of clients."""
    free = threading.BoundedSemaphore(MOST_SCRAPES)

    class Handler(handler):  # type: ignore[misc]
        timeout = CLIENT_SECONDS

        def handle(self) -> None:
            if free.acquire(blocking=False):
                try:
                    with suppress(OSError):  # the client is gone, or too slow
                        super().handle()
                finally:
                    free.release()

        def get_stderr(self) -> _Nowhere:
            return _Nowhere()

    return Handler


class _Nowhere(io.StringIO):
    """Takes the tracebacks of failed scrapes, which the log has in one line."""


class _Collector(Collector):
    def __init__(self, metrics: MetricsServer) -> None:
        self._metrics = metrics

    def describe(self) -> list[Family]:
        """Nothing: the registry would collect at once, before the loop runs."""
        return []

    def collect(self) -> Iterator[Family]:
        """All families, those without a value of the moment, too."""
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
    """The buckets as Prometheus has them: each with those below it."""
    total = 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), durations.counts, strict=True):
        total += count
        yield bound, total

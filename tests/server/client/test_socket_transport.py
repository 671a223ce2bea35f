"""Connections over sockets: a real broker, hostile peers, threads, close and fork."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from txnkafka import Broker
from txnkafka.client.client_config import ClientConfig, parse_bootstrap
from txnkafka.client.cluster import Cluster
from txnkafka.client.socket_reactor import SocketReactor
from txnkafka.client.socket_transport import SocketTransport
from txnkafka.client.transport import Connection
from txnkafka.env import SystemClock
from txnkafka.errors import ClosedError, KafkaError, KafkaTimeoutError, NetworkError
from txnkafka.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from txnkafka.wire.messages.apis import APIS
from txnkafka.wire.messages.frames import write_response
from txnkafka.wire.messages.metadata import MetadataRequest


@contextmanager
def transport_to(address: str) -> Iterator[SocketTransport]:
    transport = SocketTransport(SocketReactor("the client", SystemClock()), parse_bootstrap(address), "me")
    try:
        yield transport
    finally:
        transport.close()


@contextmanager
def peer(behave: Callable[[socket.socket], object]) -> Iterator[str]:
    """A listener that gives each connection to ``behave``, in a thread; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:
                    return
                with accepted, suppress(OSError):
                    behave(accepted)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def request_of(accepted: socket.socket) -> bytes:
    """Return the next frame of a client."""
    content = b""
    while len(content) < 4 or len(content) < 4 + struct.unpack(">i", content[:4])[0]:
        piece = accepted.recv(65_536)
        if not piece:
            raise OSError("the client has closed")
        content += piece
    return content[4:]


def answer_versions(accepted: socket.socket, correlation_id: int | None = None) -> None:
    frame = request_of(accepted)
    number = struct.unpack_from(">i", frame, 4)[0] if correlation_id is None else correlation_id
    response = write_response(APIS[18], 0, number, ApiVersionsResponse(error_code=35))
    accepted.sendall(b"".join(response))


def connect(transport: SocketTransport, timeout_ms: int = 10_000) -> Connection:
    async def run() -> Connection:
        return await transport.connect(transport.bootstrap[0], timeout_ms)

    return transport.reactor.run(run())


def test_requests_of_many_threads_share_a_connection() -> None:
    with Broker.in_memory() as broker, transport_to(broker.serve("127.0.0.1:0")) as transport:
        connection, found = connect(transport), list[str]()

        def ask() -> None:
            async def run() -> str:
                response = await connection.request("Metadata", 12, MetadataRequest(topics=()), 10_000)
                return str(response.cluster_id)

            found.extend(transport.reactor.run(run()) for _ in range(20))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == [broker.cluster_id] * 160


def send(content: bytes) -> Callable[[socket.socket], None]:
    return lambda accepted: accepted.sendall(content)


def be_silent(accepted: socket.socket) -> None:
    request_of(accepted)
    request_of(accepted)


ENDED = "closed the connection|ended"
HOSTILE: dict[str, tuple[Callable[[socket.socket], object], str]] = {
    "closes at once": (lambda accepted: None, ENDED),
    "closes after the request": (request_of, ENDED),
    "another protocol": (send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "announced a response"),
    "a negative size": (send(struct.pack(">i", -5)), "announced a response of -5"),
    "a frame without a correlation id": (send(struct.pack(">ih", 2, 0)), "cannot be read"),
    "another correlation id": (lambda peer: answer_versions(peer, 77), "belongs to request 77, not 0"),
    "an answer before the request": (send(struct.pack(">iih", 6, 9, 0)), "cannot be read"),
    "versions that make no sense": (answer_versions, f"UNSUPPORTED_VERSION|{ENDED}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_peer_gives_an_error_with_its_address(name: str) -> None:
    behave, reason = HOSTILE[name]
    with peer(behave) as address, transport_to(address) as transport:
        with pytest.raises(KafkaError, match=reason) as raised:
            connect(transport)
        assert raised.value.retriable or "VERSION" in str(raised.value)


def test_a_broker_with_older_versions_of_api_versions_is_asked_in_its_version() -> None:
    """It answers an unknown version in version 0 (KIP-511), as Apache Kafka 4.3 answers version 5."""
    row = ApiVersion(api_key=18, min_version=0, max_version=3)

    def be_old(accepted: socket.socket) -> None:
        asked = struct.unpack_from(">hhi", request_of(accepted))
        response = ApiVersionsResponse(error_code=35, api_keys=(row,))
        accepted.sendall(b"".join(write_response(APIS[18], 0, asked[2], response)))
        asked = struct.unpack_from(">hhi", request_of(accepted))
        assert asked[1] == 3
        response = ApiVersionsResponse(api_keys=(row, ApiVersion(api_key=3, min_version=0, max_version=9)))
        accepted.sendall(b"".join(write_response(APIS[18], 3, asked[2], response)))
        request_of(accepted)

    with peer(be_old) as address, transport_to(address) as transport:
        assert connect(transport).versions.ranges == {"ApiVersions": (0, 3), "Metadata": (0, 9)}


def test_a_silent_peer_times_out() -> None:
    silent = pytest.raises(NetworkError, match="did not answer ApiVersions")
    with peer(be_silent) as address, transport_to(address) as transport, silent:
        connect(transport, 50)


def test_nothing_listens_and_no_such_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with transport_to(address) as transport, pytest.raises(NetworkError, match=f"no connection to {address}"):
        connect(transport)
    with (
        transport_to("no-such-host.invalid:9092") as transport,
        pytest.raises(NetworkError, match="is unknown"),
    ):
        connect(transport)


def test_a_cluster_repeats_until_its_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with transport_to(address) as transport:
        cluster = Cluster(transport, ClientConfig(reconnect_backoff_ms=1, retry_backoff_ms=1))
        attempt = cluster.retried(cluster.any_connection, 200, "the connection")
        with pytest.raises(
            KafkaTimeoutError, match=r"the connection failed for 200 ms: no connection to 127"
        ) as error:
            transport.reactor.run(attempt)
        assert isinstance(error.value.__cause__, NetworkError)


def test_a_client_finds_a_broker_that_was_restarted() -> None:
    first = Broker.in_memory()
    address = first.serve("127.0.0.1:0")
    with transport_to(address) as transport:
        cluster = Cluster(transport, ClientConfig(reconnect_backoff_ms=1))
        transport.reactor.run(cluster.refresh())
        first.close()
        with Broker.in_memory() as second:
            second.serve(address)
            transport.reactor.run(cluster.retried(cluster.refresh, 20_000, "metadata"))
            assert cluster.cluster_id == second.cluster_id


def test_close_fails_the_requests_that_wait() -> None:
    with peer(be_silent) as address, transport_to(address) as transport:
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                connect(transport)
            except KafkaError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while not transport._connections:
            pass
        transport.close()
        thread.join(10)
        assert [type(error) for error in errors] in ([ClosedError], [NetworkError])
        with pytest.raises(ClosedError, match="the client is closed"):
            connect(transport)


def test_a_forked_child_cannot_use_a_client() -> None:
    with Broker.in_memory() as broker, transport_to(broker.serve("127.0.0.1:0")) as transport:
        connect(transport)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                connect(transport)
            except ClosedError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with os.fdopen(read, "rb") as pipe:
            assert b"from which this process was forked" in pipe.read()

"""PostgreSQL and MariaDB as processes of the tests, from the machine or from build/databases (ci/databases).

PostgreSQL does not run as root. A test that runs as root starts both servers as ``nobody``, with the one
capability to read a checkout in a private directory.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pymysql

UNPACKED = Path(__file__).parents[3] / "build" / "databases"
SECONDS_TO_START = 60
POSTGRESQL_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_prepared_transactions": "20",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
    # the commits of a test that kills the server must survive; SIGKILL loses no page of the kernel
    "fsync": "off",
}


class DatabaseServer:
    """A server with its data in a new directory. ``start`` and ``kill`` may alternate. ``connect``
    takes the options of the driver."""

    def __init__(
        self, command: Sequence[str], driver: Callable[..., Any], options: dict[str, Any], log: Path
    ) -> None:
        self.options = options
        self.connect = partial(driver, **options)
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=_environment())
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                self.connect().close()
                return
            except (psycopg.OperationalError, pymysql.OperationalError):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"no database server: {self._log.read_text()[-2000:]}") from None
                time.sleep(0.05)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, and wait for the end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(SECONDS_TO_START)
            self._process = None


def missing() -> dict[str, str]:
    """Return the servers that cannot be started here, with the reason."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        reason = "no setpriv, which starts a database server without the rights of root"
        return dict.fromkeys(("postgresql", "mariadb"), reason)
    found = {"postgresql": _postgresql_programs(), "mariadb": _mariadb_program()}
    return {
        name: "no server; ci/databases unpacks one on Debian" for name, path in found.items() if path is None
    }


def _postgresql_programs() -> Path | None:
    programs = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    programs += [*UNPACKED.glob("usr/lib/postgresql/*/bin")]
    return next((path for path in programs if (path / "initdb").exists()), None)


def _mariadb_program() -> Path | None:
    programs = [top / "sbin" / "mariadbd" for top in (Path("/usr"), UNPACKED / "usr")]
    return next((path for path in programs if path.exists()), None)


@contextmanager
def postgresql() -> Iterator[DatabaseServer]:
    """A PostgreSQL server with the user ``postgres``."""
    found = _postgresql_programs()
    assert found is not None, missing()
    with _directory() as top:
        data, port = top / "data", _free_port()
        layout = ("--auth=trust", "--username=postgres", "--no-sync", "--locale=C", "--encoding=UTF8")
        _run(top, str(found / "initdb"), "-D", str(data), *layout)
        settings = [f"--{name}={value}" for name, value in POSTGRESQL_SETTINGS.items()]
        command = [*_unprivileged(), str(found / "postgres"), "-D", str(data), "-p", str(port), *settings]
        options = {"host": "127.0.0.1", "port": port, "user": "postgres", "dbname": "postgres"}
        yield from _running(DatabaseServer(command, psycopg.connect, options, top / "log"), signal.SIGINT)


@contextmanager
def mariadb() -> Iterator[DatabaseServer]:
    """A MariaDB server with the database ``test`` and the user ``root``."""
    server = _mariadb_program()
    assert server is not None, missing()
    top = server.parents[1]
    with _directory() as directory:
        data, port = directory / "data", _free_port()
        places = ("--no-defaults", f"--basedir={top}", f"--datadir={data}")
        _run(
            directory,
            str(top / "bin" / "mariadb-install-db"),
            *places,
            "--auth-root-authentication-method=normal",
        )
        (data / "test").mkdir(exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(data / "test", "nobody")
        command = [*_unprivileged(), str(server), *places, f"--port={port}", "--bind-address=127.0.0.1"]
        command += [f"--socket={directory}/socket", "--innodb-buffer-pool-size=16M", "--skip-name-resolve"]
        command += ["--innodb-flush-log-at-trx-commit=2"]  # as fsync=off of PostgreSQL
        options = {"host": "127.0.0.1", "port": port, "user": "root", "database": "test"}
        server_process = DatabaseServer(command, pymysql.connect, options, directory / "log")
        yield from _running(server_process, signal.SIGTERM)


def empty(server: DatabaseServer) -> None:
    """Drop all tables of a server."""
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        if "dbname" in server.options:
            cursor.execute("DROP SCHEMA public CASCADE")
            cursor.execute("CREATE SCHEMA public")
        else:
            cursor.execute("DROP DATABASE test")
            cursor.execute("CREATE DATABASE test")
    connection.close()


def _running(server: DatabaseServer, stop: int) -> Iterator[DatabaseServer]:
    server.start()
    try:
        yield server
    finally:
        server.kill(stop)


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory that the unprivileged user can reach, unlike the directories of pytest."""
    with tempfile.TemporaryDirectory(prefix="txnkafka-database-") as name:
        if os.geteuid() == 0:
            shutil.chown(name, "nobody")
        yield Path(name)


def _unprivileged() -> list[str]:
    end_with_parent = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    if os.geteuid() != 0:
        return end_with_parent
    read_all = ["--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"]
    return [*end_with_parent, "--reuid", "nobody", "--clear-groups", *read_all]


def _environment() -> dict[str, str]:
    libraries = ":".join(str(path) for path in UNPACKED.glob("usr/lib/*-linux-gnu"))
    return {**os.environ, "LD_LIBRARY_PATH": libraries, "LC_ALL": "C"}


def _run(directory: Path, *command: str) -> None:
    done = subprocess.run(
        [*_unprivileged(), *command], capture_output=True, env=_environment(), cwd=directory, timeout=120
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()[-2000:]


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port

"""Storage options as people know them, in the form that obstore takes; and what its errors ask for.

obstore has two kinds of options, of the store and of the HTTP client, and stops the thread (a panic) when
one of the client's is among those of the store. People who know s3fs have other names for some. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["hint", "obstore_options"]

CLIENT_OPTIONS = frozenset((
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle",
    "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes",
    "proxy_url", "randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent",
))  # fmt: skip
# what s3fs calls it → what obstore calls it
S3FS_NAMES = {
    "anon": "skip_signature",
    "key": "access_key_id",
    "secret": "secret_access_key",
    "region_name": "region",
}
S3_SCHEMES = ("s3", "s3a")
HINTS = {  # what an error says → what to do
    "builder error": "if the endpoint speaks plain HTTP, allow it: --storage-option allow_http=true on the "
    'command line, storage_options={"allow_http": True} in Python, AWS_ALLOW_HTTP=true in the environment',
    "libjvm": "hdfs:// needs Java and Hadoop's native client: set JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR",
    "169.254.169.254": "no credentials were found, and this machine has no role: give access_key_id and "
    "secret_access_key, or skip_signature=true for a bucket that everybody may read",
    "UnknownConfigurationKey": "the options are those of obstore's store and of its HTTP client",
}


def obstore_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of obstore's file system: the client's options among themselves, s3fs' names as
    obstore's. Raises TypeError."""
    store: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in options.items():
        if name == "client_options":
            if not isinstance(value, Mapping):
                raise TypeError(f"client_options must be a mapping, not {type(value).__name__}")
            client |= value
        elif name in CLIENT_OPTIONS:
            client[name] = value
        elif name == "client_kwargs" and isinstance(value, Mapping):
            store |= _of_s3fs(value)
        else:
            store |= _of_s3fs({name: value}) if scheme in S3_SCHEMES else {name: value}
    if client:
        store["client_options"] = {name: _text(name, value) for name, value in client.items()}
    return store


def _of_s3fs(options: Mapping[str, Any]) -> dict[str, Any]:
    return {S3FS_NAMES.get(name, name): value for name, value in options.items()}


def _text(name: str, value: object) -> object:
    """obstore takes seconds as text with a unit."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value}s" if is_number and name.endswith("timeout") else value


def hint(text: str) -> str:
    """What to do about an error of a storage package, behind a semicolon; empty when nothing is known."""
    return "".join(f"; {advice}" for sign, advice in HINTS.items() if sign in text)

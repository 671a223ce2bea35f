"""Translates storage options to obstore's form, and gives hints for its errors.

obstore has separate options for the store and for the HTTP client, and panics if a client option is among the
store options. s3fs uses other names for some options. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CLIENT_OPTIONS = frozenset((
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle",
    "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes",
    "proxy_url", "randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent",
))  # fmt: skip
# s3fs' name → obstore's name
S3FS_NAMES = {
    "anon": "skip_signature",
    "key": "access_key_id",
    "secret": "secret_access_key",
    "region_name": "region",
}
S3_SCHEMES = ("s3", "s3a")
HINTS = {  # text of an error → hint
    "builder error": "if the endpoint speaks plain HTTP, allow it: --storage-option allow_http=true on the "
    'command line, storage_options={"allow_http": True} in Python, AWS_ALLOW_HTTP=true in the environment',
    "libjvm": "hdfs:// needs Java and Hadoop's native client: set JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR",
    "169.254.169.254": "no credentials were found, and this machine has no role: give access_key_id and "
    "secret_access_key, or skip_signature=true for a public bucket",
    "UnknownConfigurationKey": "valid options: obstore's options for the store and the HTTP client",
}


def obstore_options(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of obstore's file system: client options separated, s3fs' names translated. Raises
    TypeError."""
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
    """Convert a timeout to obstore's form: text with a unit of seconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value}s" if is_number and name.endswith("timeout") else value


def hint(text: str) -> str:
    """Return a hint for an error of a storage package, beginning with a semicolon; empty without a hint."""
    return "".join(f"; {advice}" for sign, advice in HINTS.items() if sign in text)

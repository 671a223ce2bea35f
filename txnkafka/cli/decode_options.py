"""The options of ``cat`` that decode keys and values."""

from __future__ import annotations

from typing import Any

import click

from txnkafka.cli.command import Function, add_options

KINDS = ("avro", "protobuf", "json", "registry")


def decode_options(function: Function) -> Function:
    """Add --decode, --decode-key and their related options to a command."""
    return add_options(
        function,
        click.option("--decode", type=click.Choice(KINDS), help="Decode values."),
        click.option("--decode-key", type=click.Choice(KINDS), help="Decode keys."),
        click.option("--schema", metavar="FILE", help="Schema of values: .avsc, or a descriptor set."),
        click.option("--key-schema", metavar="FILE", help="Schema of keys."),
        click.option("--message", metavar="NAME", help="Protobuf: the message, as in shop.Order."),
        click.option("--key-message", metavar="NAME", help="Protobuf: the message of keys."),
        click.option(
            "--schema-registry",
            metavar="URL",
            help="Confluent's schema registry; decodes values unless --decode selects another decoder.",
        ),
        click.option(
            "--decode-errors",
            type=click.Choice(["stop", "raw"]),
            default="stop",
            show_default=True,
            help="If decoding fails: stop reading that partition, or print the bytes as they are.",
        ),
    )


def pop_decoders(options: dict[str, Any]) -> dict[str, Any]:
    """Remove these options from a command's options; return decode_key, decode_value and decode_errors, or an
    empty dict without decoding. Raises UsageError, and KafkaError for an unusable schema."""
    registry = options.pop("schema_registry")
    kinds = {"decode": options.pop("decode"), "decode-key": options.pop("decode_key")}
    files = {"decode": options.pop("schema"), "decode-key": options.pop("key_schema")}
    messages = {"decode": options.pop("message"), "decode-key": options.pop("key_message")}
    on_error = options.pop("decode_errors")
    if registry is not None and "registry" not in kinds.values():
        if kinds["decode"] is not None:
            raise click.UsageError("--schema-registry needs --decode registry or --decode-key registry")
        kinds["decode"] = "registry"
    if "registry" in kinds.values() and registry is None:
        raise click.UsageError("--decode registry needs --schema-registry URL")
    client = _registry(registry)
    found = {name: _decoder(name, kinds[name], files[name], messages[name], client) for name in kinds}
    if not any(found.values()):
        return {}
    return {
        "decode_value": found["decode"], "decode_key": found["decode-key"], "decode_errors": on_error
    }  # fmt: skip


def _registry(url: str | None) -> Any:
    if url is None:
        return None
    from txnkafka.decoding import RegistryDecoder

    try:
        return RegistryDecoder(url)
    except ValueError as error:
        raise click.UsageError(f"--schema-registry: {error}") from None


def _decoder(option: str, kind: str | None, file: str | None, message: str | None, registry: Any) -> Any:
    prefix = "key-" if option == "decode-key" else ""
    if file is not None and kind not in ("avro", "protobuf"):
        raise click.UsageError(f"--{prefix}schema needs --{option} avro or protobuf")
    if message is not None and kind != "protobuf":
        raise click.UsageError(f"--{prefix}message needs --{option} protobuf")
    if kind in ("avro", "protobuf") and file is None:
        raise click.UsageError(f"--{option} {kind} needs --{prefix}schema FILE")
    if kind == "protobuf" and message is None:
        raise click.UsageError(f"--{option} protobuf needs --{prefix}message NAME")
    if kind is None or kind == "registry":
        return registry if kind else None
    from txnkafka import decoding

    match kind:
        case "avro":
            return decoding.AvroDecoder.from_file(str(file))
        case "protobuf":
            return decoding.ProtobufDecoder.from_file(str(file), str(message))
    return decoding.JsonDecoder()

"""Decoders of keys and values: callables that take bytes, and return the content or raise DecodeError.

    from txnkafka.decoding import AvroDecoder, RegistryDecoder

    orders.records(decode_value=RegistryDecoder("http://localhost:8081"))

JSON needs no package; ``pip install 'txnkafka[decode]'`` installs fastavro and protobuf for the others.
"""

from __future__ import annotations

from txnkafka.decoding.avro import AvroDecoder
from txnkafka.decoding.json_text import JsonDecoder
from txnkafka.decoding.protobuf import ProtobufDecoder
from txnkafka.decoding.registry import RegistryDecoder

__all__ = ["AvroDecoder", "JsonDecoder", "ProtobufDecoder", "RegistryDecoder"]

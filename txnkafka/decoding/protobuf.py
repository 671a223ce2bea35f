"""Keys and values that are Protobuf messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from txnkafka.decoding.schema_file import read_schema_file
from txnkafka.env.packages import import_package
from txnkafka.errors import DecodeError, KafkaError


class ProtobufDecoder:
    """Decodes one message type to the Python form of its JSON, with the field names of the ``.proto`` file.

    ``files`` are encoded FileDescriptorProtos, dependencies first; ``message`` is a full name such as
    ``shop.Order``, or the indexes of a message in the last file (``[0]``: the first one)."""

    def __init__(self, files: Iterable[bytes], message: str | list[int]) -> None:
        """Raise KafkaError for invalid descriptors, MissingPackageError without protobuf."""
        self._json = import_package("google.protobuf.json_format", "Protobuf", "decode")
        pools = import_package("google.protobuf.descriptor_pool", "Protobuf", "decode")
        factory = import_package("google.protobuf.message_factory", "Protobuf", "decode")
        try:
            pool, last = _pool(files, pools)
            self._class = factory.GetMessageClass(_descriptor(pool, last, message))
        except Exception as error:  # protobuf has no base class for these
            raise KafkaError(f"the Protobuf schema is invalid: {type(error).__name__}: {error}") from None

    @classmethod
    def from_file(cls, path: str, message: str) -> ProtobufDecoder:
        """Read the file that ``protoc --include_imports --descriptor_set_out=FILE`` wrote."""
        content = read_schema_file(path)
        descriptors = import_package("google.protobuf.descriptor_pb2", "Protobuf", "decode")
        try:
            files = descriptors.FileDescriptorSet.FromString(content).file
        except Exception as error:
            raise KafkaError(f"{path} is not a descriptor set of protoc: {error}") from None
        return cls([file.SerializeToString() for file in files], message)

    def __call__(self, content: bytes) -> Any:
        """Return the message as a dict. Raises DecodeError."""
        try:
            message = self._class.FromString(content)
            return self._json.MessageToDict(message, preserving_proto_field_name=True)
        except Exception as error:  # protobuf's DecodeError, and values that JSON cannot represent
            reason = f"{type(error).__name__}: {error}"
            raise DecodeError(f"it is not a {self._class.DESCRIPTOR.full_name}: {reason}") from None


WELL_KNOWN = (
    "descriptor", "any", "source_context", "type", "api", "duration", "empty", "field_mask", "struct",
    "timestamp", "wrappers",
)  # fmt: skip


def _pool(files: Iterable[bytes], pools: Any) -> tuple[Any, str]:
    """Return a pool with Google's own files, dependencies first, and ``files``; and the name of the last
    file."""
    pool, last = pools.DescriptorPool(), ""
    descriptors = import_package("google.protobuf.descriptor_pb2", "Protobuf", "decode")
    for name in WELL_KNOWN:
        known = import_package(f"google.protobuf.{name}_pb2", "Protobuf", "decode").DESCRIPTOR
        pool.AddSerializedFile(known.serialized_pb)
    for content in files:
        file = descriptors.FileDescriptorProto.FromString(content)
        last = file.name
        if not last.startswith("google/protobuf/"):
            pool.AddSerializedFile(content)
    return pool, last


def _descriptor(pool: Any, file: str, message: str | list[int]) -> Any:
    if isinstance(message, str):
        return pool.FindMessageTypeByName(message)
    # messages are in the order of the .proto file, as the indexes count them
    found: Any = list(pool.FindFileByName(file).message_types_by_name.values())[message[0]]
    for index in message[1:]:
        found = found.nested_types[index]
    return found

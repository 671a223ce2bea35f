"""Compresses record batches at Kafka's levels, and decompresses them into one reusable buffer with a size
limit.

Invariant: ``append`` either returns a complete batch's content or raises and leaves the buffer as it was. A
payload of n bytes may expand to 2048 n bytes but at most ``max_bytes`` (16 MiB are always allowed), whatever
its headers claim; memory is used only for bytes that are really written. Source:
org.apache.kafka.common.compress (KIP-390).

C functions decompress where they are found (``_core/codec_functions``). The readers in
``txnkafka.record.codecs`` decompress with Python's bindings where they are not, and decide about everything
that is damaged or framed in an unusual way. ``TXNKAFKA_CODECS=bindings`` in the environment selects these
readers alone.
"""

from __future__ import annotations

import enum
import os  # noqa: TID251  (the environment only)
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from txnkafka._core.codec_functions import LEFT, CodecFunctions
from txnkafka._core.scan import BatchIndex
from txnkafka.errors import CorruptRecordError, UnsupportedCompressionTypeError
from txnkafka.record.output_buffer import OutputBuffer

if TYPE_CHECKING:
    from types import ModuleType

MAX_BYTES: Final = 256 << 20
ALWAYS_ALLOWED_BYTES: Final = 16 << 20
MAX_RATIO: Final = 2048


class CompressionType(enum.IntEnum):
    """Codec of a batch: bits 0 to 2 of its attributes. Names are Kafka's, in ``label``."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Kafka's own spelling: ``none``, ``gzip``, ``snappy``, ``lz4``, ``zstd``."""
        return self.name.lower()

    @classmethod
    def named(cls, name: str | CompressionType) -> CompressionType:
        """Return the member for Kafka's name or a member. Raises ValueError for an unknown name, with the
        known ones."""
        for codec in cls:
            if name is codec or name == codec.label:
                return codec
        raise ValueError(f"unknown codec {name!r}: Kafka has {', '.join(codec.label for codec in cls)}")

    @classmethod
    def of(cls, value: int) -> CompressionType:
        """Return the member for the codec bits of a batch's attributes. Raises
        UnsupportedCompressionTypeError for 5, 6 and 7."""
        try:
            return cls(value)
        except ValueError:
            raise UnsupportedCompressionTypeError(f"unknown codec {value}: Kafka has 0 to 4") from None


class Levels(NamedTuple):
    """The levels of one codec (KIP-390)."""

    lowest: int
    highest: int
    default: int


_Compress: TypeAlias = Callable[[memoryview, int], bytes | memoryview]
# -1 is zlib's default; Kafka does not have level 0, no compression.
LEVELS: Final[dict[CompressionType, Levels]] = {
    CompressionType.GZIP: Levels(1, 9, -1),
    CompressionType.LZ4: Levels(1, 17, 9),
    CompressionType.ZSTD: Levels(-131072, 22, 3),
}


class Compressor:
    """Compresses the records of batches with one codec, at one of Kafka's levels for it.

    ``compression`` is Kafka's name of a codec or the member; the default of ``level`` is Kafka's. Raises
    ValueError for a name or a level that Kafka does not have."""

    __slots__ = ("_compress", "codec", "level")

    def __init__(self, compression: str | CompressionType = "none", level: int | None = None) -> None:
        self.codec = CompressionType.named(compression)
        self.level = _level(self.codec, level)
        self._compress: _Compress | None = None
        if self.codec is not CompressionType.NONE:
            self._compress = getattr(_codecs(), f"compress_{self.codec.label}")

    def compress(self, payload: bytes | bytearray | memoryview) -> bytes | memoryview:
        """Return the bytes that follow the header of a batch whose records are ``payload``."""
        view = memoryview(payload)
        return view if self._compress is None else self._compress(view, self.level)


def _level(codec: CompressionType, level: int | None) -> int:
    levels = LEVELS.get(codec)
    if levels is None:
        if level is not None:
            raise ValueError(f"{codec.label} has no levels")
        return 0
    if level is None or level == levels.default:
        return levels.default
    if not levels.lowest <= level <= levels.highest:
        raise ValueError(f"{codec.label} has levels {levels.lowest} to {levels.highest}, not {level}")
    return level


def _copy(output: OutputBuffer, payload: memoryview, magic: int) -> int:
    return output.write(output.end, payload)


_Decompress: TypeAlias = Callable[[OutputBuffer, memoryview, int], int]


@cache
def _codecs() -> ModuleType:
    """Return the module of the codecs; its import also tells ``CodecFunctions`` where the libraries are."""
    from txnkafka.record import codecs

    return codecs


def _decompress_of(codec: int, magic: int) -> _Decompress:
    if codec == CompressionType.NONE:
        return _copy
    if not CompressionType.GZIP <= codec <= (CompressionType.ZSTD if magic >= 2 else CompressionType.LZ4):
        raise UnsupportedCompressionTypeError(f"codec {codec} does not exist in message format {magic}")
    found: _Decompress = getattr(_codecs(), f"decompress_{CompressionType(codec).label}")
    return found


def _uses_functions() -> bool:
    wanted = os.environ.get("TXNKAFKA_CODECS") or "functions"
    if wanted not in ("functions", "bindings"):
        raise ValueError(f"TXNKAFKA_CODECS must be functions or bindings, not {wanted!r}")
    return wanted == "functions"


class Decompressor:
    """Decompresses batches into one buffer. Only one thread at a time may use it.

    ``max_bytes`` bounds each batch. The caller bounds their sum: it checks ``end``, and calls ``reset()``
    when the appended batches have been decoded. Raises ValueError for an unknown value of TXNKAFKA_CODECS."""

    __slots__ = ("_functions", "_output")

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._output = OutputBuffer()
        self._functions = CodecFunctions(
            enabled=_uses_functions(),
            max_ratio=MAX_RATIO,
            always_allowed=ALWAYS_ALLOWED_BYTES,
            max_bytes=max_bytes,
        )

    @property
    def max_bytes(self) -> int:
        """The number of bytes that a batch may become."""
        return self._functions.max_bytes

    @max_bytes.setter
    def max_bytes(self, limit: int) -> None:
        self._functions.max_bytes = limit

    @property
    def buffer(self) -> memoryview:
        """The memory that ``append``'s positions refer to; ask again after each ``append``, it may move."""
        return self._output.view

    @property
    def end(self) -> int:
        """Position after the last appended batch."""
        return self._output.end

    def reset(self) -> None:
        """Restart at position 0; views of ``buffer`` may be overwritten from now on."""
        self._output.reset()

    def append(self, codec: int, payload: bytes | memoryview, *, magic: int = 2) -> tuple[int, int]:
        """Decompress one batch's records; return their start and end in ``buffer``.

        ``payload`` is the bytes after the batch header (magic 2), or the value of a wrapper record (magic 0
        and 1). Raises CorruptRecordError, or UnsupportedCompressionTypeError for a codec that does not exist.
        """
        _codecs()
        output = self._output
        start = output.end
        # writers of magic 0 computed a checksum wrong, and zstd does not exist before magic 2
        if magic == 2 or (magic == 1 and codec != CompressionType.ZSTD):
            size = 1
            while size > 0:
                end, size = self._functions.decompress(codec, payload, output.view, start)
                output.reserve(size)
            if size != LEFT:
                output.end = end
                return start, end
        return self._append_with_bindings(codec, payload, magic)

    def append_batches(
        self,
        source: memoryview,
        position: int,
        index: BatchIndex,
        selection: bytes | bytearray,
        batches: range,
        *,
        regions: array[int],
        full: int,
        large: int,
    ) -> tuple[int, int]:
        """Check the CRCs of the selected ``batches`` (magic 2, compressed) and append their records, until
        the next one is damaged or must be appended by ``append``.

        ``source`` begins at byte ``position`` of the file. ``regions`` is extended by begin and end in
        ``buffer`` of each batch, 0 and 0 without records. No batch is begun when ``end`` is above ``full``;
        one with more than ``large`` bytes is the last. Returns the number of the next batch, and LEFT if
        ``append`` must append it, DAMAGED if its CRC is wrong, else 0."""
        _codecs()
        output = self._output
        i, size = batches.start, 1
        while size > 0:
            found = array("q", bytes(16 * (batches.stop - i)))
            following, output.end, size = self._functions.decompress_batches(
                source,
                position,
                index,
                selection,
                i,
                batches.stop,
                found,
                output.view,
                output.end,
                full,
                large,
            )
            regions.extend(found[: 2 * (following - i)])
            output.reserve(size)
            i = following
        return i, size

    def _append_with_bindings(self, codec: int, payload: bytes | memoryview, magic: int) -> tuple[int, int]:
        output = self._output
        view = payload if type(payload) is memoryview else memoryview(payload)
        start = output.end
        output.limit = start + self._allowed(len(view))
        output.clipped = False
        decompress = _decompress_of(codec, magic)
        try:
            end = decompress(output, view, magic)
        except _codecs().BINDING_ERRORS as error:
            name = CompressionType(codec).label
            if output.clipped:
                allowed = output.limit - start
                raise CorruptRecordError(
                    f"{name} data is damaged, or exceeds its limit of {allowed} bytes: {error}"
                ) from error
            raise CorruptRecordError(f"{name} data is damaged: {error}") from error
        output.end = end
        return start, end

    def _allowed(self, size: int) -> int:
        allowed = MAX_RATIO * size
        if allowed < ALWAYS_ALLOWED_BYTES:
            allowed = ALWAYS_ALLOWED_BYTES
        return allowed if allowed < self.max_bytes else self.max_bytes

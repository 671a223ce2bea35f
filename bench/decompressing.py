"""The contests over compressed segments."""

from __future__ import annotations

from collections.abc import Sequence

from bench.codecs import BareCodecSide
from bench.harness import Comparison, Contest, Missing, Side
from bench.java import JavaSide
from bench.ours import DecodeSide, How
from bench.parts import CodecPart
from bench.peers import AiokafkaSide
from bench.segments import NAMES, Input, ready
from txnkafka._core.codec_functions import codec_libraries

__all__ = ["contests"]

JAVA_GOALS = {"lz4": 2.0, "snappy": 2.0, "zstd": 1.8, "gzip": 2.0}  # against Kafka's reader of files
PARTS_GOAL = 0.95
COPY = How()


def contests(size: int, shapes: Sequence[str], rounds: int) -> list[Contest]:
    """Return the contests over segments of ``size`` bytes, one for each shape and codec."""
    return [_contest(Input(shape, size, codec=codec), rounds) for shape in shapes for codec in JAVA_GOALS]


def _contest(source: Input, rounds: int) -> Contest:
    codec = source.codec

    def sides() -> Sequence[Side | Missing]:
        segment = ready(source)
        parts: list[Side | Missing] = [BareCodecSide(segment, codec), CodecPart(segment, codec)]
        if codec not in codec_libraries():
            parts = [Missing(f"bare {codec}", "no C library of this codec was found")]
        java = [JavaSide("file", segment), JavaSide("memory", segment)]
        return [DecodeSide(segment, COPY), *parts, *java, AiokafkaSide(segment)]

    comparisons = [
        Comparison(COPY.name, f"bare {codec}, checksums and walk", PARTS_GOAL),
        Comparison(COPY.name, f"bare {codec}"),
        Comparison(COPY.name, "java file", JAVA_GOALS[codec]),
        Comparison(COPY.name, "java memory"),
        Comparison(COPY.name, "aiokafka"),
    ]
    name = f"decode {NAMES[source.shape]}, {codec}"
    return Contest(name, "records", lambda: source.records, sides, comparisons, rounds)

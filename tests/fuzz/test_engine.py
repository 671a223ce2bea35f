"""The fuzzer finds what it is there for: planted faults, in all the ways in which an input can do harm."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from random import Random
from types import ModuleType

import pytest

from tests.fuzz import directory, log_records
from tests.fuzz.campaign import corpus_of
from tests.fuzz.decoding import BATCH
from tests.fuzz.engine import Limits, Report, Target, fuzz, mutants
from tests.fuzz.guard import compiled_modules, guarded, protection_gap, sanitizer_is_loaded
from tests.fuzz.isolation import fuzz_isolated
from tests.fuzz.log_mutations import batches_of, mutate_log, sealed
from tests.fuzz.mutations import resize_bytes
from tests.models.builder import Batch, PlainRecord, legacy_entry
from tests.models.fetch_filter import decode_any, scan_log
from tests.models.record_batch import InvalidBatchError, Record
from txnkafka._core import scan

CORPUS = [b"\0\4abcd", b"\0\2xy"]


def length_prefixed(content: bytes, *, fault: Callable[[], None]) -> str:
    """A toy parser with a fault where the length is one too large."""
    length = int.from_bytes(content[:2], "big")
    if length == len(content) - 1:
        fault()
    return "accepted" if length == len(content) - 2 else "refused"


def toy(fault: Callable[[], None], **fields: int) -> Target:
    return Target(
        "toy",
        lambda content: length_prefixed(content, fault=fault),
        lambda random, content, pool: resize_bytes(random, content),
        **fields,
    )


def raise_error() -> None:
    raise IndexError("past the end")


def no_fault() -> None:
    """A parser without fault."""


def test_a_planted_fault_is_found_and_can_be_repeated() -> None:
    report = fuzz(toy(raise_error), CORPUS, 1, Limits(5000))
    assert report.failure is not None
    assert "IndexError: past the end" in report.failure.text
    assert int.from_bytes(report.failure.content[:2], "big") == len(report.failure.content) - 1
    again = fuzz(toy(raise_error), CORPUS, 1, Limits(report.failure.iteration + 1))
    assert again.failure == report.failure
    assert fuzz(toy(raise_error), CORPUS, 1, Limits(report.failure.iteration)).failure is None


def test_no_fault_no_failure_and_every_input_is_counted() -> None:
    report = fuzz(toy(no_fault), CORPUS, 1, Limits(500))
    assert report.failure is None
    assert report.executions == sum(report.labels.values()) == 500
    assert report.count("accepted") >= 2


def test_a_run_that_is_out_of_time_has_the_least_number_of_inputs() -> None:
    assert fuzz(toy(no_fault), CORPUS, 1, Limits(5000, seconds=0)).executions == len(CORPUS)
    assert fuzz(toy(no_fault), CORPUS, 1, Limits(5000, seconds=0, least=400)).executions == 400


def test_the_corpus_comes_first_and_another_seed_is_another_run() -> None:
    def inputs(seed: int) -> list[bytes]:
        runs = mutants(toy(no_fault), CORPUS, seed)
        return [next(runs)[1] for _ in range(50)]

    assert inputs(1)[:2] == CORPUS
    assert inputs(1) == inputs(1) != inputs(2)


def test_a_run_whose_inputs_are_all_refused_is_no_run() -> None:
    report = Report(executions=1000)
    report.labels["refused: at the door"] = 991
    report.labels["accepted"] = 9
    assert report.missing(toy(no_fault)) == ["accepted"]
    report.labels["accepted"] = 10
    assert report.missing(toy(no_fault)) == []


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(1)


def hang() -> None:
    time.sleep(60)


def spin() -> None:
    while True:
        pass


HARM = {kill: "SIGKILL", leave: "status 1", hang: "took too long", raise_error: "IndexError"}


@pytest.mark.parametrize("fault", HARM, ids=lambda fault: fault.__name__)
def test_harm_to_the_process_is_a_failure_with_its_input(fault: Callable[[], None]) -> None:
    report = fuzz_isolated(toy(fault), CORPUS, 1, Limits(5000), seconds_an_input=0.5)
    assert report.failure is not None
    assert HARM[fault] in report.failure.text
    expected = fuzz(toy(raise_error), CORPUS, 1, Limits(5000)).failure
    assert expected is not None
    assert (report.failure.iteration, report.failure.content) == (expected.iteration, expected.content)


def test_memory_out_of_proportion_is_a_failure_with_its_input() -> None:
    """Also when it is given back at once."""
    target = toy(lambda: bytearray(b"x") * (200 << 20) and None)
    report = fuzz_isolated(target, CORPUS, 1, Limits(5000), memory=100 << 20)
    assert report.failure is not None
    assert "MiB larger, 100 are allowed" in report.failure.text
    expected = fuzz(toy(raise_error), CORPUS, 1, Limits(5000)).failure
    assert expected is not None
    assert report.failure.content == expected.content


def test_computing_without_end_is_a_failure() -> None:
    report = fuzz_isolated(toy(spin), CORPUS, 1, Limits(5000), seconds_an_input=0.5)
    assert report.failure is not None
    assert "took too long" in report.failure.text


def test_an_isolated_run_reports_as_any_other() -> None:
    assert fuzz_isolated(toy(no_fault), CORPUS, 3, Limits(300)) == fuzz(toy(no_fault), CORPUS, 3, Limits(300))


def test_an_overread_of_a_guarded_buffer_ends_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    """One byte too far, in C and of a buffer as the targets use them; only a sanitizer can tell."""
    copied = ctypes.create_string_buffer(200)

    def overread(content: bytes) -> str:
        view = guarded(content)
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        ctypes.memmove(copied, address, len(content) + 1)
        return "accepted"

    report = fuzz_isolated(Target("overread", overread, lambda r, c, p: c), [b"x" * 40], 1, Limits(2))
    assert (report.failure is not None) == sanitizer_is_loaded()
    assert ("heap-buffer-overflow" in capfd.readouterr().err) == sanitizer_is_loaded()


def test_a_run_that_would_prove_nothing_is_told() -> None:
    gap = protection_gap(ctypes)
    assert gap is not None
    assert ("ctypes" if sanitizer_is_loaded() else "not loaded") in gap
    assert (protection_gap(*compiled_modules()) is None) == sanitizer_is_loaded()


def test_every_compiled_module_is_looked_at() -> None:
    compiled = {module.__name__ for module in compiled_modules()}
    loaded = {name for name, module in sys.modules.items() if is_an_extension_of_ours(name, module)}
    assert loaded <= compiled
    assert {scan.__name__, "txnkafka._core.producer_table", "txnkafka._core.mapping"} <= compiled


def is_an_extension_of_ours(name: str, module: ModuleType) -> bool:
    return name.startswith("txnkafka.") and str(getattr(module, "__file__", "")).endswith((".so", ".pyd"))


def test_sealed_batches_hold_and_are_found_again() -> None:
    batch = Batch(records=[PlainRecord(b"k", b"v")]).encode()
    entry = legacy_entry(1, b"k", b"v")
    damaged = [batch[:8] + bytes(4) + batch[12:17] + bytes(4) + batch[21:], entry[:8] + bytes(8) + entry[16:]]
    assert [sealed(each) for each in damaged] == [batch, entry]
    assert batches_of(batch + entry + b"tail") == [batch, entry, b"tail"]


def test_most_changed_logs_get_past_the_checksum() -> None:
    """Each change leaves a log whose batches mostly decode or are refused for more than their checksum."""
    log = Batch(records=[PlainRecord(b"k", b"v" * 20, 5, [(b"h", b"x")])] * 3).encode()
    whole = sum(is_sealed(mutate_log(Random(seed), log, [log])) for seed in range(300))
    assert whole > 150


def is_sealed(log: bytes) -> bool:
    batches = [log[each.position : each.position + each.size] for each in scan_log(log)[0]]
    return bool(batches) and all(sealed(batch) == batch for batch in batches)


def test_inputs_of_several_parts_are_packed_and_unpacked() -> None:
    files = {"/logs/t-0/a.log": b"abc", "/logs/é": b""}
    assert directory.unpacked(directory.packed(files)) == files
    assert log_records.unpacked(log_records.packed(1, None, b"")) == (1, None, b"")
    assert log_records.unpacked(b"") == (0, b"", b"")


def test_the_corpus_has_what_a_decoder_can_meet() -> None:
    logs = corpus_of(BATCH)
    headers = [(log, header) for log in logs for header in scan_log(log)[0]]
    assert {header.magic for _, header in headers} >= {0, 1, 2}
    assert {header.attributes & 7 for _, header in headers} >= {0, 1, 2, 3, 4}
    assert {header.control_type for _, header in headers} >= {-1, 0, 1}
    batches = [log[header.position : header.position + header.size] for log, header in headers]
    records = [record for batch in batches for record in _records(batch)]
    assert any(record.headers for record in records)
    assert any(record.key is None for record in records)


def _records(batch: bytes) -> list[Record]:
    """None of a batch that a finding has damaged."""
    try:
        return decode_any(batch)
    except InvalidBatchError:
        return []

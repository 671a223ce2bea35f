"""Readers of ``.log`` files: one file up to a given size, and a whole segment of a partition.

The size is taken once, when the directory is listed: later appends of a broker are not visible, so every pass
over the segment sees the same bytes. Bytes are either mapped (closed segments of a directory that no broker
has locked) or read into a buffer that is reused; the reader never relies on bytes being unchanged since an
earlier read.

Mapped bytes may change while they are in use, because the file is truncated or written. So results count only
after ``settled()`` has confirmed that the file is unchanged; otherwise the mapping is dropped, and the same
bytes are read from the file, with the semantics of ``pread``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from txnkafka._core.scan import BatchIndex, scan
from txnkafka.bounds import MAX_BATCH_BYTES, MAX_INDEXED_BATCHES
from txnkafka.env import FileSystem, MappedBytes, ReadableFile
from txnkafka.errors import CorruptRecordError, FileChangedError, LogDirError
from txnkafka.record.batch_header import BATCH_LENGTH, LOG_OVERHEAD, MIN_FRAME
from txnkafka.record.crc import first_invalid_crc

MAPPED_WINDOW_BYTES = 4 << 20  # headers are scanned first, and should still be cached when records are read
ZERO_WINDOWS = 16  # limit of windows of zeros read; a preallocated segment may have 1 GiB
MAX_OPEN_SEGMENTS = 64  # above it, a partition closes each segment after a pass

Examine = Callable[[int, memoryview, BatchIndex], None]


class LogFileReader:
    """Reads batches of the ``.log`` file at ``path``, limited to its first ``size`` bytes. ``mapped``: it may
    be mapped into memory."""

    def __init__(self, file_system: FileSystem, path: str, size: int, *, mapped: bool = False) -> None:
        self.file_system = file_system
        self.path = path
        self.size = size
        self.mapped = mapped
        self._file: ReadableFile | None = None
        self._mapping: MappedBytes | None = None
        self._buffer = bytearray()

    def read(self, position: int, length: int) -> memoryview:
        """Read bytes of the log, which are valid until the next read. Returns fewer bytes if the file has
        become shorter."""
        if self._file is None:
            self._open()
        if self._mapping is not None:
            try:
                return self._mapping.read(position, length)
            except OSError as error:
                raise self._unreadable(error) from error
        length = max(0, min(length, self.size - position))
        if len(self._buffer) < length:
            self._buffer = bytearray(max(length, min(self._window_bytes, self.size)))
        view = memoryview(self._buffer)[:length]
        assert self._file is not None
        try:
            return view[: self._file.read_into(view, position)]
        except OSError as error:
            raise self._unreadable(error) from error

    @property
    def _window_bytes(self) -> int:
        return MAPPED_WINDOW_BYTES if self.mapped else self.file_system.window_bytes

    def _open(self) -> None:
        try:
            self._file = self.file_system.open(self.path)
            if self.mapped:
                self._mapping = self._file.map(min(self.size, self._file.size()))
                self.mapped = self._mapping is not None
        except OSError as error:
            raise self._unreadable(error) from error

    def settled(self) -> bool:
        """Return True if the bytes from ``read`` still match the file. If a mapped file has changed, return
        False and read the file instead from now on: the caller must read the same bytes again."""
        if self._mapping is None or not self._mapping.changed():
            return True
        self._mapping = None
        self.mapped = False
        return False

    @property
    def guard(self) -> Callable[[], bool] | None:
        """Return ``settled`` for a mapped file; None if bytes are read into the reader's own memory."""
        return self.settled if self.mapped else None

    def reader(self, position: int, data: memoryview) -> Callable[[int, int], memoryview]:
        """Return a function that reads (position, length) of the window at ``position``: from ``data``, or
        from the file once it has changed."""
        from_mapping = self._mapping is not None

        def read(at: int, length: int) -> memoryview:
            if from_mapping and self._mapping is None:
                return self.read(at, length)
            return data[at - position : at - position + length]

        return read

    def _unreadable(self, error: OSError) -> LogDirError:
        return LogDirError(f"cannot read {self.path}: {error.strerror or error}")

    def close(self) -> None:
        """Close the file; it is reopened on demand."""
        if self._file is not None:
            self._file.close()
        self._file = self._mapping = None
        self._buffer = bytearray()

    def is_intact(self, index: BatchIndex, i: int) -> bool:
        """Return True if batch number ``i`` of an index of this file has a correct CRC. Reads the batch."""
        position = index.position[i]
        while True:
            data = self.read(position, index.size[i])
            batch = scan(data, position=position)
            intact = len(batch) == 1 and first_invalid_crc(data, batch, position=position) == 1
            if self.settled():
                return intact

    def windows(
        self, start: int = 0, end: int | None = None, *, examine: Examine | None = None
    ) -> Iterator[tuple[int, memoryview, BatchIndex]]:
        """Yield (position, bytes, index of their batches) from a batch boundary to ``end``; each window has
        whole batches only.

        The last window's index has the reason why the batches end. A window is 4 MiB for a mapped file, else
        the ``window_bytes`` of its file system, or one batch if that is larger. ``examine`` is called with
        each window before it is yielded, and again if the file has changed; later uses of a window's bytes
        must check ``settled``."""
        try:
            yield from self._windows(start, self.size if end is None else min(end, self.size), examine)
        finally:
            self._forget_window()

    def _windows(
        self, start: int, end: int, examine: Examine | None
    ) -> Iterator[tuple[int, memoryview, BatchIndex]]:
        size = self._window_bytes
        position = start
        while True:
            data = self.read(position, min(size, end - position))
            self._read_ahead(position + len(data), min(size, end - position - len(data)))
            at_end = position + len(data) >= end or len(data) < min(size, end - position)
            index = scan(data, position=position)
            if examine is not None:
                examine(position, data, index)
            if not self.settled():
                size = min(size, self._window_bytes)
                continue
            if index.stop == "end" and at_end and position + len(data) < end:
                # otherwise a file cut between two batches would look like a compacted segment
                index.truncate(len(index), "torn", "the file became shorter while it was read")
            # zeros at the end of a window may be the beginning of a batch, but a whole header of zeros is not
            stuck = index.stop == "garbage" or (index.stop == "zeros" and not len(index))
            if at_end or (stuck and len(data) >= MIN_FRAME):
                self._look_after_zeros(index, end)
                yield position, data, index
                return
            if len(index) == 0:
                wanted = self._batch_size(data, position)
                if wanted > end - position:
                    yield position, data, index
                    return
                size = max(wanted, 2 * size)
                continue
            yield position, data, index
            position = index.end_position
            size = self._window_bytes

    def _look_after_zeros(self, index: BatchIndex, end: int) -> None:
        """If zeros begin instead of a batch, count them in the whole file, and look for other bytes after
        them: a window shows neither."""
        begin = index.end_position
        if index.stop not in ("zeros", "garbage") or end - begin < MIN_FRAME:
            return
        zeros, is_all = self._count_zeros(begin, end)
        rest = end - begin - zeros
        if zeros < MIN_FRAME:
            return
        count = f"{zeros} zero bytes" if is_all else f"at least {zeros} zero bytes"
        if not rest or not (is_all or self._ends_with_data(end)):
            index.truncate(len(index), "zeros", f"{count} to the end" if is_all else count)
        else:
            follows = f"then {rest} bytes with other content" if is_all else "and other content after them"
            reason = f"no batch begins here: {count}, {follows}; {end - begin} bytes to the end"
            index.truncate(len(index), "garbage", reason)

    def _count_zeros(self, position: int, end: int) -> tuple[int, bool]:
        """Count the zeros from ``position`` on; returns also whether their end was found."""
        begin = position
        for _ in range(ZERO_WINDOWS):
            data = self._copy(position, min(self._window_bytes, end - position))
            zeros = len(data) if data.count(0) == len(data) else len(data) - len(data.lstrip(b"\0"))
            position += zeros
            if zeros < len(data) or position >= end or not data:
                return position - begin, True
        return position - begin, False

    def _ends_with_data(self, end: int) -> bool:
        """Return True if the last bytes before ``end`` are not all zero, as after a hole of a power cut."""
        data = self._copy(end - self._window_bytes, self._window_bytes)
        return data.count(0) < len(data)

    def _copy(self, position: int, length: int) -> bytearray:
        """Read into new memory, keeping the bytes of the last window valid."""
        assert self._file is not None
        data = bytearray(length)
        try:
            del data[self._file.read_into(memoryview(data), position) :]
        except OSError as error:
            raise self._unreadable(error) from error
        return data

    def _read_ahead(self, position: int, length: int) -> None:
        if self._file is not None and length > 0:
            self._file.read_ahead(position, length)

    def _forget_window(self) -> None:
        """Release the buffer: many segments may be open at once, and a window of a remote file is large."""
        self._buffer = bytearray()
        if self._file is not None:
            self._file.read_ahead(0, 0)

    def _batch_size(self, data: memoryview, position: int) -> int:
        if len(data) < MIN_FRAME:
            return MIN_FRAME
        wanted = int.from_bytes(data[BATCH_LENGTH:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if MAX_BATCH_BYTES < wanted <= self.size - position:
            raise CorruptRecordError(
                f"a batch of {wanted} bytes begins here; more than {MAX_BATCH_BYTES} are taken for damage",
                position=position,
                file=self.path,
            )
        return wanted


class SegmentReader(LogFileReader):
    """Reads the files of one segment. ``files`` maps kinds (``log``, ``index``, ``timeindex``, ``txnindex``,
    ``snapshot``) to paths. ``follows_cleaned``: the cleaner has processed the log before it. ``final_size``
    is the size of a file that gets no more appends; None if unknown."""

    def __init__(self, file_system: FileSystem, base_offset: int, files: dict[str, str], size: int) -> None:
        super().__init__(file_system, files["log"], size)
        self.base_offset = base_offset
        self.files = files
        self.follows_cleaned = False
        self.final_size: int | None = None
        self._index: BatchIndex | None = None

    def close(self) -> None:
        """Close the file and drop the index; both are read again on demand."""
        super().close()
        self._index = None

    def indexes(self) -> Iterator[BatchIndex]:
        """Yield all batches of the segment, in one index that is kept until ``close``, or in several indexes
        (see ``divided``) that are rebuilt each time. Bytes of earlier reads are invalid after each index.
        Raises FileChangedError, and CorruptRecordError for a batch that is too large."""
        if self._index is not None:
            yield self._index
            return
        parts = self._of_the_listed_file(0)
        part = next(parts)
        following = next(parts, None)
        if following is None:
            self._index = part
        yield part
        while following is not None:
            part, following = following, None
            yield part
            following = next(parts, None)

    def indexes_from(self, position: int) -> Iterator[BatchIndex]:
        """Yield the batches from ``position`` on, a batch boundary, in one or several indexes, which are not
        kept."""
        if position == 0:
            return self.indexes()
        return self._of_the_listed_file(position)

    def _of_the_listed_file(self, position: int) -> Iterator[BatchIndex]:
        """Yield the batches from ``position`` on. Raises FileChangedError if the file is not the listed one:
        its bytes up to the listed size would look damaged. A broker that compacts its log renames another
        file to the name, and a follower truncates the file."""
        for index in divided(index for _, _, index in self.windows(position)):
            change = "" if self._file is None else self._change(self._file.size(), index)
            if change:
                raise FileChangedError(
                    f"the file is not what it was when its directory was listed: it became {change}",
                    position=index.end_position,
                    file=self.path,
                )
            yield index

    def _change(self, size: int, index: BatchIndex) -> str:
        """Return how the file of this size has changed; empty if it is the listed file, may have grown, or
        changed after this pass."""
        if self.final_size is not None and size > self.final_size:
            return "longer"
        wanted = self.size if self.final_size is None else self.final_size
        return "shorter" if size < wanted and index.stop != "end" else ""

    def scan(self) -> BatchIndex:
        """Return all batches of the segment in one index of any size."""
        whole, *more = self.indexes()
        for window_index in more:
            whole.extend(window_index)
        return whole

    def end_offset(self) -> int:
        """Return the offset after the last batch; the base offset without batches."""
        found = self.base_offset
        for index in self.indexes():
            found = index.last_offset[-1] + 1 if len(index) else found
        return found

    @property
    def remembered(self) -> int:
        """The number of batches of this segment whose headers are in memory."""
        return 0 if self._index is None else len(self._index)

    def another(self) -> SegmentReader:
        """Return a reader of the same segment with its own buffer, for reading in two places at once."""
        found = SegmentReader(self.file_system, self.base_offset, self.files, self.size)
        found.mapped, found.final_size, found._index = self.mapped, self.final_size, self._index
        return found

    def remember(self, end_position: int, index: BatchIndex | None) -> None:
        """Adopt the result of an earlier scan, which has limited the segment to ``end_position``; ``index``
        is None if the segment has several indexes."""
        self.size, self._index = end_position, index


def divided(windows: Iterable[BatchIndex]) -> Iterator[BatchIndex]:
    """Join the batches of ``windows`` (at least one) to indexes of about MAX_INDEXED_BATCHES.

    They are divided where offsets are in order, so that a search for misplaced batches sees every batch's
    neighbours, unless the order is wrong everywhere. The last index has the reason why the batches end."""
    part = BatchIndex()
    for index in windows:
        if len(part) >= MAX_INDEXED_BATCHES and _may_divide(part, index):
            part.truncate(len(part), "end", "")
            yield part
            part = BatchIndex()
        part.extend(index)
    yield part


def _may_divide(part: BatchIndex, following: BatchIndex) -> bool:
    if not len(following):
        return False
    return following.base_offset[0] > part.last_offset[-1] or len(part) >= 2 * MAX_INDEXED_BATCHES

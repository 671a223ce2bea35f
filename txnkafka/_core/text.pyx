"""TextWriter: converts record columns to JSON lines, CSV or base64 lines, without Python objects per record.

    {"topic":…,"partition":…,"offset":…,"timestamp":…,"timestamp_type":"CreateTime","key":…,"value":…,
     "headers":[[name,value],…],"leader_epoch":…}

Text is written in pieces of a few hundred KiB. Two buffers are used in turn, so that memory is bounded and in
cache for any content of the columns; the interpreter's lock is released for the whole piece.

Invariant: before a record is written, the buffer has room for the longest text of its bytes (text.h has the
bounds), so that nothing is checked while writing. A piece that has readers is never overwritten.

Sources: org.apache.kafka.common.header.internals.RecordHeader for header names; RFC 4180.
"""
import json

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from txnkafka._core.atomic cimport add_user, drop, filled, take
from txnkafka._core.columns cimport RecordColumns, RunColumns, record_sink

from txnkafka.shown import plain_name, printable

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "text.h" nogil:
    void fill_text_tables()
    size_t text_bound(size_t size)
    size_t close_text_bound(const uint8_t* data, size_t size)
    uint8_t* put_bytes(uint8_t* out, const void* data, size_t size)
    uint8_t* put_text(uint8_t* out, const char* text)
    uint8_t* put_decimal(uint8_t* out, int64_t value)
    uint8_t* put_base64(uint8_t* out, const uint8_t* data, size_t size)
    uint8_t* put_json_string(uint8_t* out, const uint8_t* data, size_t size, int replace)
    uint8_t* put_csv_string(uint8_t* out, const uint8_t* data, size_t size)
    uint8_t* put_csv_shown(uint8_t* out, const uint8_t* data, size_t size)
    uint8_t* double_quotes(uint8_t* start, uint8_t* end)

cdef enum Form:
    JSON_LINES
    CSV_ROWS
    KEY_LINES
    VALUE_LINES

cdef enum:
    PIECE_BYTES = 256 * 1024    # of text a piece, unless one record needs more
    HEADER_EXTRA = 24           # ["",{"base64":""}],
    LINE_EXTRA = 384            # constant parts and numbers of a line without the topic, and TEXT_SLACK

cdef enum Column:               # bits of Line.columns
    OFFSET = 1
    TIMESTAMP = 2
    TIMESTAMP_TYPE = 4
    KEY = 8
    VALUE = 16
    HEADERS = 32
    LEADER_EPOCH = 64

cdef struct Field:
    const uint8_t* data
    Py_ssize_t size             # -1: null

cdef struct Line:               # common parts of all lines
    const uint8_t* prefix
    Py_ssize_t prefix_size
    bint utf8
    bint terminal
    int columns

cdef struct Run:                # common parts of the lines of one batch
    Py_ssize_t index
    Py_ssize_t end
    int32_t leader_epoch
    const char* timestamp_type

fill_text_tables()

FIELDS = (
    "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "leader_epoch"
)
cdef dict COLUMNS = dict(zip(
    FIELDS[2:], (OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, LEADER_EPOCH), strict=True
))
cdef str NO_HEADERS = "headers were not decoded; use RecordColumns(headers=True)"


cdef class Piece:
    """Memory for one piece of text, with a count of its readers."""

    cdef uint8_t* memory
    cdef Py_ssize_t capacity
    cdef Py_ssize_t filled
    cdef Py_ssize_t users           # see atomic.pxd

    def __dealloc__(self):
        free(self.memory)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if not add_user(&self.users):
            raise BufferError("this piece of text is being written again")
        try:
            PyBuffer_FillInfo(view, self, self.memory, self.filled, 1, flags)
        except BaseException:
            drop(&self.users)
            raise

    def __releasebuffer__(self, Py_buffer* view):
        drop(&self.users)

    cdef int reserve(self, Py_ssize_t size) except -1:
        if size <= self.capacity:
            return 0
        free(self.memory)
        self.capacity = 0
        self.memory = <uint8_t*>malloc(<size_t>size)
        if self.memory == NULL:
            raise MemoryError(f"no memory for {size} bytes of text")
        self.capacity = size
        return 0


cdef class TextWriter:
    """Turns the records of one partition into text.

    ``encoding`` applies to keys, values and header values. ``"base64"`` encodes all of them. ``"utf8"``
    writes UTF-8 bytes as text, others as base64, marked by ``"key_encoding":"base64"`` after the key
    (``value_encoding``; header values become ``{"base64":…}``). Header names are always text, with U+FFFD
    for bytes that are not UTF-8, as in Java. JSON escapes C1 and bidirectional controls; CSV contains the
    text unchanged, but with ``terminal`` all controls except tab and line feed become a backslash, ``u`` and
    four digits. Surrogates in the topic become ``\\x`` and two digits. ``fields`` are those of ``FIELDS`` to
    write, in that order; JSON and CSV only.

    The methods return iterators of pieces (read-only memoryviews of whole lines), which any number of threads
    may use. The columns cannot be reset between an iterator's first piece and its end.
    """

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly str encoding
    cdef readonly tuple fields
    cdef int columns
    cdef bint utf8
    cdef bint terminal
    cdef bytes json_prefix
    cdef bytes csv_prefix
    cdef tuple pieces

    def __cinit__(
        self, str topic, int32_t partition, *, str encoding="utf8", bint terminal=False, fields=FIELDS
    ):
        if encoding not in ("utf8", "base64"):
            raise ValueError(f"encoding must be utf8 or base64, not {encoding!r}")
        self.topic = topic
        self.partition = partition
        self.encoding = encoding
        self.utf8 = encoding == "utf8"
        self.terminal = terminal
        self.fields = tuple(name for name in FIELDS if name in fields)
        if not self.fields or len(self.fields) != len(set(fields)):
            raise ValueError(f"fields must be some of {', '.join(FIELDS)}")
        self.columns = sum(COLUMNS.get(name, 0) for name in self.fields)
        name = plain_name(topic)
        shown = printable(name) if terminal else name
        constant = {"topic": json.dumps(name), "partition": partition}
        self.json_prefix = "".join(f',"{n}":{v}' for n, v in constant.items() if n in self.fields).encode()
        constant = {"topic": quoted_if_needed(shown), "partition": partition}
        self.csv_prefix = "".join(f"{v}," for n, v in constant.items() if n in self.fields).encode()
        self.pieces = Piece(), Piece()

    @property
    def csv_header(self):
        """The first line of a CSV file, with its line end."""
        encoded = [f"{name}_encoding" for name in ("key", "value") if self.utf8 and name in self.fields]
        return ",".join([*self.fields, *encoded]).encode() + b"\r\n"

    def json_lines(self, RecordColumns columns not None, Py_ssize_t start=0, stop=None):
        """Write one JSON object and a line feed for each of the records ``start`` to ``stop``."""
        columns.need(columns.with_headers or not self.columns & HEADERS, NO_HEADERS)
        return self.start(columns, JSON_LINES, start, stop)

    def csv_rows(self, RecordColumns columns not None, Py_ssize_t start=0, stop=None):
        """Write one CSV row for each of the records ``start`` to ``stop``, without the header line
        (``csv_header``).

        Null is an empty field without quotes, an empty value is ``""``. Headers are a JSON array. With
        ``encoding="utf8"`` two more fields at the end say ``base64`` where key or value had to be encoded.
        """
        columns.need(columns.with_headers or not self.columns & HEADERS, NO_HEADERS)
        return self.start(columns, CSV_ROWS, start, stop)

    def base64_lines(self, RecordColumns columns not None, str column="value"):
        r"""Write only keys or values: one line of base64 per record, ``\N`` for null."""
        if column not in ("key", "value"):
            raise ValueError(f"column must be key or value, not {column!r}")
        return self.start(columns, KEY_LINES if column == "key" else VALUE_LINES, 0, None)

    cdef object start(self, RecordColumns columns, Form form, Py_ssize_t start, stop):
        cdef Py_ssize_t count = <Py_ssize_t>columns.sink.count
        columns.need(not columns.views, "text is made from copies; decode with views=False")
        if not 0 <= start <= (count if stop is None else stop) <= count:
            raise IndexError(f"records {start} to {stop} of {count}")
        return self._pieces(columns, form, start, PY_SSIZE_T_MAX if stop is None else stop)

    def _pieces(self, RecordColumns columns, Form form, Py_ssize_t i, Py_ssize_t stop):
        cdef Piece piece
        columns.hold()
        try:
            while i < min(stop, <Py_ssize_t>columns.sink.count):
                piece = self.take_piece()
                try:
                    i = self.fill(piece, columns, form, i, stop)
                finally:
                    filled(&piece.users, 1)
                try:
                    text = memoryview(piece)
                finally:
                    drop(&piece.users)
                yield text
        finally:
            drop(&columns.users)

    cdef Piece take_piece(self):
        """Return a piece without readers or writers; it is taken (atomic.pxd)."""
        # A loop refers to one piece while it requests the next; a piece that is kept longer keeps its memory.
        cdef Piece older = <Piece>self.pieces[1]
        cdef Piece newer = <Piece>self.pieces[0]
        if not take(&older.users):
            older = Piece()
            take(&older.users)
        # do not keep a large line in memory while the next one is made
        if newer.capacity > PIECE_BYTES and not newer.users:
            newer = Piece()
        self.pieces = older, newer
        return older

    cdef Py_ssize_t fill(self, Piece piece, RecordColumns columns, Form form, Py_ssize_t i,
                         Py_ssize_t stop) except -1:
        cdef bytes prefix = self.json_prefix if form == JSON_LINES else self.csv_prefix
        cdef Line line
        line.prefix = prefix
        line.prefix_size = len(prefix)
        line.utf8 = self.utf8
        line.terminal = self.terminal
        line.columns = self.columns
        piece.reserve(PIECE_BYTES)
        if line_bound(&columns.sink, &line, i, text_bound_of) > piece.capacity:
            piece.reserve(line_bound(&columns.sink, &line, i, close_text_bound_of))
        piece.filled = piece.capacity
        with nogil:
            i = fill_lines(
                &columns.sink, &columns.runs, form, &line, i, min(stop, <Py_ssize_t>columns.sink.count),
                piece.memory, &piece.filled,
            )
        return i


def quoted_if_needed(text):
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in '",\r\n') else text


cdef inline size_t text_bound_of(Field field) noexcept nogil:
    return text_bound(<size_t>field.size) if field.size > 0 else 0


cdef size_t close_text_bound_of(Field field) noexcept nogil:
    return close_text_bound(field.data, <size_t>field.size) if field.size > 0 else 0


cdef inline Field field_of(const uint8_t* data, const int32_t* offsets, const uint8_t* validity,
                           size_t nulls, Py_ssize_t i) noexcept nogil:
    cdef Field field
    field.data = data + offsets[i]
    field.size = offsets[i + 1] - offsets[i]
    if nulls and not validity[i >> 3] >> (i & 7) & 1:
        field.size = -1
    return field


cdef inline Field key_of(const record_sink* c, Py_ssize_t i) noexcept nogil:
    return field_of(c.key_data, c.key_offsets, c.key_validity, c.key_nulls, i)


cdef inline Field value_of(const record_sink* c, Py_ssize_t i) noexcept nogil:
    return field_of(c.value_data, c.value_offsets, c.value_validity, c.value_nulls, i)


cdef inline Field header_key_of(const record_sink* c, Py_ssize_t h) noexcept nogil:
    return field_of(c.header_key_data, c.header_key_offsets, NULL, 0, h)


cdef inline Field header_value_of(const record_sink* c, Py_ssize_t h) noexcept nogil:
    return field_of(c.header_value_data, c.header_value_offsets, c.header_value_validity,
                    c.header_value_nulls, h)


cdef inline Py_ssize_t line_bound(const record_sink* c, const Line* line, Py_ssize_t i,
                                  size_t (*bound)(Field) noexcept nogil) noexcept nogil:
    cdef size_t size = LINE_EXTRA + <size_t>line.prefix_size + bound(key_of(c, i)) + bound(value_of(c, i))
    cdef Py_ssize_t h
    if c.header_offsets != NULL:
        for h in range(c.header_offsets[i], c.header_offsets[i + 1]):
            # twice: CSV doubles the quotes of the JSON array
            size += 2 * (bound(header_key_of(c, h)) + bound(header_value_of(c, h)) + HEADER_EXTRA)
    return <Py_ssize_t>size


cdef Py_ssize_t fill_lines(const record_sink* c, const RunColumns* runs, Form form, const Line* line,
                           Py_ssize_t i, Py_ssize_t stop, uint8_t* out, Py_ssize_t* capacity) noexcept nogil:
    """Write as many lines of the records ``i`` to ``stop`` as certainly fit, at least one; ``capacity``
    becomes their size."""
    cdef const uint8_t* begin = out
    cdef Py_ssize_t first = i
    cdef Run run
    run.index = -1
    run.end = 0
    run.leader_epoch = -1
    run.timestamp_type = "NoTimestampType"
    while i < stop:
        if i > first and line_bound(c, line, i, text_bound_of) > capacity[0] - (out - begin):
            break
        if i >= run.end:
            next_run(runs, &run, i)
        if form == JSON_LINES:
            out = put_json_line(c, line, &run, out, i)
        elif form == CSV_ROWS:
            out = put_csv_row(c, line, &run, out, i)
        else:
            out = put_base64_line(key_of(c, i) if form == KEY_LINES else value_of(c, i), out)
        i += 1
    capacity[0] = out - begin
    return i


cdef void next_run(const RunColumns* runs, Run* run, Py_ssize_t i) noexcept nogil:
    while run.end <= i and run.index + 1 < runs.count:
        run.index += 1
        run.end = runs.ends[run.index]
    run.leader_epoch = runs.leader_epochs[run.index]
    run.timestamp_type = "NoTimestampType"
    if runs.timestamp_types[run.index] == 0:
        run.timestamp_type = "CreateTime"
    elif runs.timestamp_types[run.index] == 1:
        run.timestamp_type = "LogAppendTime"


cdef uint8_t* put_json_line(const record_sink* c, const Line* line, const Run* run, uint8_t* out,
                            Py_ssize_t i) noexcept nogil:
    cdef uint8_t* start = out       # every field begins with a comma; the first becomes the bracket
    cdef bint encoded = False
    out = put_bytes(out, line.prefix, <size_t>line.prefix_size)
    if line.columns & OFFSET:
        out = put_decimal(put_text(out, b',"offset":'), c.offsets[i])
    if line.columns & TIMESTAMP:
        out = put_decimal(put_text(out, b',"timestamp":'), c.timestamps[i])
    if line.columns & TIMESTAMP_TYPE:
        out = put_text(put_text(put_text(out, b',"timestamp_type":"'), run.timestamp_type), b'"')
    if line.columns & KEY:
        out = put_json_value(line, key_of(c, i), put_text(out, b',"key":'), &encoded)
        if encoded:
            out = put_text(out, b',"key_encoding":"base64"')
    if line.columns & VALUE:
        out = put_json_value(line, value_of(c, i), put_text(out, b',"value":'), &encoded)
        if encoded:
            out = put_text(out, b',"value_encoding":"base64"')
    if line.columns & HEADERS:
        out = put_headers(c, line, put_text(out, b',"headers":'), i)
    if line.columns & LEADER_EPOCH:
        out = put_text(out, b',"leader_epoch":')
        out = put_decimal(out, run.leader_epoch) if run.leader_epoch >= 0 else put_text(out, b"null")
    start[0] = 123                  # {
    return put_text(out, b"}\n")


cdef inline uint8_t* put_json_value(const Line* line, Field field, uint8_t* out,
                                    bint* encoded) noexcept nogil:
    """Write a key or value; ``encoded`` becomes true if it had to be base64."""
    cdef uint8_t* end = NULL
    encoded[0] = False
    if field.size < 0:
        return put_text(out, b"null")
    if line.utf8:
        end = put_json_string(out, field.data, <size_t>field.size, False)
        if end != NULL:
            return end
        encoded[0] = True
    out = put_text(out, b'"')
    out = put_base64(out, field.data, <size_t>field.size)
    return put_text(out, b'"')


cdef inline uint8_t* put_headers(const record_sink* c, const Line* line, uint8_t* out,
                                 Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t h
    out = put_text(out, b"[")
    for h in range(c.header_offsets[i], c.header_offsets[i + 1]):
        if h > c.header_offsets[i]:
            out = put_text(out, b",")
        out = put_header(c, line, out, h)
    return put_text(out, b"]")


cdef uint8_t* put_header(const record_sink* c, const Line* line, uint8_t* out,
                         Py_ssize_t h) noexcept nogil:
    cdef Field key = header_key_of(c, h)
    cdef Field value = header_value_of(c, h)
    cdef uint8_t* end = NULL
    out = put_text(out, b"[")
    out = put_json_string(out, key.data, <size_t>key.size, True)
    out = put_text(out, b",")
    if value.size < 0:
        return put_text(out, b"null]")
    if line.utf8:
        end = put_json_string(out, value.data, <size_t>value.size, False)
        if end != NULL:
            return put_text(end, b"]")
    out = put_text(out, b'{"base64":"' if line.utf8 else b'"')
    out = put_base64(out, value.data, <size_t>value.size)
    return put_text(out, b'"}]' if line.utf8 else b'"]')


cdef uint8_t* put_csv_row(const record_sink* c, const Line* line, const Run* run, uint8_t* out,
                          Py_ssize_t i) noexcept nogil:
    cdef bint key_encoded = False
    cdef bint value_encoded = False
    # every field ends with a comma; the last one is overwritten
    out = put_bytes(out, line.prefix, <size_t>line.prefix_size)
    if line.columns & OFFSET:
        out = put_text(put_decimal(out, c.offsets[i]), b",")
    if line.columns & TIMESTAMP:
        out = put_text(put_decimal(out, c.timestamps[i]), b",")
    if line.columns & TIMESTAMP_TYPE:
        out = put_text(put_text(out, run.timestamp_type), b",")
    if line.columns & KEY:
        out = put_text(put_csv_value(line, key_of(c, i), out, &key_encoded), b",")
    if line.columns & VALUE:
        out = put_text(put_csv_value(line, value_of(c, i), out, &value_encoded), b",")
    if line.columns & HEADERS:
        out = put_text(put_csv_headers(c, line, out, i), b",")
    if line.columns & LEADER_EPOCH:
        out = put_text(put_decimal(out, run.leader_epoch) if run.leader_epoch >= 0 else out, b",")
    if line.utf8 and line.columns & KEY:
        out = put_text(out, b"base64," if key_encoded else b",")
    if line.utf8 and line.columns & VALUE:
        out = put_text(out, b"base64," if value_encoded else b",")
    return put_text(out - 1, b"\r\n")


cdef inline uint8_t* put_csv_value(const Line* line, Field field, uint8_t* out, bint* encoded) noexcept nogil:
    cdef uint8_t* end = NULL
    if field.size < 0:
        return out
    if field.size == 0:
        return put_text(out, b'""')
    if line.utf8:
        if line.terminal:
            end = put_csv_shown(out, field.data, <size_t>field.size)
        else:
            end = put_csv_string(out, field.data, <size_t>field.size)
        if end != NULL:
            return end
        encoded[0] = True
    return put_base64(out, field.data, <size_t>field.size)


cdef inline uint8_t* put_csv_headers(const record_sink* c, const Line* line, uint8_t* out,
                                     Py_ssize_t i) noexcept nogil:
    cdef uint8_t* start = out
    if c.header_offsets[i] == c.header_offsets[i + 1]:
        return put_text(out, b"[]")
    out = put_headers(c, line, put_text(out, b'"'), i)
    return put_text(double_quotes(start + 1, out), b'"')


cdef inline uint8_t* put_base64_line(Field field, uint8_t* out) noexcept nogil:
    if field.size < 0:
        return put_text(out, b"\\N\n")
    return put_text(put_base64(out, field.data, <size_t>field.size), b"\n")

# The facts of the batch header: positions of its fields, attribute bits, control types, magic bytes.
# txnkafka/record/batch_header.py has the same names and values for Python, and draws the 61 bytes;
# tests/unit/record/test_batch_header.py compares the two.
# Sources: DefaultRecordBatch, RecordBatch, ControlRecordType, LegacyRecord.
cdef enum:
    # first byte of each field of a batch of magic 2
    BASE_OFFSET = 0
    BATCH_LENGTH = 8
    PARTITION_LEADER_EPOCH = 12
    MAGIC = 16
    CRC = 17
    ATTRIBUTES = 21                 # the CRC covers everything from here on
    LAST_OFFSET_DELTA = 23
    BASE_TIMESTAMP = 27
    MAX_TIMESTAMP = 35
    PRODUCER_ID = 43
    PRODUCER_EPOCH = 51
    BASE_SEQUENCE = 53
    RECORDS_COUNT = 57
    HEADER_SIZE = 61

cdef enum:
    # of every magic
    LOG_OVERHEAD = 12               # base offset and length: the length counts the bytes after these
    MIN_FRAME = 17                  # up to and including the magic byte: enough to recognize the format
    MIN_SIZE_0 = 14                 # length field of the smallest magic 0 and 1 entries and magic 2 batch
    MIN_SIZE_1 = 22
    MIN_SIZE_2 = 49

cdef enum:
    # first byte of each field of an entry of magic 0 or 1, if it differs from magic 2
    LEGACY_CRC = 12                 # CRC-32 of everything from the magic byte on
    LEGACY_ATTRIBUTES = 17
    LEGACY_TIMESTAMP = 18           # magic 1
    LEGACY_KEY_0 = 18
    LEGACY_KEY_1 = 26

cdef enum:
    ATTRIBUTE_CODEC = 0x07
    ATTRIBUTE_LOG_APPEND_TIME = 0x08
    ATTRIBUTE_TRANSACTIONAL = 0x10
    ATTRIBUTE_CONTROL = 0x20
    ATTRIBUTE_DELETE_HORIZON = 0x40
    KNOWN_ATTRIBUTES = 0x7F

cdef enum:
    NO_CONTROL_TYPE = -1            # data batch, or a control batch whose key cannot be read
    CONTROL_ABORT = 0
    CONTROL_COMMIT = 1

cdef enum:
    MAGIC_0 = 0
    MAGIC_1 = 1
    MAGIC_2 = 2
    UNKNOWN_MAGIC = 127             # the CRC matches a magic 2 batch, but the magic byte is unknown

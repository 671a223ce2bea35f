# Where the fields of a batch of magic 2 lie. Source: DefaultRecordBatch.
cdef enum:
    LOG_OVERHEAD = 12               # base offset and length, in front of every batch; it counts the rest
    HEADER_SIZE = 61
    BATCH_LENGTH = 8
    LEADER_EPOCH = 12
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
    KNOWN_ATTRIBUTES = 0x7F

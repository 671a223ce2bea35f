# The end of an open log; see log_writer.pyx.
from libc.stdint cimport int32_t, int64_t

from txnkafka._core.producer_table cimport ProducerTable
from txnkafka._core.validate cimport BatchRules, IncomingBatch


cdef class LogEnds:
    cdef public int64_t log_start, high_watermark, log_end
    cdef int move_end(self, int64_t log_end) except -1


cdef class LogWriter:
    cdef public BatchRules rules
    cdef public ProducerTable producers
    cdef public LogEnds offsets
    cdef public object config, guarded_by, flushing, local, segments, verification
    cdef public object known_epoch          # the epoch that an append needs no entry for; None: any needs one
    cdef object check(self, IncomingBatch batch, int origin, int transaction_version, object guard)
    cdef int take(self, IncomingBatch batch, int64_t position, int32_t leader_epoch, int64_t now_ms) except -1

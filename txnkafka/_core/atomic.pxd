# Counters of buffers that are looked at. Without the GIL they are released in any thread, so they are atomic.
cdef extern from *:
    """
    #define txnkafka_add(p, n) __atomic_add_fetch(p, n, __ATOMIC_SEQ_CST)
    #define txnkafka_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
    """
    Py_ssize_t atomic_add "txnkafka_add"(Py_ssize_t* counter, Py_ssize_t n) noexcept nogil
    int atomic_exchange "txnkafka_exchange"(int* flag, int value) noexcept nogil

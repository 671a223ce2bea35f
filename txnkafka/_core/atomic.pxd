# The users of a piece of memory as one number: -1 while it is being filled, else the number of readers. It is
# changed by compare and swap, because threads may acquire and release buffers while others decode without the
# GIL.
cdef extern from *:
    """
    /* Add a reader; returns 0 while the memory is being filled. */
    static inline int txnkafka_hold(Py_ssize_t *users) {
        Py_ssize_t now = __atomic_load_n(users, __ATOMIC_SEQ_CST);
        while (now >= 0)
            if (__atomic_compare_exchange_n(users, &now, now + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return 1;
        return 0;
    }
    /* Begin to fill the memory; returns 0 when it has readers or is being filled. */
    static inline int txnkafka_take(Py_ssize_t *users) {
        Py_ssize_t unused = 0;
        return __atomic_compare_exchange_n(users, &unused, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    #define txnkafka_drop(users) ((void)__atomic_sub_fetch(users, 1, __ATOMIC_SEQ_CST))
    #define txnkafka_filled(users, holders) __atomic_store_n(users, holders, __ATOMIC_SEQ_CST)
    #define txnkafka_users(users) __atomic_load_n(users, __ATOMIC_SEQ_CST)
    """
    bint add_user "txnkafka_hold"(Py_ssize_t* users) noexcept nogil
    bint take "txnkafka_take"(Py_ssize_t* users) noexcept nogil
    void drop "txnkafka_drop"(Py_ssize_t* users) noexcept nogil
    # Ends the filling that ``take`` began; ``holders`` is the number of readers from now on.
    void filled "txnkafka_filled"(Py_ssize_t* users, Py_ssize_t holders) noexcept nogil
    Py_ssize_t users_of "txnkafka_users"(Py_ssize_t* users) noexcept nogil

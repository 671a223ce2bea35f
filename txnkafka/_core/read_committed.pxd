# The values of a selection for each batch; ``select`` writes them, and the module exports them to Python.
cpdef enum:
    SKIP = 0
    WHOLE = 1
    BOUNDED = 2                     # only its records with offsets inside the bounds

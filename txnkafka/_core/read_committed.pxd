# What a selection says of a batch; ``select`` writes these, and Python finds them in the module.
cpdef enum:
    SKIP = 0
    WHOLE = 1
    BOUNDED = 2                     # of its records only those with offsets inside of the bounds

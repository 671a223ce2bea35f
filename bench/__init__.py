"""Paired benchmarks: the same bytes, the same fields, both sides in turn in one run. `python -m bench
--help`.
"""

"""Timed work: retention, compaction, and the deadlines of all parts."""

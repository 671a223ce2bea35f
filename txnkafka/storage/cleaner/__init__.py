"""Compaction of a log that is owned."""

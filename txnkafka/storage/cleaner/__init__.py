"""Compacts the log of an open partition."""

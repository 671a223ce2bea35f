"""Produce, fetch, list, and delete records."""

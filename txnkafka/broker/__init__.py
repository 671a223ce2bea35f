"""The owner of the logs of a data directory: flush tickets, maintenance, compaction."""

"""The open log of one partition: appends, reads, flushes, truncation."""

"""The log of a partition: its files' formats, the log itself, its recovery and its compaction."""

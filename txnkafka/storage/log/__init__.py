"""The log of one partition that is owned: appended to, read, flushed, truncated."""

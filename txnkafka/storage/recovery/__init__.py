"""Opens the log of a partition after a clean shutdown or a crash, even a crash while opening it."""

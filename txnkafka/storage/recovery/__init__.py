"""Opening the log of a partition: after a clean stop, after a crash, after a crash while opening it."""

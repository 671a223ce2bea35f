"""The deterministic simulation: a broker, its disk, its clients and the network between them, on one
thread and from one seed; and the checkers of what the clients saw and of what is on the disk.

``history``, ``anomalies``, ``group_anomalies``, ``cycles``, ``log_files`` and ``log_checker`` are the
checkers. They import nothing of the package but each other, so that a bug of the engine cannot hide in them.
"""

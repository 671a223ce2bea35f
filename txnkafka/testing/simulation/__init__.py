"""The deterministic simulation: a broker, its disk, its clients and the network between them, on one thread
and from one seed; and the checkers of the clients' observations and of the disk.

``history``, ``anomalies``, ``group_anomalies``, ``cycles``, ``log_files`` and ``log_checker`` are the
checkers. They import only each other from the package, so that a bug of the engine cannot hide in them.
"""

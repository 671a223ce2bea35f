"""Test doubles for the outside world: files in memory, faults, disks after a power cut."""

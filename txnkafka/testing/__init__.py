"""What tests put in the place of the outside world: files in memory, faults, what a power cut leaves."""

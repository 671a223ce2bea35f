"""The metadata log: its changes, snapshots and features, and the leader epochs."""

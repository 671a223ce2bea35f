"""Programs that copy records exactly once, while the broker and they themselves are killed."""

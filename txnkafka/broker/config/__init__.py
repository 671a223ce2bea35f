"""The settings of the broker, topics, groups and metrics subscriptions, and their changes."""

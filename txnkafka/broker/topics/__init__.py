"""Create, enlarge and delete topics, and reconcile their directories with the registry."""

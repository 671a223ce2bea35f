"""The source over a broker: ``kafka.bootstrap.servers`` instead of a path."""

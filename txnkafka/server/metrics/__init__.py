"""Metrics of the served broker: counted as plain numbers, collected when somebody asks, shown as Prometheus
text."""

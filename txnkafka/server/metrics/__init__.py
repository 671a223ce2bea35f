"""Metrics of the served broker: counted as plain numbers, collected on demand, shown as Prometheus text."""

"""The transaction and group coordinators on the logs of the broker."""

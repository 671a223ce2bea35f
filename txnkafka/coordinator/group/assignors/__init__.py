"""Server-side assignors of the consumer protocol, as pure functions."""

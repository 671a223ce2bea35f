"""Groups and members of the consumer protocol (KIP-848)."""

"""The coordinator of halves (transactional messages that wait for a decision): image, checks, settlement."""

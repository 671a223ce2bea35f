"""The compatibility card: what every client does with transactions and groups, on both brokers."""

"""The replay of the metadata log: the image of the cluster, and its records."""

"""Writes the rows of a DataFrame to Kafka topics, each batch in one transaction.

Tasks encode record batches and stage them in files that no reader sees (``staging.py``). The driver copies
them to the target in one transaction of a producer, and commits the id of the batch with them, as metadata of
an offset (``publication.py``). The transaction coordinator of the target makes the durable decision.
"""

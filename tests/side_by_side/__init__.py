"""The same requests to Apache Kafka and to this broker, and their answers compared field by field.

Requests and answers are plain data (JSON): fields by their names, with names in place of what two brokers
choose differently. The same data are recorded as transcripts, which are replayed without Kafka.
"""
